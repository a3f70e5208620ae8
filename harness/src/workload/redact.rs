//! Secrets in request bodies and targets: found by the names of fields and by the shape of values,
//! and replaced where they stand, so that all other bytes stay as they came.

use serde_json::Value;

/// What stands where a secret was.
pub(super) const MARK: &str = "[redacted]";

/// Names of fields whose text is a secret, in lower case without `-`, `_` and space. Also those
/// that end so.
const NAMES: [&str; 12] = [
    "apikey",
    "authorization",
    "password",
    "passwd",
    "secret",
    "accesstoken",
    "refreshtoken",
    "authtoken",
    "privatekey",
    "secretkey",
    "accesskey",
    "bearer",
];
/// Names that are secret only when nothing stands before them.
const WHOLE_NAMES: [&str; 4] = ["token", "credential", "credentials", "cookie"];

/// How keys begin, what they are, and how many further characters make one.
const SHAPES: [(&str, &str, usize); 17] = [
    ("Bearer ", "a bearer token", 16),
    ("bearer ", "a bearer token", 16),
    ("sk-", "a key sk-...", 16),
    ("pk-", "a key pk-...", 24),
    ("sk_live_", "a key sk_live_...", 16),
    ("rk_live_", "a key rk_live_...", 16),
    ("ghp_", "a key ghp_...", 20),
    ("gho_", "a key gho_...", 20),
    ("ghs_", "a key ghs_...", 20),
    ("github_pat_", "a key github_pat_...", 20),
    ("glpat-", "a key glpat-...", 16),
    ("hf_", "a key hf_...", 24),
    ("gsk_", "a key gsk_...", 24),
    ("xoxb-", "a key xoxb-...", 16),
    ("xoxp-", "a key xoxp-...", 16),
    ("AKIA", "a key AKIA...", 16),
    ("AIza", "a key AIza...", 30),
];
/// How a key written in PEM begins and ends.
const PEM: (&str, &str) = ("-----BEGIN ", "PRIVATE KEY-----");

/// A body without its secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redacted {
    /// As it is kept.
    pub bytes: Vec<u8>,
    /// What was replaced, in the order of the text; empty where nothing was.
    pub what: Vec<String>,
}

/// A stretch of a text that is a secret.
type Found = (usize, usize, String);

/// Replaces what looks like a secret in a JSON body.
pub fn redact_body(body: &[u8]) -> Result<Redacted, String> {
    let text = std::str::from_utf8(body).map_err(|e| format!("not UTF-8: {e}"))?;
    serde_json::from_str::<Value>(text).map_err(|e| format!("not JSON: {e}"))?;
    let mut found = named(text);
    found.extend(named_inside(text));
    for shaped in shaped(text) {
        let apart = |f: &Found| shaped.1 <= f.0 || f.1 <= shaped.0;
        if found.iter().all(apart) {
            found.push(shaped);
        }
    }
    found.sort();
    let mut kept = String::with_capacity(text.len());
    let mut at = 0;
    for (start, end, _) in &found {
        kept.push_str(&text[at..*start]);
        kept.push_str(MARK);
        at = *end;
    }
    kept.push_str(&text[at..]);
    let line = |(start, end, what): Found| format!("{what}: {} bytes at byte {start}", end - start);
    Ok(Redacted {
        bytes: kept.into_bytes(),
        what: found.into_iter().map(line).collect(),
    })
}

/// A request's target with the values of secret query fields replaced.
pub fn redact_target(target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else {
        return target.to_owned();
    };
    let hide = |pair: &str| match pair.split_once('=') {
        Some((name, _)) if is_secret(name) || is_secret_alone(name, "key") => {
            format!("{name}={MARK}")
        }
        _ => pair.to_owned(),
    };
    let pairs: Vec<String> = query.split('&').map(hide).collect();
    format!("{path}?{}", pairs.join("&"))
}

fn plain(name: &str) -> String {
    let kept = name.chars().filter(|c| !matches!(c, '-' | '_' | ' '));
    kept.collect::<String>().to_ascii_lowercase()
}

fn is_secret(name: &str) -> bool {
    let name = plain(name);
    WHOLE_NAMES.contains(&name.as_str()) || NAMES.iter().any(|end| name.ends_with(end))
}

fn is_secret_alone(name: &str, secret: &str) -> bool {
    plain(name) == secret
}

