//! What must not be published with an archive is taken out before it is written: secrets, and the
//! path of the home folder, which names its user.

use std::collections::BTreeMap;

use super::{FileFact, LaunchFacts, Readback};

/// Stands where a secret stood.
pub(crate) const REDACTED: &str = "[redacted]";
/// Shortest secret that is looked for in text: a shorter one would hide words that are none.
const SHORTEST: usize = 6;

/// Whether a variable's name says that its value is a secret.
pub(crate) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"]
        .iter()
        .any(|s| name.contains(s))
}

/// Whether a study file that says so would publish a secret: it is kept byte for byte.
pub(crate) fn is_literal_secret(name: &str, value: &str) -> bool {
    let plain = value.parse::<f64>().is_ok() || ["true", "false"].contains(&value);
    is_secret(name) && value.len() >= SHORTEST && !plain
}

/// Hides the values of variables whose names say that they are secret.
pub(crate) fn redact(env: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let hide = |(name, value): (&String, &String)| {
        let value = if is_secret(name) { REDACTED } else { value };
        (name.clone(), value.to_owned())
    };
    env.iter().map(hide).collect()
}

/// Hides secrets in a command's words: what follows `--api-key` or `--hf-token`, what stands after
/// the `=` of `--api-key=` or `HF_TOKEN=`, a bearer's token, a password in an address. What is
/// redacted stays as it is.
pub(crate) fn redact_args(args: impl Iterator<Item = String>) -> Vec<String> {
    let mut hide_next = false;
    args.map(|arg| {
        if std::mem::replace(&mut hide_next, false) {
            return REDACTED.to_owned();
        }
        let (name, value) = match arg.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (arg.as_str(), None),
        };
        let flag = name.starts_with('-') && is_secret_flag(name);
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let variable = !name.is_empty() && name.chars().all(plain) && is_secret(name);
        match value {
            Some(_) if flag || variable => format!("{name}={REDACTED}"),
            None if flag => {
                hide_next = true;
                arg
            }
            _ => address(&bearer(&arg)),
        }
    })
    .collect()
}

fn is_secret_flag(flag: &str) -> bool {
    let known = ["api-key", "secret", "password", "hf-token"];
    let last = flag.rsplit(['-', '_']).next().unwrap_or_default();
    known.iter().any(|s| flag.contains(s))
        || ["key", "token", "passwd", "credential", "credentials"].contains(&last)
}

/// `Authorization: Bearer X`, in a word of its own.
fn bearer(word: &str) -> String {
    let marks = ["Bearer ", "bearer ", "Basic "];
    match marks.iter().find_map(|mark| Some((word.find(mark)?, mark))) {
        Some((at, mark)) => format!("{}{mark}{REDACTED}", &word[..at]),
        None => word.to_owned(),
    }
}

/// `scheme://user:password@place`.
fn address(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else {
        return word.to_owned();
    };
    let authority = rest.split('/').next().unwrap_or_default();
    match authority.rsplit_once('@') {
        Some((_, place)) => {
            format!("{scheme}://{REDACTED}@{place}{}", &rest[authority.len()..])
        }
        None => word.to_owned(),
    }
}

/// What is taken out of everything that this process writes of servers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Redaction {
    home: Option<String>,
    secrets: Vec<String>,
}

impl Redaction {
    /// Of this process's environment and what an arm adds to it.
    pub(crate) fn of(arm: &BTreeMap<String, String>) -> Self {
        let own = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        let added = arm.iter().map(|(n, v)| (n.clone(), v.clone()));
        Self::from(own.chain(added))
    }

    fn from(env: impl Iterator<Item = (String, String)>) -> Self {
        let mut made = Self::default();
        for (name, value) in env {
            if name == "HOME" {
                let home = value.trim_end_matches('/');
                made.home = (home.len() > 1 && home.starts_with('/')).then(|| home.to_owned());
            } else if is_literal_secret(&name, &value) {
                made.secrets.push(value);
            }
        }
        // A secret that holds another is hidden whole.
        made.secrets.sort_by_key(|s| std::cmp::Reverse(s.len()));
        made
    }

    /// A text without the secrets' values, and with `~` for the home folder.
    pub(crate) fn text(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for secret in &self.secrets {
            out = out.replace(secret, REDACTED);
        }
        match &self.home {
            Some(home) => without_home(&out, home),
            None => out,
        }
    }

    /// The same of bytes, such as a server's log; absent where nothing had to be taken out.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(bytes.len());
        for chunk in bytes.utf8_chunks() {
            out.extend_from_slice(self.text(chunk.valid()).as_bytes());
            out.extend_from_slice(chunk.invalid());
        }
        (out != bytes).then_some(out)
    }

    /// What is written of a launch.
    pub(crate) fn launch(&self, mut facts: LaunchFacts) -> LaunchFacts {
        let file = |mut fact: FileFact| {
            fact.path = self.text(&fact.path);
            fact
        };
        let words = redact_args(facts.command.into_iter());
        facts.command = words.iter().map(|word| self.text(word)).collect();
        facts.env = redact(&facts.env);
        for value in facts.env.values_mut().chain(facts.build.values_mut()) {
            *value = self.text(value);
        }
        facts.cwd = self.text(&facts.cwd);
        facts.binary = file(facts.binary);
        facts.libraries = facts.libraries.into_iter().map(file).collect();
        facts.models = facts.models.into_iter().map(file).collect();
        facts
    }
}

