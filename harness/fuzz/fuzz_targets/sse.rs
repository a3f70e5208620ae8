//! Any bytes, split anywhere: no panic, the same events however they are split, every event's end
//! inside the body, and an interpretation that never panics and always repeats.
#![no_main]

use libfuzzer_sys::fuzz_target;
use palindrome_harness::replay::{
    Arrival, RawResponse, RequestHeader, RequestRecord, SseParser, parse_sse,
};
use palindrome_harness::server::ServerKind;

fuzz_target!(|bytes: &[u8]| {
    let Some((&cut, body)) = bytes.split_first() else { return };
    let cut = usize::from(cut).max(1);
    let (whole, bad_end) = parse_sse(body);

    let mut parser = SseParser::new();
    let mut split = Vec::new();
    let failed = body.chunks(cut).any(|piece| parser.push(piece, &mut split).is_err());
    assert_eq!(whole, split);
    assert_eq!(bad_end.is_some(), failed || parser.is_mid_event());
    assert!(whole.windows(2).all(|w| w[0].end < w[1].end));
    assert!(whole.last().is_none_or(|e| e.end <= body.len() as u64));

    let arrivals = (1..=body.len().div_ceil(cut))
        .map(|i| Arrival { ns: i as u64, end: (i * cut).min(body.len()) as u64 })
        .collect();
    let raw = RawResponse {
        sent_ns: 0,
        done_ns: u64::MAX,
        status: Some(200),
        content_type: Some("text/event-stream".into()),
        arrivals,
        error: None,
        body: body.to_vec(),
    };
    let kind = ServerKind::PalindromeEngine;
    let seen = RequestRecord::assemble(RequestHeader::default(), &raw, kind);
    assert_eq!(seen, seen.recompute(&raw, kind));
    assert!(seen.first_token_ns <= seen.last_token_ns);
});