/// Texts that are the value of a field with a secret's name. `text` is JSON.
fn named(text: &str) -> Vec<Found> {
    let mut found = Vec::new();
    let mut key: Option<String> = None;
    let mut after_colon = false;
    let mut at = 0;
    let bytes = text.as_bytes();
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                let end = string_end(bytes, at);
                if after_colon {
                    if let Some(key) = key.take().filter(|key| is_secret(key))
                        && end - at > 2
                    {
                        found.push((at + 1, end - 1, format!("field `{key}`")));
                    }
                    after_colon = false;
                } else {
                    key = serde_json::from_str(&text[at..end]).ok();
                }
                at = end;
            }
            b':' => {
                after_colon = true;
                at += 1;
            }
            b' ' | b'\n' | b'\r' | b'\t' => at += 1,
            _ => {
                after_colon = false;
                at += 1;
            }
        }
    }
    found
}

/// The same in JSON that is itself a text, as the arguments of a tool's call are.
fn named_inside(text: &str) -> Vec<Found> {
    let marks: Vec<usize> = text.match_indices("\\\"").map(|(at, _)| at).collect();
    let mut found = Vec::new();
    for mark in marks.windows(4) {
        let piece = |n: usize| &text[mark[n] + 2..mark[n + 1]];
        let (name, between, value) = (piece(0), piece(1), piece(2));
        let inside = [name, between, value].iter().all(|p| !p.contains('"'));
        if inside && between.trim() == ":" && !value.is_empty() && is_secret(name) {
            found.push((mark[2] + 2, mark[3], format!("field `{name}`")));
        }
    }
    found
}

/// Settings in a text: `API_KEY=...`, `password: '...'`. Only what has the look of a key counts, not
/// a name or a call in a program.
fn assigned(text: &str) -> Vec<Found> {
    let mut found = Vec::new();
    for (at, sign) in text.match_indices(['=', ':']) {
        let of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let before = text[..at].trim_end_matches(' ');
        let name = &before[before.trim_end_matches(of_name).len()..];
        if !NAMES.iter().any(|end| plain(name).ends_with(end)) {
            continue;
        }
        let rest = text[at + sign.len()..].trim_start_matches(' ');
        let rest = rest
            .strip_prefix("\\\"")
            .or_else(|| rest.strip_prefix('\''))
            .unwrap_or(rest);
        let length = rest.find(|c| !of_key(c)).unwrap_or(rest.len());
        let (value, after) = rest.split_at(length);
        let called = after.starts_with(['(', '[']);
        if value.len() >= 8 && value.bytes().any(|b| b.is_ascii_digit()) && !called {
            let start = text.len() - rest.len();
            found.push((start, start + length, format!("setting `{name}`")));
        }
    }
    found
}

/// What keys are made of.
fn of_key(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | '/' | '=' | '~')
}

/// Past the closing quote of the string that opens at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Stretches that have a key's shape.
fn shaped(text: &str) -> Vec<Found> {
    let mut found = Vec::new();
    for (begin, what, least) in SHAPES {
        for (start, _) in text.match_indices(begin) {
            // A word that only contains the beginning, as in `task-list`, is no key. What comes
            // before may be the letter of an escape, as in `\nsk-`.
            let before = &text[..start];
            let inside = before
                .chars()
                .next_back()
                .is_some_and(|c| c.is_ascii_alphanumeric())
                && !before
                    .get(before.len().saturating_sub(2)..)
                    .is_some_and(|two| two.starts_with('\\'));
            let rest = &text[start + begin.len()..];
            let length = rest.find(|c| !of_key(c)).unwrap_or(rest.len());
            if inside || length < least {
                continue;
            }
            let token = &rest[..length];
            let varied = token.bytes().any(|b| b.is_ascii_digit())
                || token.bytes().any(|b| b.is_ascii_uppercase());
            if varied {
                let from = if begin.ends_with(' ') {
                    start + begin.len()
                } else {
                    start
                };
                found.push((from, start + begin.len() + length, what.to_owned()));
            }
        }
    }
    found.extend(assigned(text));
    found.extend(signed_tokens(text));
    found.extend(pem_keys(text));
    found.sort();
    // Of two that overlap (a bearer token that is a key), the longer stands.
    found.dedup_by(|later, earlier| {
        let overlap = later.0 < earlier.1;
        if overlap {
            earlier.1 = earlier.1.max(later.1);
        }
        overlap
    });
    found
}

/// JSON web tokens: three parts of base64url, the first two of which encode `{"`.
fn signed_tokens(text: &str) -> Vec<Found> {
    let of_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut found = Vec::new();
    for (start, _) in text.match_indices("eyJ") {
        let rest = &text[start..];
        let length = rest.find(|c| !of_token(c)).unwrap_or(rest.len());
        let parts: Vec<&str> = rest[..length].split('.').collect();
        if parts.len() == 3 && parts[1].starts_with("eyJ") && parts[2].len() > 8 {
            found.push((start, start + length, "a JSON web token".to_owned()));
        }
    }
    found
}