impl Redaction {
    /// What is written of what was read back.
    pub(crate) fn readback(&self, mut readback: Readback) -> Readback {
        for route in &mut readback.routes {
            route.body = route.body.as_ref().map(|body| self.text(body));
        }
        for process in [&mut readback.ready, &mut readback.end] {
            for file in process.mapped.iter_mut().flatten() {
                file.path = self.text(&file.path);
            }
            let libraries = process.device_libraries.iter_mut().flatten();
            for path in process.devices.iter_mut().flatten().chain(libraries) {
                *path = self.text(path);
            }
        }
        readback
    }
}

/// `~` for a path, wherever it stands whole: not in `/home/bob` of `/home/bobby`.
fn without_home(text: &str, home: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(home) {
        let (before, after) = (&rest[..at], &rest[at + home.len()..]);
        let begins = !before.ends_with(|c: char| c.is_alphanumeric() || "/._-".contains(c));
        let ends = !after.starts_with(|c: char| c.is_alphanumeric() || "._-".contains(c));
        out.push_str(before);
        out.push_str(if begins && ends { "~" } else { home });
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Whether a word that was redacted when it was written can be this one.
pub(crate) fn may_be(written: &str, word: &str) -> bool {
    if written == word {
        return true;
    }
    written.match_indices('~').any(|(at, _)| {
        let (before, after) = (&written[..at], &written[at + 1..]);
        let middle = word
            .strip_prefix(before)
            .and_then(|rest| rest.strip_suffix(after));
        middle.is_some_and(|home| home.starts_with('/') && home.len() > 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = |(n, v): &(&str, &str)| ((*n).to_owned(), (*v).to_owned());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn secrets_are_hidden_by_name() {
        let shown = redact(&env(&[("API_KEY", "x"), ("hf_token", "y"), ("LANG", "C")]));
        assert_eq!(
            shown,
            env(&[("API_KEY", REDACTED), ("hf_token", REDACTED), ("LANG", "C")])
        );
    }

    #[test]
    fn secrets_in_commands_are_hidden_and_the_rest_is_not() {
        for (given, shown) in [
            ("serve --api-key x -c 9", "serve --api-key [redacted] -c 9"),
            ("serve --api-key=y", "serve --api-key=[redacted]"),
            (
                "serve --token abc --threads 2",
                "serve --token [redacted] --threads 2",
            ),
            ("env HF_TOKEN=abc serve", "env HF_TOKEN=[redacted] serve"),
            ("get https://bob:pw@host/x", "get https://[redacted]@host/x"),
            ("get https://host/a@b", "get https://host/a@b"),
            (
                "serve --max-tokens 9 --cache-type-k q8_0",
                "serve --max-tokens 9 --cache-type-k q8_0",
            ),
            ("serve -m a=b", "serve -m a=b"),
        ] {
            let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
            let redacted = redact_args(words(given).into_iter());
            assert_eq!(redacted, words(shown));
            assert_eq!(redact_args(redacted.into_iter()), words(shown), "again");
        }
        let header = redact_args(["Authorization: Bearer abc".to_owned()].into_iter());
        assert_eq!(header, ["Authorization: Bearer [redacted]"]);
    }

    #[test]
    fn home_and_secret_values_are_taken_out_of_text() {
        let redaction = Redaction::from(
            env(&[
                ("HOME", "/home/bob/"),
                ("HF_TOKEN", "hf_abcdef"),
                ("KEY", "no"),
            ])
            .into_iter(),
        );
        for (given, shown) in [
            ("/home/bob/m.gguf", "~/m.gguf"),
            (
                "--model=/home/bob/m.gguf and /home/bob",
                "--model=~/m.gguf and ~",
            ),
            (
                "/home/bobby/x /mnt/home/bob/x",
                "/home/bobby/x /mnt/home/bob/x",
            ),
            ("key hf_abcdef, no", "key [redacted], no"),
        ] {
            assert_eq!(redaction.text(given), shown);
        }
        let log = b"loading /home/bob/m\n\xff\xfe /home/bob\ntoken hf_abcdef\n";
        let shown = b"loading ~/m\n\xff\xfe ~\ntoken [redacted]\n";
        assert_eq!(redaction.bytes(log).as_deref(), Some(&shown[..]));
        assert_eq!(redaction.bytes(b"nothing\n"), None);
        // No home, or the root, hides nothing.
        let root = Redaction::from(env(&[("HOME", "/")]).into_iter());
        assert_eq!(root.text("/usr/bin"), "/usr/bin");
    }

    #[test]
    fn a_redacted_word_may_be_what_the_study_says() {
        assert!(may_be("~/m.gguf", "/home/bob/m.gguf"));
        assert!(may_be("--x=~/m", "--x=/root/m"));
        assert!(may_be("a~b", "a~b"));
        assert!(!may_be("~/m.gguf", "/home/bob/n.gguf"));
        assert!(!may_be("~/m", "m"));
        assert!(!may_be("~", "x"));
    }
}
