//! Arms: what each lists over what `[base]` gives, checked, with its paths resolved.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use toml::Spanned;

use super::error::{StudyError, nearest};
use super::expect::Expect;
use super::file::{ArmFile, ArmSettings, StudyFile};
use super::load::Source;
use super::switch::Switch;
use crate::server::{ServerKind, is_literal_secret};

/// What a command may name, and what is put there at each launch.
pub const PLACEHOLDERS: [&str; 5] = ["{port}", "{model}", "{threads}", "{ctx}", "{tree}"];

/// How an arm is built, as its study says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// A folder in the repository, or the repository's own.
    pub repo: PathBuf,
    /// The revision; the repository as it lies there if absent.
    pub rev: Option<String>,
    /// Program and arguments of the build; none where a revision is only checked out.
    pub command: Vec<String>,
    /// The program that is launched, relative to the folder that is built in; absent for a command.
    pub program: Option<PathBuf>,
}

/// What a build left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Built {
    /// The folder that was built in.
    pub tree: PathBuf,
    /// For `launch.json`: commit, dirty, command, hash of the log ...
    pub facts: BTreeMap<String, String>,
}

/// One arm, base's settings merged in, paths resolved.
#[derive(Clone, Debug)]
pub struct Arm {
    /// Short name.
    pub name: String,
    /// For people.
    pub label: String,
    /// Which adapter launches it.
    pub kind: ServerKind,
    /// Model file.
    pub model: Option<PathBuf>,
    /// Worker threads.
    pub threads: Option<u32>,
    /// Context length in tokens.
    pub ctx: Option<u32>,
    /// Further arguments.
    pub args: Vec<String>,
    /// Environment variables added.
    pub env: BTreeMap<String, String>,
    /// Program given in place of the one found.
    pub program: Option<PathBuf>,
    /// Command of an `openai` arm.
    pub command: Vec<String>,
    /// Health route of an `openai` arm.
    pub health: String,
    /// Timeline of a `mock` arm.
    pub script: Option<PathBuf>,
    /// What its servers must be found to have done.
    pub expect: Expect,
    /// How a paired study's server is told to use this arm's settings; absent in any other.
    pub switch: Option<Switch>,
    /// How it is built; absent where it is not.
    pub recipe: Option<Recipe>,
    /// What its build left; absent before, and where it is not built.
    pub built: Option<Built>,
}

/// An arm's own keys over those of `[base]`: its kind decides which of base's are its own.
struct Merged<'a> {
    kind: ServerKind,
    own: &'a ArmFile,
    base: &'a ArmSettings,
}

impl<'a> Merged<'a> {
    fn name(&self) -> &'a str {
        self.own.name.as_ref()
    }

    /// A key that only some kinds take: an arm of another kind may not list it, and does not get
    /// base's.
    fn only<T>(
        &self,
        key: &str,
        own: Option<&'a Spanned<T>>,
        base: Option<&'a Spanned<T>>,
        kinds: &[ServerKind],
    ) -> Result<Option<&'a Spanned<T>>, (Range<usize>, String)> {
        if kinds.contains(&self.kind) {
            return Ok(own.or(base));
        }
        let Some(own) = own else { return Ok(None) };
        let kinds: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        let what = format!(
            "`{key}` is for arms of kind {}; arm {:?} is {}",
            kinds.join(" or "),
            self.name(),
            self.kind.name()
        );
        Err((own.span(), what))
    }
}

const LAUNCHED: &[ServerKind] = &[ServerKind::LlamaCpp, ServerKind::PalindromeEngine];
const BUILDABLE: &[ServerKind] = &[
    ServerKind::LlamaCpp,
    ServerKind::PalindromeEngine,
    ServerKind::Openai,
];

