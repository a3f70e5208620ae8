//! Responses of each dialect, and broken ones, to the facts they must give.

use super::*;
use crate::replay::Arrival;

const MS: u64 = 1_000_000;

fn interpret(raw: &RawResponse, kind: ServerKind) -> RequestRecord {
    RequestRecord::assemble(RequestHeader::default(), raw, kind)
}

/// A response whose events arrive one a millisecond, the first at 10 ms.
fn raw(events: &[&str]) -> RawResponse {
    let mut body = Vec::new();
    let mut arrivals = Vec::new();
    for (i, event) in events.iter().enumerate() {
        body.extend_from_slice(format!("data: {event}\n\n").as_bytes());
        arrivals.push(Arrival {
            ns: (10 + i as u64) * MS,
            end: body.len() as u64,
        });
    }
    RawResponse {
        client_cpu_ns: None,
        sent_ns: MS,
        done_ns: 90 * MS,
        status: Some(200),
        content_type: Some("text/event-stream; charset=utf-8".into()),
        arrivals,
        error: None,
        body,
    }
}

fn whole(status: u16, body: &str) -> RawResponse {
    RawResponse {
        client_cpu_ns: None,
        status: Some(status),
        content_type: Some("application/json".into()),
        arrivals: vec![Arrival {
            ns: 10 * MS,
            end: body.len() as u64,
        }],
        body: body.as_bytes().to_vec(),
        ..raw(&[])
    }
}

const ROLE: &str =
    r#"{"choices":[{"delta":{"role":"assistant","content":null},"finish_reason":null}]}"#;
const THINK: &str = r#"{"choices":[{"delta":{"reasoning_content":"hm"},"finish_reason":null}]}"#;
const SAY: &str = r#"{"choices":[{"delta":{"content":"yes"},"finish_reason":null}]}"#;
const STOP: &str = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;

#[test]
fn a_plain_stream_is_counted_by_events_and_says_so() {
    let seen = interpret(
        &raw(&[ROLE, THINK, SAY, SAY, STOP, "[DONE]"]),
        ServerKind::Openai,
    );
    assert_eq!(seen.error, None);
    assert_eq!(seen.first_byte_ns, Some(10 * MS));
    assert_eq!(
        seen.first_token_ns,
        Some(11 * MS),
        "reasoning counts, the role does not"
    );
    assert_eq!(seen.first_content_ns, Some(12 * MS));
    assert_eq!(seen.last_token_ns, Some(13 * MS));
    assert_eq!(
        (seen.generated_tokens, seen.token_source),
        (Some(3), Some(TokenSource::Events))
    );
    assert_eq!(seen.first_event_tokens, Some(1));
    assert_eq!(seen.first_event_source, Some(TokenSource::Events));
    assert_eq!(seen.text_hash, Some(text_hash("hm", "yesyes", "")));
    assert_eq!(
        (seen.prompt_tokens, seen.cached_tokens, seen.generated_hash),
        (None, None, None)
    );
}

#[test]
fn usage_and_timings_are_believed_over_events() {
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":5}}}"#;
    let seen = interpret(
        &raw(&[ROLE, SAY, STOP, usage, "[DONE]"]),
        ServerKind::Openai,
    );
    assert_eq!(
        (seen.generated_tokens, seen.token_source),
        (Some(9), Some(TokenSource::Usage))
    );
    assert_eq!(
        (seen.prompt_tokens, seen.cached_tokens),
        (Some(20), Some(5))
    );
    let timed = r#"{"choices":[{"delta":{},"finish_reason":"length"}],"timings":{"cache_n":3,"prompt_n":7,"prompt_ms":2.5,"predicted_n":4,"predicted_ms":8.0}}"#;
    let seen = interpret(&raw(&[ROLE, SAY, timed, "[DONE]"]), ServerKind::LlamaCpp);
    assert_eq!(
        (
            seen.prompt_tokens,
            seen.cached_tokens,
            seen.generated_tokens
        ),
        (Some(10), Some(3), Some(4))
    );
    assert_eq!(seen.finish_reason.as_deref(), Some("length"));
    assert_eq!(seen.engine.unwrap().predicted_ms, Some(8.0));
}

#[test]
fn timings_on_every_chunk_tell_how_many_tokens_the_first_event_stands_for() {
    let first = r#"{"choices":[{"delta":{"reasoning_content":"a"},"finish_reason":null}],"timings":{"predicted_n":4}}"#;
    let last = r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"timings":{"predicted_n":6}}"#;
    let seen = interpret(
        &raw(&[ROLE, first, SAY, last, "[DONE]"]),
        ServerKind::LlamaCpp,
    );
    assert_eq!(
        (seen.first_event_tokens, seen.first_event_source),
        (Some(4), Some(TokenSource::Usage)),
        "three header tokens came before the first that shows"
    );
    assert_eq!(
        (seen.first_event_tokens, seen.generated_tokens),
        (Some(4), Some(6))
    );
}

