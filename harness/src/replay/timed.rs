//! Requests at scheduled times, whether or not others are answered.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::RawResponse;
use super::client::{Connection, Request};
use super::crowd::{MOST_AT_ONCE, STACK_BYTES};
use crate::host::now_ns;

/// How long before its time a request gets its thread and its connection.
const AHEAD_NS: u64 = 30_000_000;
/// Longest sleep between looks at the interrupt.
const LOOK_EVERY_NS: u64 = 50_000_000;

/// A response, and the monotonic time at which its request was due.
#[derive(Clone, Debug)]
pub struct Timed {
    /// When the request was to be written; how late it was is in the response's `sent_ns`.
    pub due_ns: u64,
    /// What came.
    pub response: RawResponse,
}

/// Sends each request at its time, `offsets_ns` (ascending) after a start that lies a little ahead
/// of now. Responses come back in the order of the requests; after one that failed, no further one
/// is sent, and those not sent are absent. The error is that the system gives no more threads, or
/// that too many requests are in flight.
pub fn send_on_schedule(
    requests: &[Request<'_>],
    offsets_ns: &[u64],
    cancelled: &(dyn Fn() -> bool + Sync),
) -> io::Result<Vec<Option<Timed>>> {
    let start_ns = now_ns() + 2 * AHEAD_NS;
    let over = AtomicBool::new(false);
    let in_flight = AtomicUsize::new(0);
    thread::scope(|scope| {
        let mut threads = Vec::with_capacity(requests.len());
        let mut refused = None;
        for (request, offset) in requests.iter().zip(offsets_ns) {
            let due_ns = start_ns + offset;
            let stopped = || over.load(Ordering::SeqCst) || cancelled();
            if !sleep_until(due_ns.saturating_sub(AHEAD_NS), &stopped) {
                break;
            }
            if in_flight.fetch_add(1, Ordering::SeqCst) >= MOST_AT_ONCE {
                refused = Some(io::Error::other(format!(
                    "{MOST_AT_ONCE} requests are in flight and unanswered: the rate is far above what the server answers"
                )));
                break;
            }
            let (over, in_flight) = (&over, &in_flight);
            let exchange = move || {
                let opened = Connection::open(request);
                let in_time = sleep_until(due_ns, &|| over.load(Ordering::SeqCst) || cancelled());
                let response = in_time.then(|| match opened {
                    Ok(connection) => connection.exchange(&cancelled),
                    Err(failed) => *failed,
                });
                if response.as_ref().is_some_and(RawResponse::failed) {
                    over.store(true, Ordering::SeqCst);
                }
                in_flight.fetch_sub(1, Ordering::SeqCst);
                response.map(|response| Timed { due_ns, response })
            };
            let builder = thread::Builder::new().stack_size(STACK_BYTES);
            match builder.spawn_scoped(scope, exchange) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    refused = Some(error);
                    break;
                }
            }
        }
        if let Some(error) = refused {
            over.store(true, Ordering::SeqCst);
            return Err(error);
        }
        let mut responses = Vec::with_capacity(requests.len());
        for thread in threads {
            let ended = thread.join();
            responses.push(ended.map_err(|_| io::Error::other("a client thread panicked"))?);
        }
        responses.resize(requests.len(), None);
        Ok(responses)
    })
}

/// Sleeps to a moment of the monotonic clock; `false` when it was stopped before.
fn sleep_until(ns: u64, stopped: &dyn Fn() -> bool) -> bool {
    loop {
        if stopped() {
            return false;
        }
        let left = ns.saturating_sub(now_ns());
        if left == 0 {
            return true;
        }
        thread::sleep(Duration::from_nanos(left.min(LOOK_EVERY_NS)));
    }
}
