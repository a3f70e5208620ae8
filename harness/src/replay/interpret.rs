//! From raw bytes and arrival times to facts: pure, so that an audit can compute it again.

use serde_json::Value;

use super::answer::{Answer, Piece};
use super::hash::{text_hash, token_hash};
use super::sse::{SseEvent, parse_sse};
use super::{RawResponse, RequestRecord, TokenSource};
use crate::server::ServerKind;

/// The part of a record that does not come from the response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestHeader {
    /// Position in the session, from 0.
    pub index: u32,
    /// Body's file name in `workload/`.
    pub body: String,
    /// sha256 of the bytes sent.
    pub body_sha256: String,
    /// Warm-ups are recorded, not scored.
    pub scored: bool,
    /// Raw stream's file stem in `streams/`.
    pub stream: String,
    /// The plan's phase; absent where the protocol is the default.
    pub phase: Option<String>,
    /// When it was to be sent, monotonic; absent where the plan gives no times.
    pub due_ns: Option<u64>,
    /// Whether gaps between tokens are recorded where requests go one at a time too.
    pub gaps: bool,
}

impl RequestRecord {
    /// A record of a request: the given facts and everything that the raw response says. Never
    /// fails: what is wrong with a response is a fact too (`error`).
    pub fn assemble(header: RequestHeader, raw: &RawResponse, kind: ServerKind) -> Self {
        let gaps = header.gaps || header.phase.is_some();
        let mut record = Self {
            index: header.index,
            body: header.body,
            body_sha256: header.body_sha256,
            scored: header.scored,
            stream: header.stream,
            phase: header.phase,
            due_ns: header.due_ns,
            sent_ns: raw.sent_ns,
            status: raw.status,
            first_byte_ns: raw.arrivals.first().map(|a| a.ns),
            first_token_ns: None,
            first_content_ns: None,
            last_token_ns: None,
            done_ns: raw.done_ns,
            prompt_tokens: None,
            cached_tokens: None,
            generated_tokens: None,
            token_source: None,
            first_event_tokens: None,
            first_event_source: None,
            token_gaps_ns: Vec::new(),
            client_cpu_ns: raw.client_cpu_ns,
            finish_reason: None,
            prompt_hash: None,
            generated_hash: None,
            text_hash: None,
            engine: None,
            error: None,
        };
        let streamed = raw
            .content_type
            .as_deref()
            .is_some_and(|t| t.starts_with("text/event-stream"));
        let problem = match raw.status {
            None => Some("no HTTP response".to_owned()),
            Some(200) if streamed => read_stream(raw, kind, gaps, &mut record),
            Some(200) => read_whole(raw, kind, &mut record),
            Some(status) => Some(format!("HTTP {status}: {}", refusal(&raw.body))),
        };
        // The client's own trouble (a reset, a timeout) explains a broken body better than the body.
        record.error = raw.error.clone().or(problem);
        record
    }

    /// The record again, computed from its own header fields and the raw response; `gaps` as of
    /// [`RequestHeader::gaps`]. An audit compares the two.
    #[must_use]
    pub fn recompute(&self, raw: &RawResponse, kind: ServerKind, gaps: bool) -> Self {
        let header = RequestHeader {
            index: self.index,
            body: self.body.clone(),
            body_sha256: self.body_sha256.clone(),
            scored: self.scored,
            stream: self.stream.clone(),
            phase: self.phase.clone(),
            due_ns: self.due_ns,
            gaps,
        };
        Self::assemble(header, raw, kind)
    }
}

/// Arrival of the byte before offset `end`.
fn arrived(raw: &RawResponse, end: u64) -> Option<u64> {
    let at = raw.arrivals.partition_point(|a| a.end < end);
    raw.arrivals.get(at).map(|a| a.ns)
}

