//! How many tokens a prompt has: counted by a server, or else taken by its bytes.

use std::time::Duration;

use serde::Serialize;

use super::body::BodyFacts;
use crate::replay::{PromptRecord, Request, send};

/// Bytes of text that a token is taken to have where nothing counts them.
const BYTES_PER_TOKEN: f64 = 4.0;
/// Longest one question may take.
const LIMIT: Duration = Duration::from_mins(2);

/// A count, and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Counted {
    /// By a server's tokenizer, template included; or ids in the body itself.
    Measured,
    /// By the text's bytes: 4 to a token.
    Assumed,
}

/// Prompt tokens of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// How many.
    pub tokens: u64,
    /// Whether they were counted.
    pub label: Counted,
}

/// Who counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// A server on this loopback port, by `/apply-template` and `/tokenize`.
    Server(u16),
    /// Nobody.
    Bytes,
}

impl Counter {
    /// Counts a body's prompt; a server that cannot say leaves the assumption.
    pub fn count(self, body: &BodyFacts, cancelled: &dyn Fn() -> bool) -> Counts {
        let measured = |tokens| Counts {
            tokens,
            label: Counted::Measured,
        };
        if let Some(ids) = body.ids {
            return measured(ids);
        }
        let asked = match self {
            Self::Bytes => None,
            Self::Server(port) => {
                let post = |path: &str, text: &[u8]| {
                    let request = Request {
                        port,
                        path,
                        body: Some(text),
                        timeout: LIMIT,
                    };
                    send(&request, cancelled)
                };
                PromptRecord::ask(0, &body.name, &body.raw, post).prompt_tokens
            }
        };
        asked.map_or_else(
            || Counts {
                tokens: (body.text_bytes as f64 / BYTES_PER_TOKEN).ceil() as u64,
                label: Counted::Assumed,
            },
            measured,
        )
    }
}