#[test]
fn ids_in_the_stream_are_counted_and_hashed_and_checked() {
    let ids = r#"{"tokens":[7,8],"choices":[{"delta":{"content":"ab"},"finish_reason":null}]}"#;
    let hidden = r#"{"tokens":[9],"choices":[{"delta":{},"finish_reason":null}]}"#;
    let end = |hash: &str| {
        format!(
            r#"{{"choices":[{{"delta":{{}},"finish_reason":"stop"}}],"token_hashes":{{"prompt":"p","generated":"{hash}"}}}}"#
        )
    };
    let good = end(&token_hash(&[7, 8, 9]));
    let seen = interpret(
        &raw(&[ROLE, ids, hidden, &good, "[DONE]"]),
        ServerKind::PalindromeEngine,
    );
    assert_eq!(seen.error, None);
    assert_eq!(
        (seen.generated_tokens, seen.token_source),
        (Some(3), Some(TokenSource::StreamIds))
    );
    assert_eq!(seen.first_event_tokens, Some(2));
    assert_eq!(
        seen.last_token_ns,
        Some(12 * MS),
        "ids without text are tokens too"
    );
    assert_eq!(seen.generated_hash, Some(token_hash(&[7, 8, 9])));
    assert_eq!(seen.prompt_hash.as_deref(), Some("p"));
    let seen = interpret(
        &raw(&[ROLE, ids, &end("lie"), "[DONE]"]),
        ServerKind::PalindromeEngine,
    );
    assert!(
        seen.error
            .unwrap()
            .contains("token hash lie is not that of the ids")
    );
}

#[test]
fn llama_servers_own_route_ends_with_stop_and_without_done() {
    let piece = r#"{"content":"ab","tokens":[5],"stop":false}"#;
    let last = r#"{"content":"","tokens":[],"stop":true,"stop_type":"limit","tokens_predicted":1,"tokens_evaluated":12,"tokens_cached":13}"#;
    let seen = interpret(&raw(&[piece, last]), ServerKind::LlamaCpp);
    assert_eq!(seen.error, None);
    assert_eq!(seen.finish_reason.as_deref(), Some("limit"));
    assert_eq!(
        (seen.prompt_tokens, seen.generated_tokens),
        (Some(12), Some(1))
    );
    assert_eq!(
        seen.cached_tokens, None,
        "tokens_cached is what the cache holds, not what it gave"
    );
}

#[test]
fn tool_calls_are_visible_answer() {
    let call = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]},"finish_reason":null}]}"#;
    let seen = interpret(&raw(&[ROLE, call, STOP, "[DONE]"]), ServerKind::Openai);
    assert_eq!(seen.first_content_ns, Some(11 * MS));
    assert_eq!(seen.text_hash, Some(text_hash("", "", "f{}")));
}

#[test]
fn a_whole_answer_has_no_token_times() {
    let body = r#"{"choices":[{"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}"#;
    let seen = interpret(&whole(200, body), ServerKind::Openai);
    assert_eq!(seen.error, None);
    assert_eq!((seen.first_token_ns, seen.last_token_ns), (None, None));
    assert_eq!(
        (seen.generated_tokens, seen.first_byte_ns),
        (Some(2), Some(10 * MS))
    );
    assert_eq!(seen.text_hash, Some(text_hash("", "hi", "")));
}

#[test]
fn broken_answers_say_how() {
    let error = |raw: &RawResponse| interpret(raw, ServerKind::Openai).error.unwrap();
    assert_eq!(
        error(&whole(400, r#"{"error":{"message":"too\nlong"}}"#)),
        "HTTP 400: too long"
    );
    assert_eq!(error(&whole(502, "<html>")), "HTTP 502: <html>");
    assert!(error(&whole(200, "{")).contains("not JSON"));
    assert!(error(&whole(200, "[]")).contains("not a JSON object"));
    assert!(error(&whole(200, "{}")).contains("no finish reason"));
    assert!(error(&raw(&[ROLE, SAY, "[DONE]"])).contains("without a finish reason"));
    assert!(error(&raw(&[ROLE, SAY, STOP])).contains("[DONE]"));
    assert!(error(&raw(&[ROLE, "nonsense", STOP, "[DONE]"])).contains("is not JSON"));
    assert!(
        error(&raw(&[r#"{"error":{"message":"slot lost"}}"#]))
            .contains("the server reported: slot lost")
    );
    assert!(error(&raw(&[STOP, "[DONE]", SAY])).contains("after [DONE]"));
    let silent = RawResponse {
        client_cpu_ns: None,
        status: None,
        error: Some("cannot connect".into()),
        ..raw(&[])
    };
    assert_eq!(error(&silent), "cannot connect");
    let seen = interpret(
        &RawResponse {
            client_cpu_ns: None,
            error: Some("reset".into()),
            ..raw(&[ROLE, SAY, SAY])
        },
        ServerKind::Openai,
    );
    assert_eq!(
        (seen.error.as_deref(), seen.generated_tokens),
        (Some("reset"), Some(2)),
        "what came is kept"
    );
}

#[test]
fn a_record_recomputes_to_itself() {
    let raw = raw(&[ROLE, THINK, SAY, STOP, "[DONE]"]);
    let header = RequestHeader {
        index: 3,
        body: "b.json".into(),
        body_sha256: "x".into(),
        scored: true,
        stream: "03-b".into(),
        ..RequestHeader::default()
    };
    let record = RequestRecord::assemble(header, &raw, ServerKind::Openai);
    assert_eq!(record.recompute(&raw, ServerKind::Openai, false), record);
}