fn read_stream(
    raw: &RawResponse,
    kind: ServerKind,
    gaps: bool,
    seen: &mut RequestRecord,
) -> Option<String> {
    let (events, bad_end) = parse_sse(&raw.body);
    let mut answer = Answer::default();
    let mut bearing = 0_u64;
    let mut done = false;
    let mut problem = None;
    for event in &events {
        if done {
            problem.get_or_insert_with(|| "an event after [DONE]".to_owned());
            break;
        }
        if event.data == "[DONE]" {
            done = true;
            continue;
        }
        let chunk = match chunk_of(event) {
            Ok(chunk) => chunk,
            Err(reason) => {
                problem.get_or_insert(reason);
                continue;
            }
        };
        let piece = Piece::of_chunk(&chunk);
        if piece.bears_tokens() {
            bearing += 1;
            let ns = arrived(raw, event.end);
            if seen.first_token_ns.is_none() {
                seen.first_token_ns = ns;
                let (tokens, source) = piece.tokens_so_far();
                seen.first_event_tokens = Some(tokens);
                seen.first_event_source = Some(source);
            }
            if piece.shows_content() && seen.first_content_ns.is_none() {
                seen.first_content_ns = ns;
            }
            if let (Some(before), Some(ns), true) = (seen.last_token_ns, ns, gaps) {
                seen.token_gaps_ns.push(ns.saturating_sub(before));
            }
            seen.last_token_ns = ns;
        }
        answer.add(&piece, &chunk);
    }
    settle(&answer, kind, seen);
    if seen.token_source.is_none() && bearing > 0 {
        seen.generated_tokens = Some(bearing);
        seen.token_source = Some(TokenSource::Events);
    }
    let ended = answer.finish_reason.is_some() && (done || answer.plain_stop);
    problem
        .or(bad_end)
        .or_else(|| answer.contradiction())
        .or_else(|| {
            (!ended).then(|| "the stream ended without a finish reason and [DONE]".to_owned())
        })
}

fn chunk_of(event: &SseEvent) -> Result<Value, String> {
    let chunk: Value = serde_json::from_str(&event.data)
        .map_err(|e| format!("the event that ends at byte {} is not JSON: {e}", event.end))?;
    if !chunk.is_object() {
        return Err(format!(
            "the event that ends at byte {} is not a JSON object",
            event.end
        ));
    }
    if event.name.as_deref() == Some("error") || chunk.get("error").is_some_and(|e| !e.is_null()) {
        return Err(format!(
            "the server reported: {}",
            refusal(event.data.as_bytes())
        ));
    }
    Ok(chunk)
}

fn read_whole(raw: &RawResponse, kind: ServerKind, seen: &mut RequestRecord) -> Option<String> {
    let body: Value = match serde_json::from_slice(&raw.body) {
        Ok(body @ Value::Object(_)) => body,
        Ok(_) => return Some("the response is not a JSON object".to_owned()),
        Err(e) => return Some(format!("the response is not JSON: {e}")),
    };
    if body.get("error").is_some_and(|e| !e.is_null()) {
        return Some(format!("the server reported: {}", refusal(&raw.body)));
    }
    let mut answer = Answer::default();
    answer.add(&Piece::of_chunk(&body), &body);
    settle(&answer, kind, seen);
    answer.contradiction().or_else(|| {
        answer
            .finish_reason
            .is_none()
            .then(|| "the response has no finish reason".to_owned())
    })
}

/// Counts, hashes and the server's own figures.
fn settle(answer: &Answer, kind: ServerKind, seen: &mut RequestRecord) {
    let timings = answer.engine.as_ref();
    let said = answer
        .completion_tokens
        .or(timings.and_then(|t| t.predicted_n));
    if answer.saw_ids {
        seen.generated_tokens = Some(answer.ids.len() as u64);
        seen.token_source = Some(TokenSource::StreamIds);
        seen.generated_hash = Some(token_hash(&answer.ids));
    } else if let Some(said) = said {
        seen.generated_tokens = Some(said);
        seen.token_source = Some(TokenSource::Usage);
    }
    let in_full = timings.and_then(|t| Some(t.prompt_n? + t.cache_n?));
    seen.prompt_tokens = answer.prompt_tokens.or(in_full).or(answer.tokens_evaluated);
    seen.cached_tokens = timings.and_then(|t| t.cache_n).or(answer.cached_tokens);
    seen.finish_reason.clone_from(&answer.finish_reason);
    if matches!(kind, ServerKind::PalindromeEngine | ServerKind::Mock) {
        seen.prompt_hash.clone_from(&answer.prompt_hash);
        seen.generated_hash = seen
            .generated_hash
            .take()
            .or_else(|| answer.generated_hash.clone());
    }
    if answer.finish_reason.is_some() {
        seen.text_hash = Some(text_hash(
            &answer.reasoning,
            &answer.content,
            &answer.tool_text,
        ));
    }
    seen.engine.clone_from(&answer.engine);
}

/// The message of an error body, in one line of at most 300 characters.
fn refusal(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let message = serde_json::from_str::<Value>(&text).ok().and_then(|v| {
        let error = v.get("error").unwrap_or(&v);
        let message = error
            .get("message")
            .and_then(Value::as_str)
            .or(error.as_str());
        message.map(str::to_owned)
    });
    let line = message.unwrap_or_else(|| text.into_owned());
    line.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .take(300)
        .collect()
}

#[cfg(test)]
#[path = "interpret_tests.rs"]
mod tests;