/// `-----BEGIN ... PRIVATE KEY-----` to the same with END.
fn pem_keys(text: &str) -> Vec<Found> {
    let mut found = Vec::new();
    for (start, _) in text.match_indices(PEM.0) {
        let rest = &text[start..];
        let Some(head) = rest.find(PEM.1).filter(|head| *head < 40) else {
            continue;
        };
        let body = &rest[head + PEM.1.len()..];
        if let Some(end) = body.find(PEM.1) {
            let length = head + PEM.1.len() + end + PEM.1.len();
            // Never past the string that it stands in.
            if !rest[..length].contains('"') {
                found.push((start, start + length, "a private key".to_owned()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(body: &str) -> (String, Vec<String>) {
        let done = redact_body(body.as_bytes()).unwrap();
        (String::from_utf8(done.bytes).unwrap(), done.what)
    }

    #[test]
    fn a_body_without_secrets_stays_as_it_came() {
        let body = "{ \"max_tokens\":9,\n\"tokens\": \"risk-free task-list-with-2-things\", \"prompt_cache_key\":\"a\",\
                    \"stop\":[\"token\"],\"messages\":[{\"role\":\"user\",\"content\":\"what is sk-learn? Bearer of news\"}],\
                    \"tools\":[{\"properties\":{\"api_key\":{\"type\":\"string\"}}}] }";
        assert_eq!(redacted(body), (body.to_owned(), vec![]));
        assert!(redact_body(b"{").unwrap_err().contains("not JSON"));
    }

    #[test]
    fn fields_with_secret_names_lose_their_texts_and_nothing_else_moves() {
        let body = r#"{"api_key" : "abc","x":{"Client-Secret":"d\"e","pass\u0077ord":"","token":"t1"},"n":"token"}"#;
        let (text, what) = redacted(body);
        assert_eq!(
            text,
            r#"{"api_key" : "[redacted]","x":{"Client-Secret":"[redacted]","pass\u0077ord":"","token":"[redacted]"},"n":"token"}"#
        );
        assert_eq!(what[0], "field `api_key`: 3 bytes at byte 14");
        assert_eq!(what.len(), 3);
        serde_json::from_str::<Value>(&text).unwrap();
    }

    #[test]
    fn keys_are_found_by_their_shape_anywhere_in_a_text() {
        for (secret, what) in [
            ("sk-proj-Ab12Cd34Ef56Gh78", "a key sk-...: 24"),
            ("ghp_0123456789abcdefghij", "a key ghp_...: 24"),
            ("AKIAIOSFODNN7EXAMPLE", "a key AKIA...: 20"),
            (
                "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
                "a JSON web token: 38",
            ),
            (
                "-----BEGIN RSA PRIVATE KEY-----\\nMIIE\\n-----END RSA PRIVATE KEY-----",
                "a private key: 68",
            ),
        ] {
            let body = format!(r#"{{"messages":[{{"content":"use\n{secret} please"}}]}}"#);
            let (text, said) = redacted(&body);
            assert_eq!(text, body.replace(secret, MARK));
            assert_eq!(said.len(), 1, "{said:?}");
            assert!(said[0].starts_with(what), "{said:?}");
        }
        let (text, said) = redacted(r#"{"h":"Authorization: Bearer sk-0123456789abcdef01"}"#);
        assert_eq!(text, r#"{"h":"Authorization: Bearer [redacted]"}"#);
        assert_eq!(said.len(), 1);
    }

    #[test]
    fn secrets_in_arguments_and_settings_are_found_and_programs_are_left() {
        let body = r#"{"arguments":"{\"q\": 1, \"api_key\": \"abc\"}","content":"AWS_SECRET=Zx9/kk+11==\npassword: 'hunter2222'\n"}"#;
        let (text, what) = redacted(body);
        assert_eq!(
            text,
            r#"{"arguments":"{\"q\": 1, \"api_key\": \"[redacted]\"}","content":"AWS_SECRET=[redacted]\npassword: '[redacted]'\n"}"#
        );
        assert_eq!(what.len(), 3, "{what:?}");
        let body = r#"{"content":"api_key = os.environ['KEY_2']; secret = derive_v2(x); password=None; token: 12345678"}"#;
        assert_eq!(redacted(body), (body.to_owned(), vec![]));
    }

    #[test]
    fn a_target_keeps_its_query_but_not_its_secrets() {
        assert_eq!(
            redact_target("/v1/x?a=b&api_key=9&key=1"),
            "/v1/x?a=b&api_key=[redacted]&key=[redacted]"
        );
        assert_eq!(redact_target("/v1/x"), "/v1/x");
    }
}
