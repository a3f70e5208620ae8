//! The mock's timeline, as its file gives it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

/// A whole script. Unknown keys are refused.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    /// Whose stream it imitates.
    pub dialect: Dialect,
    /// The health route answers 503 until then.
    pub ready_after_ms: f64,
    /// Ends with exit code 3 instead of becoming ready.
    pub die_before_ready: bool,
    /// Answers 404 where the dialect would turn a chat into prompt ids.
    pub no_prompt_routes: bool,
    /// What it prints once it listens, line by line.
    pub log: Vec<String>,
    /// JSON that `GET /props` answers; the health route's answer if absent.
    pub props: Option<String>,
    /// Settings by name, each with a factor on the times of its answers. A request chooses one by its
    /// field `setting`, or a call to `/setting` does for all that follow.
    pub settings: BTreeMap<String, f64>,
    /// Answers to posts in order; the last one repeats.
    #[serde(rename = "reply")]
    pub replies: Vec<Reply>,
}

/// Whose stream is imitated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// Token ids and hashes in the stream.
    #[default]
    PalindromeEngine,
    /// No ids; `timings` at the end.
    LlamaCpp,
}

/// One answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reply {
    /// HTTP status; all but 200 send an error body.
    pub status: u16,
    /// Prompt tokens, cached ones included.
    pub prompt_tokens: u32,
    /// Prompt tokens said to come from the cache.
    pub cached_tokens: u32,
    /// From the request's last byte to the first chunk with tokens.
    pub prompt_ms: f64,
    /// Tokens generated.
    pub tokens: u32,
    /// How many of the first ones are reasoning.
    pub reasoning_tokens: u32,
    /// Between chunks.
    pub gap_ms: f64,
    /// Tokens a chunk.
    pub per_chunk: u32,
    /// Longer gaps: (before which chunk, milliseconds more).
    pub stalls: Vec<(u32, f64)>,
    /// Writes each event in pieces of this many bytes, if given.
    pub split_bytes: Option<usize>,
    /// Writes at this interval all that is due by then, in one piece and unannounced, if given: for
    /// more tokens a second than there can be writes. Answers then end with `done`.
    pub write_every_ms: Option<f64>,
    /// How it ends.
    pub end: End,
    /// Chunks with tokens sent before an end other than `done`; all if absent.
    pub cut_after: Option<u32>,
}

impl Default for Reply {
    fn default() -> Self {
        Self {
            status: 200,
            prompt_tokens: 10,
            cached_tokens: 0,
            prompt_ms: 5.0,
            tokens: 8,
            reasoning_tokens: 0,
            gap_ms: 2.0,
            per_chunk: 1,
            stalls: Vec::new(),
            split_bytes: None,
            write_every_ms: None,
            end: End::Done,
            cut_after: None,
        }
    }
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// Finish reason, usage, `[DONE]`, last chunk.
    Done,
    /// A well-formed HTTP end, but no finish reason and no `[DONE]`.
    Truncate,
    /// The connection is closed in the middle of an event.
    Disconnect,
    /// Bytes that are no events.
    Garbage,
    /// An event that is not JSON.
    BadJson,
    /// The process exits with code 9.
    Die,
    /// Nothing more is sent, the connection stays open.
    Hang,
}

impl Script {
    /// Reads a script file.
    pub fn load(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// The same with another time between chunks, in milliseconds.
    #[must_use]
    pub fn with_gap(mut self, gap_ms: f64) -> Self {
        if self.replies.is_empty() {
            self.replies.push(Reply::default());
        }
        for reply in &mut self.replies {
            reply.gap_ms = gap_ms;
        }
        self
    }

    /// The answer to the post with this number, from 0.
    pub fn reply(&self, number: usize) -> Reply {
        self.replies
            .get(number)
            .or(self.replies.last())
            .cloned()
            .unwrap_or_default()
    }
}

impl Reply {
    /// The same answer with all its times so many times as long.
    #[must_use]
    pub fn slower(mut self, factor: f64) -> Self {
        self.prompt_ms *= factor;
        self.gap_ms *= factor;
        for (_, ms) in &mut self.stalls {
            *ms *= factor;
        }
        self
    }

    /// When each chunk with tokens is due, in milliseconds from the request's last byte, and how
    /// many tokens it carries.
    pub fn schedule(&self) -> Vec<(f64, u32)> {
        let per_chunk = self.per_chunk.max(1);
        let mut at = self.prompt_ms;
        let mut left = self.tokens;
        let mut chunks = Vec::new();
        while left > 0 {
            let number = chunks.len() as u32;
            let more: f64 = self
                .stalls
                .iter()
                .filter(|(before, _)| *before == number)
                .map(|(_, ms)| ms)
                .sum();
            if number > 0 {
                at += self.gap_ms;
            }
            at += more;
            let tokens = left.min(per_chunk);
            chunks.push((at, tokens));
            left -= tokens;
        }
        chunks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_adds_gaps_and_stalls() {
        let reply = Reply {
            prompt_ms: 10.0,
            tokens: 5,
            per_chunk: 2,
            gap_ms: 3.0,
            stalls: vec![(2, 100.0)],
            ..Reply::default()
        };
        assert_eq!(reply.schedule(), [(10.0, 2), (13.0, 2), (116.0, 1)]);
    }
}