impl Source<'_> {
    /// The arms of a study, in file order.
    pub(super) fn arms(&self, file: &StudyFile) -> Result<Vec<Arm>, StudyError> {
        let arms = file.arms.iter().map(|arm| self.arm(arm, &file.base));
        let arms = arms.collect::<Result<Vec<_>, _>>()?;
        self.base_is_used(file)?;
        Ok(arms)
    }

    /// A key of `[base]` that no arm's kind takes is a mistake.
    fn base_is_used(&self, file: &StudyFile) -> Result<(), StudyError> {
        let base = &file.base;
        let kinds: Vec<ServerKind> = file.arms.iter().filter_map(|a| a.kind(base)).collect();
        let openai = &[ServerKind::Openai][..];
        let command = base.command.as_ref().map(Spanned::span);
        for (key, span, of) in [
            (
                "program",
                base.program.as_ref().map(Spanned::span),
                LAUNCHED,
            ),
            ("command", command, openai),
            ("health", base.health.as_ref().map(Spanned::span), openai),
            (
                "script",
                base.script.as_ref().map(Spanned::span),
                &[ServerKind::Mock],
            ),
            ("build", base.build.as_ref().map(Spanned::span), BUILDABLE),
            ("rev", base.rev.as_ref().map(Spanned::span), BUILDABLE),
            ("repo", base.repo.as_ref().map(Spanned::span), BUILDABLE),
        ] {
            if let Some(span) = span
                && !kinds.iter().any(|kind| of.contains(kind))
            {
                let of: Vec<&str> = of.iter().map(|kind| kind.name()).collect();
                let what = format!("`{key}` is for arms of kind {}; no arm is", of.join(" or "));
                return Err(self.error(span, what));
            }
        }
        Ok(())
    }

    fn arm(&self, own: &ArmFile, base: &ArmSettings) -> Result<Arm, StudyError> {
        let bad = |(span, what): (Range<usize>, String)| self.error(span, what);
        let name = own.name.as_ref();
        let lacks = |what: &str| bad((own.name.span(), format!("arm {name:?} {what}")));
        let kind = own.kind(base).ok_or_else(|| lacks("has no kind"))?;
        let merged = Merged { kind, own, base };
        let openai = &[ServerKind::Openai];
        let command = merged
            .only(
                "command",
                own.command.as_ref(),
                base.command.as_ref(),
                openai,
            )
            .map_err(bad)?;
        let health = merged
            .only("health", own.health.as_ref(), base.health.as_ref(), openai)
            .map_err(bad)?;
        let script = merged
            .only(
                "script",
                own.script.as_ref(),
                base.script.as_ref(),
                &[ServerKind::Mock],
            )
            .map_err(bad)?;
        let program = merged
            .only(
                "program",
                own.program.as_ref(),
                base.program.as_ref(),
                LAUNCHED,
            )
            .map_err(bad)?;
        let recipe = self.recipe(&merged, program)?;
        let model = match own.model.as_ref().or(base.model.as_ref()) {
            Some(model) => Some(self.file("model", model)?),
            None if LAUNCHED.contains(&kind) => {
                return Err(lacks("has no model; give `model` here or in [base]"));
            }
            None => None,
        };
        let script = match script {
            Some(script) => Some(self.file("script", script)?),
            None if kind == ServerKind::Mock => {
                return Err(lacks("needs `script`, the mock's timeline"));
            }
            None => None,
        };
        let mut env = base.env.clone();
        env.extend(own.env.clone());
        if let Some((name, _)) = env.iter().find(|(n, v)| is_literal_secret(n, v)) {
            return Err(lacks(&format!(
                "sets {name} to what looks like a secret, and this file is kept in the archive as it is: leave it out and \
                 `export {name}=...` before the run; servers inherit the environment"
            )));
        }
        let arm = Arm {
            name: name.clone(),
            label: own.label.clone().unwrap_or_else(|| name.clone()),
            kind,
            model,
            threads: own.threads.or(base.threads),
            ctx: own.ctx.or(base.ctx),
            args: base.args.iter().chain(&own.args).cloned().collect(),
            env,
            program: match program {
                Some(program) if recipe.is_none() => Some(self.file("program", program)?),
                _ => None,
            },
            command: command
                .into_iter()
                .flat_map(AsRef::as_ref)
                .map(|word| word.as_ref().clone())
                .collect(),
            health: health.map_or_else(|| "/health".to_owned(), |h| h.as_ref().clone()),
            script,
            expect: own.expect.or(&base.expect),
            // `parse` has refused what does not resolve.
            switch: own.switch.as_ref().and_then(|s| s.as_ref().resolve().ok()),
            recipe,
            built: None,
        };
        if kind == ServerKind::Openai {
            let Some(command) = command else {
                return Err(lacks(
                    "needs `command = [\"program\", \"--port\", \"{port}\", ...]`",
                ));
            };
            self.placeholders(&arm, command, own)?;
        }
        Ok(arm)
    }

    /// Each placeholder of a command must be one, and have a value.
    fn placeholders(
        &self,
        arm: &Arm,
        command: &Spanned<Vec<Spanned<String>>>,
        own: &ArmFile,
    ) -> Result<(), StudyError> {
        let words = command.as_ref().iter();
        let words = words.map(|word| (word.span(), word.as_ref().as_str()));
        let args = arm.args.iter().map(|arg| (own.name.span(), arg.as_str()));
        let values = [
            ("{model}", arm.model.is_some(), "`model`, here or in [base]"),
            (
                "{threads}",
                arm.threads.is_some(),
                "`threads`, here or in [base]",
            ),
            ("{ctx}", arm.ctx.is_some(), "`ctx`, here or in [base]"),
            ("{tree}", arm.recipe.is_some(), "`build`, `rev` or both"),
        ];
        let mut used: Vec<&str> = Vec::new();
        for (span, word) in words.chain(args) {
            for found in braced(word) {
                if !PLACEHOLDERS.contains(&found) {
                    // Braces may be JSON, or mean something to the server.
                    let known = PLACEHOLDERS.map(|p| p.trim_matches(['{', '}']));
                    let Some(close) = nearest(found.trim_matches(['{', '}']), &known) else {
                        continue;
                    };
                    let what = format!("{found} is no placeholder; did you mean {{{close}}}?");
                    return Err(self.error(span, what));
                }
                if let Some((_, _, give)) = values.iter().find(|(p, set, _)| *p == found && !set) {
                    let what = format!(
                        "arm {:?} uses {found}, which nothing sets: give {give}",
                        arm.name
                    );
                    return Err(self.error(span, what));
                }
                used.push(found);
            }
        }
        if !used.contains(&"{port}") {
            let what = format!(
                "the command of arm {:?} has no {{port}}: each launch has a free port of its own, put in there, as in \
                 `\"--port\", \"{{port}}\"`",
                arm.name
            );
            return Err(self.error(command.span(), what));
        }
        if arm.recipe.is_some() && !used.contains(&"{tree}") {
            let what = format!(
                "arm {:?} is built, and its command does not use {{tree}}, the folder that it is built in, as in \
                 \"{{tree}}/target/release/server\"",
                arm.name
            );
            return Err(self.error(command.span(), what));
        }
        Ok(())
    }

    fn recipe(
        &self,
        merged: &Merged<'_>,
        program: Option<&Spanned<String>>,
    ) -> Result<Option<Recipe>, StudyError> {
        let (own, base, kind) = (merged.own, merged.base, merged.kind);
        let bad = |(span, what): (Range<usize>, String)| self.error(span, what);
        let build = merged
            .only("build", own.build.as_ref(), base.build.as_ref(), BUILDABLE)
            .map_err(bad)?;
        let rev = merged
            .only("rev", own.rev.as_ref(), base.rev.as_ref(), BUILDABLE)
            .map_err(bad)?;
        let repo = merged
            .only("repo", own.repo.as_ref(), base.repo.as_ref(), BUILDABLE)
            .map_err(bad)?;
        let Some(span) = build.map(Spanned::span).or(rev.map(Spanned::span)) else {
            return match repo.filter(|_| own.repo.is_some()) {
                Some(repo) => Err(self.error(
                    repo.span(),
                    "`repo` is what `build` or `rev` are of, and neither is given",
                )),
                None => Ok(None),
            };
        };
        let lacks = |what: &str| {
            let message = format!("arm {:?} is built: {what}", merged.name());
            self.error(span.clone(), message)
        };
        let mut command: Vec<String> = build.map(|b| b.as_ref().clone()).unwrap_or_default();
        let mut program = program.map(|program| PathBuf::from(program.as_ref()));
        match kind {
            ServerKind::PalindromeEngine => {
                if command.is_empty() {
                    let cargo = ["cargo", "build", "--release", "--bin", "palindrome-engine"];
                    command = cargo.map(str::to_owned).to_vec();
                }
                program.get_or_insert_with(|| "target/release/palindrome-engine".into());
            }
            ServerKind::LlamaCpp => {
                if command.is_empty() {
                    return Err(lacks(
                        "give the command that builds it, `build = [\"program\", ...]`",
                    ));
                }
                if program.is_none() {
                    return Err(lacks(
                        "give `program`, the server relative to the folder that it is built in, such as \
                         \"build/bin/llama-server\"",
                    ));
                }
            }
            ServerKind::Openai | ServerKind::Mock => {}
        }
        let repo = match repo {
            Some(repo) => {
                let place = self.folder.join(repo.as_ref());
                if !place.is_dir() {
                    let what = format!(
                        "repo {:?} is no folder: looked for {}",
                        repo.as_ref(),
                        place.display()
                    );
                    return Err(self.error(repo.span(), what));
                }
                place
            }
            None => self.folder.to_path_buf(),
        };
        Ok(Some(Recipe {
            repo: repo.canonicalize().unwrap_or(repo),
            rev: rev.map(|rev| rev.as_ref().clone()),
            command,
            program,
        }))
    }
}

/// `{word}`s of a text: lower-case letters and `_` in braces.
fn braced(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        rest = &rest[start..];
        let inside = rest[1..].trim_start_matches(|c: char| c.is_ascii_lowercase() || c == '_');
        let length = rest.len() - inside.len();
        if length > 1 && inside.starts_with('}') {
            found.push(&rest[..=length]);
        }
        rest = &rest[1..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_braces_are_found_and_json_is_not() {
        assert_eq!(
            braced("--listen=127.0.0.1:{port}{ctx}"),
            ["{port}", "{ctx}"]
        );
        assert_eq!(braced("{\"a\": {}} {prot"), [""; 0]);
        assert_eq!(braced("{{tree}"), ["{tree}"]);
    }
}
