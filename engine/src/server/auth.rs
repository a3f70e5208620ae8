//! API keys: never printed, compared in constant time.

use std::fmt;
use std::hint::black_box;

use axum::http::HeaderMap;
use sha2::{Digest, Sha256};

/// The keys that a server accepts; none means that it is open.
#[derive(Clone, Default)]
pub struct ApiKeys {
    digests: Vec<[u8; 32]>,
}

impl ApiKeys {
    /// Takes keys in the clear; only their digests are kept. Blank lines are skipped.
    pub fn new<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        let digests = keys
            .into_iter()
            .map(str::trim)
            .filter(|key| !key.is_empty())
            .map(digest)
            .collect();
        Self { digests }
    }
    /// Whether no key is asked for.
    pub fn is_open(&self) -> bool {
        self.digests.is_empty()
    }
    /// Whether the request carries one of the keys, as `Authorization: Bearer` or `X-Api-Key`.
    pub fn admits(&self, headers: &HeaderMap) -> bool {
        if self.is_open() {
            return true;
        }
        let bearer = headers
            .get("authorization")
            .and_then(|value| value.to_str().ok())
            .and_then(|value| {
                value
                    .strip_prefix("Bearer ")
                    .or(value.strip_prefix("bearer "))
            });
        let plain = headers
            .get("x-api-key")
            .and_then(|value| value.to_str().ok());
        bearer
            .into_iter()
            .chain(plain)
            .any(|given| self.holds(given.trim()))
    }
    /// Digests have one length, and every byte of every key is looked at whatever the outcome.
    fn holds(&self, given: &str) -> bool {
        let given = digest(given);
        let mut found = 0u8;
        for key in &self.digests {
            let difference = key
                .iter()
                .zip(given.iter())
                .fold(0u8, |all, (a, b)| all | black_box(a ^ b));
            found |= u8::from(black_box(difference) == 0);
        }
        found != 0
    }
}

impl fmt::Debug for ApiKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKeys({} hidden)", self.digests.len())
    }
}

fn digest(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn with(name: &'static str, value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_str(value).unwrap());
        headers
    }

    #[test]
    fn keys_admit_by_either_header_and_stay_hidden() {
        let keys = ApiKeys::new(["first-secret", "", " second-secret \r"]);
        assert!(keys.admits(&with("authorization", "Bearer first-secret")));
        assert!(keys.admits(&with("x-api-key", "second-secret")));
        assert!(!keys.admits(&with("authorization", "Bearer first-secre")));
        assert!(!keys.admits(&with("authorization", "first-secret")));
        assert!(!keys.admits(&with("authorization", "Bearer ")));
        assert!(!keys.admits(&HeaderMap::new()));
        assert_eq!(format!("{keys:?}"), "ApiKeys(2 hidden)");
        assert!(ApiKeys::new([" "]).is_open());
    }
}
