//! Request bodies in (bounded in size and time), event streams out.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::header;
use http_body::Frame;
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use super::ApiError;

/// A body must have arrived within this time.
const BODY_SECONDS: u64 = 60;
/// A refused body is read and thrown away for this long, so that a client which sends all of it
/// before it reads anything still gets the answer.
const DISCARD: Duration = Duration::from_secs(10);
/// And up to this size.
const DISCARD_BYTES: usize = 1 << 30;

/// Reads a JSON body. Nothing beyond `limit` bytes is ever held. The content type is not looked
/// at, as llama-server does not.
pub(super) async fn read_json(request: Request, limit: usize) -> Result<Value, ApiError> {
    let declared = request
        .headers()
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let waits = request.headers().contains_key(header::EXPECT);
    let mut body = request.into_body();
    if declared.is_some_and(|length| length > limit) {
        if !waits {
            tokio::spawn(discard(body));
        }
        return Err(ApiError::too_large(limit));
    }
    let deadline = Instant::now() + Duration::from_secs(BODY_SECONDS);
    let mut bytes = Vec::with_capacity(declared.unwrap_or(0));
    loop {
        let frame = timeout_at(deadline, body.frame())
            .await
            .map_err(|_| ApiError::body_timeout(BODY_SECONDS))?;
        let Some(frame) = frame else { break };
        let frame =
            frame.map_err(|error| ApiError::invalid(format!("the body broke off: {error}")))?;
        if let Ok(data) = frame.into_data() {
            if bytes.len() + data.len() > limit {
                tokio::spawn(discard(body));
                return Err(ApiError::too_large(limit));
            }
            bytes.extend_from_slice(&data);
        }
    }
    parse(&bytes)
}

/// Parses JSON; the parser refuses depths beyond 128.
fn parse(bytes: &[u8]) -> Result<Value, ApiError> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(ApiError::invalid(
            "the body is empty; a JSON object is expected",
        ));
    }
    let value: Value = serde_json::from_slice(bytes)
        .map_err(|error| ApiError::invalid(format!("the body is not valid JSON: {error}")))?;
    if value.is_object() {
        Ok(value)
    } else {
        Err(ApiError::invalid(
            "the body must be a JSON object, like {\"prompt\": \"...\"}",
        ))
    }
}

async fn discard(mut body: Body) {
    let _ended = timeout(DISCARD, async {
        let mut seen = 0usize;
        while let Some(Ok(frame)) = body.frame().await {
            seen += frame.data_ref().map_or(0, Bytes::len);
            if seen > DISCARD_BYTES {
                break;
            }
        }
    })
    .await;
}

/// A response body fed through a bounded channel: a slow reader holds up its own feeder only,
/// and a reader that goes away closes the channel.
pub(super) struct ChannelBody {
    receiver: mpsc::Receiver<Bytes>,
}

impl ChannelBody {
    /// The feeding end and the body.
    pub(super) fn new(capacity: usize) -> (mpsc::Sender<Bytes>, Self) {
        let (sender, receiver) = mpsc::channel(capacity);
        (sender, Self { receiver })
    }
}

impl HttpBody for ChannelBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.receiver
            .poll_recv(context)
            .map(|data| data.map(|data| Ok(Frame::data(data))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_json_is_located() {
        let message = |text: &str| parse(text.as_bytes()).unwrap_err().message().to_owned();
        insta::assert_snapshot!(message("{\"a\": 1,\n \"b\" 2}"), @"the body is not valid JSON: expected `:` at line 2 column 6");
        insta::assert_snapshot!(message(" \n"), @"the body is empty; a JSON object is expected");
        insta::assert_snapshot!(message("[1]"), @r#"the body must be a JSON object, like {"prompt": "..."}"#);
        let deep = format!("{{\"a\":{}", "[".repeat(100_000));
        assert!(message(&deep).contains("recursion limit exceeded"));
    }
}
