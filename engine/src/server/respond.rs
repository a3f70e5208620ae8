//! A generation as a response: whole, or as server-sent events.

use axum::body::{Body, Bytes};
use axum::http::{Response, StatusCode, header};
use serde_json::Value;
use tokio::sync::mpsc;

use super::ApiError;
use super::body::ChannelBody;
use super::error::json_response;
use super::generation::{Generation, Progress};
use super::reply::{Reply, so_far};
use super::request::Common;

/// Events that may wait for a slow reader before its own feeder does.
const EVENTS_AHEAD: usize = 64;

/// The response to one generation.
pub async fn respond<R: Reply>(
    mut generation: Generation,
    mut reply: R,
    common: &Common,
) -> Result<Response<Body>, ApiError> {
    if common.stream {
        return Ok(events(generation, reply, common.timings_per_token));
    }
    let mut steps = Vec::new();
    loop {
        match generation.next().await? {
            Progress::Step(step) => steps.push(step),
            Progress::End(outcome) => {
                let tokenizer = generation.backend().tokenizer();
                let whole = reply.whole(tokenizer, steps, outcome);
                return Ok(json_response(StatusCode::OK, &whole));
            }
        }
    }
}

/// The headers go out at once, the events as they come, each in its own write.
fn events<R: Reply>(generation: Generation, reply: R, timed: bool) -> Response<Body> {
    let (sender, body) = ChannelBody::new(EVENTS_AHEAD);
    tokio::spawn(feed(generation, reply, timed, sender));
    let mut response = Response::new(Body::new(body));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("text/event-stream"),
    );
    headers.insert(
        header::CACHE_CONTROL,
        header::HeaderValue::from_static("no-cache"),
    );
    headers.insert(
        header::HeaderName::from_static("x-accel-buffering"),
        header::HeaderValue::from_static("no"),
    );
    response
}

/// Ends, and with it the generation, when the reader goes away. When `timed`, every event of a
/// token carries the figures so far.
async fn feed<R: Reply>(
    mut generation: Generation,
    mut reply: R,
    timed: bool,
    sender: mpsc::Sender<Bytes>,
) {
    loop {
        let progress = tokio::select! {
            biased;
            () = sender.closed() => return,
            progress = generation.next() => progress,
        };
        let tokenizer = generation.backend().tokenizer();
        let (mut events, ended) = match progress {
            Ok(Progress::Step(step)) => (reply.step(tokenizer, step), false),
            Ok(Progress::End(outcome)) => (reply.end(tokenizer, outcome), true),
            Err(error) => (vec![error.body()], true),
        };
        if timed && !ended {
            let figures = generation.figures_so_far();
            for event in &mut events {
                so_far(event, &figures);
            }
        }
        for event in &events {
            if sender.send(event_bytes(event)).await.is_err() {
                return;
            }
        }
        if ended {
            if reply.ends_in_done() {
                // A reader that left at the very end needs nothing more.
                let _ = sender.send(Bytes::from_static(b"data: [DONE]\n\n")).await;
            }
            return;
        }
    }
}

fn event_bytes(event: &Value) -> Bytes {
    Bytes::from(format!("data: {event}\n\n"))
}
