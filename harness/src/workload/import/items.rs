//! A file's JSON values with the lines on which they begin: one a line, or those of an array.

use serde_json::Value;

use super::plan::Bad;

/// A value, and where it begins; or why it is none.
pub(super) type Item = Result<(usize, Value), Bad>;

/// The values of a file of JSON lines; empty lines are skipped.
pub(super) fn lines(text: &str) -> Vec<Item> {
    (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(number, line)| parse(number, line))
        .collect()
}

/// The elements of an array, or the lines of a file that is none. A file that is not whole JSON is
/// one bad item: where an element of it would end is not known.
pub(super) fn elements(text: &str) -> Vec<Item> {
    let start = text.trim_start_matches('\u{feff}');
    if !start.trim_start().starts_with('[') {
        return lines(start);
    }
    if let Err(e) = serde_json::from_str::<serde::de::IgnoredAny>(start) {
        let message = format!("not JSON (column {}): {}", e.column(), plain(&e));
        return vec![Err(Bad {
            line: e.line(),
            message,
        })];
    }
    ranges(start)
        .into_iter()
        .map(|(line, piece)| parse(line, piece))
        .collect()
}

fn parse(line: usize, text: &str) -> Item {
    match serde_json::from_str(text) {
        Ok(value) => Ok((line, value)),
        Err(e) => {
            let message = format!("not JSON (column {}): {}", e.column(), plain(&e));
            let line = line + e.line() - 1;
            Err(Bad { line, message })
        }
    }
}

/// serde's message without its own line and column.
fn plain(e: &serde_json::Error) -> String {
    let text = e.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

/// The elements of an array as text; `text` is valid JSON.
fn ranges(text: &str) -> Vec<(usize, &str)> {
    let bytes = text.as_bytes();
    let (mut depth, mut at, mut line) = (0_usize, 0, 1);
    let mut begun: Option<(usize, usize)> = None;
    let mut found = Vec::new();
    let mut end = |begun: &mut Option<(usize, usize)>, at: usize| {
        if let Some((line, start)) = begun.take() {
            found.push((line, text[start..at].trim_end()));
        }
    };
    while at < bytes.len() {
        let byte = bytes[at];
        let space = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        let closes = depth == 1 && byte == b']';
        let parts = depth == 1 && byte == b',';
        if depth == 1 && begun.is_none() && !space && !closes && !parts {
            begun = Some((line, at));
        }
        match byte {
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += 1 + usize::from(bytes[at] == b'\\');
                }
            }
            b'\n' => line += 1,
            b'[' | b'{' => depth += 1,
            _ if closes => {
                end(&mut begun, at);
                depth = 0;
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ if parts => end(&mut begun, at),
            _ => {}
        }
        at += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn an_arrays_elements_know_their_lines() {
        let text = "[\n {\"a\": \"],\\\"\"},\n\n  [1, [2]], 7\n,\n\"x\" ]\n";
        let found: Vec<(usize, Value)> = elements(text).into_iter().map(Result::unwrap).collect();
        assert_eq!(
            found,
            [
                (2, json!({"a": "],\""})),
                (4, json!([1, [2]])),
                (4, json!(7)),
                (6, json!("x"))
            ]
        );
        assert!(elements(" [ ] ").is_empty());
    }

    #[test]
    fn what_is_no_json_is_named_by_its_line() {
        let bad = |items: Vec<Item>| items.into_iter().find_map(Result::err).unwrap();
        assert_eq!(bad(elements("[\n{},\n{\"a\" 1}]")).line, 3);
        assert_eq!(bad(lines("{}\n\n{\"a\"\n")).line, 3);
        assert!(
            bad(lines("x"))
                .message
                .starts_with("not JSON (column 1): expected value")
        );
        assert_eq!(elements("{}\n{}").len(), 2);
    }

    proptest! {
        #[test]
        fn an_array_is_its_elements(texts in prop::collection::vec("[\\[\\]{},\" a\\\\]{0,6}", 0..5)) {
            let text = serde_json::to_string(&texts).unwrap();
            let found: Vec<Value> = elements(&text).into_iter().map(|i| i.unwrap().1).collect();
            prop_assert_eq!(found, texts.into_iter().map(Value::from).collect::<Vec<_>>());
        }
    }
}
