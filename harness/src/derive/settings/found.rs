//! What readers of servers find, and small tools to find it in text.

use serde_json::Value;

/// A setting that something shows.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    pub(super) name: &'static str,
    pub(super) value: Value,
    pub(super) source: String,
}

/// Findings in the order of trust: the first one of a name counts.
#[derive(Debug, Default)]
pub(super) struct Findings(pub(super) Vec<Found>);

impl Findings {
    /// Adds a finding, if there is one and nothing before it said the same thing.
    pub(super) fn add(
        &mut self,
        name: &'static str,
        value: Option<impl Into<Value>>,
        source: impl Into<String>,
    ) {
        if let Some(value) = value
            && self.get(name).is_none()
        {
            self.0.push(Found {
                name,
                value: value.into(),
                source: source.into(),
            });
        }
    }

    /// The same of a line of the log, whose words are the source.
    pub(super) fn of_line(&mut self, name: &'static str, found: Option<(&str, impl Into<Value>)>) {
        if let Some((line, value)) = found {
            self.add(name, Some(value), format!("server.log: {}", words(line)));
        }
    }

    /// By name.
    pub(super) fn get(&self, name: &str) -> Option<&Found> {
        self.0.iter().find(|f| f.name == name)
    }
}

/// A log line without what changes from run to run (its time), at most 160 characters.
fn words(line: &str) -> String {
    let stamp = |word: &str| word.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let line = match line.split_once(' ') {
        Some((first, rest)) if stamp(first) => rest,
        _ => line,
    };
    let words: Vec<&str> = line.split_whitespace().collect();
    words.join(" ").chars().take(160).collect()
}

/// The text after `key` and `=` (or `:`) in a line, up to a space, comma or bracket: `n_batch = 2`.
pub(super) fn value_in<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let mut from = 0;
    while let Some(at) = line[from..].find(key).map(|at| at + from) {
        let (before, after) = (&line[..at], &line[at + key.len()..]);
        let whole_word = !before.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let value = after.trim_start().strip_prefix(['=', ':']);
        if let (true, Some(value)) = (whole_word, value) {
            let value = value.trim_start();
            let end = value.find([' ', ',', ')', '|', ';']).unwrap_or(value.len());
            return Some(value[..end].trim_matches(['\'', '"']));
        }
        from = at + key.len();
    }
    None
}

/// The last line of a log that has `marker`, and in it a number after `key`: a server may try
/// settings before it takes the ones that it runs with.
pub(super) fn number_in_log<'a>(log: &'a str, marker: &str, key: &str) -> Option<(&'a str, u64)> {
    log.lines().rev().find_map(|line| {
        let value = value_in(line, key).filter(|_| line.contains(marker))?;
        Some((line, value.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_by_its_whole_name() {
        let line = "llama_context: n_ubatch      = 512, n_batch = 2048 (kv_unified = 'false')";
        assert_eq!(value_in(line, "n_batch"), Some("2048"));
        assert_eq!(value_in(line, "n_ubatch"), Some("512"));
        assert_eq!(value_in(line, "kv_unified"), Some("false"));
        assert_eq!(value_in(line, "batch"), None);
        assert_eq!(value_in("n_batch", "n_batch"), None);
    }

    #[test]
    fn the_last_line_counts_and_its_words_are_the_source() {
        let log = "0.1 I x: n_ctx = 1\n0.22.3 I x:   n_ctx   = 2\ny: n_ctx = 3\n";
        let mut findings = Findings::default();
        findings.of_line("ctx", number_in_log(log, "x:", "n_ctx"));
        findings.add("ctx", Some(9), "later");
        findings.add("slots", None::<u64>, "nothing");
        assert_eq!(findings.0.len(), 1);
        let found = findings.get("ctx").unwrap();
        assert_eq!(
            (&found.value, found.source.as_str()),
            (&Value::from(2), "server.log: I x: n_ctx = 2")
        );
    }
}
