//! Many requests at once, each on a thread and a connection of its own.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock, mpsc};
use std::thread;

use super::RawResponse;
use super::client::{Connection, Request};

/// A client thread only copies bytes.
const STACK_BYTES: usize = 256 << 10;

/// Opens a connection for every request, then writes all of them at once and reads each response
/// to its end. Responses come back in the order of the requests and lie in memory until the last
/// has ended, so that nothing is written while times are taken. The error is that the system gives
/// no more threads; nothing was sent then.
pub fn send_together(
    requests: &[Request<'_>],
    cancelled: &(dyn Fn() -> bool + Sync),
) -> io::Result<Vec<RawResponse>> {
    let gate = RwLock::new(());
    let called_off = AtomicBool::new(false);
    let (ready, is_ready) = mpsc::channel();
    thread::scope(|scope| {
        // Whoever is ready waits for this guard to go.
        let closed = gate.write().unwrap_or_else(PoisonError::into_inner);
        let mut threads = Vec::with_capacity(requests.len());
        for request in requests {
            let ready = ready.clone();
            let (gate, called_off) = (&gate, &called_off);
            let exchange = move || {
                let connection = Connection::open(request);
                // The receiver lives until every thread has ended.
                let _ = ready.send(());
                drop(gate.read().unwrap_or_else(PoisonError::into_inner));
                if called_off.load(Ordering::SeqCst) {
                    return None;
                }
                Some(match connection {
                    Ok(connection) => connection.exchange(&cancelled),
                    Err(failed) => *failed,
                })
            };
            let builder = thread::Builder::new().stack_size(STACK_BYTES);
            match builder.spawn_scoped(scope, exchange) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    called_off.store(true, Ordering::SeqCst);
                    drop(closed);
                    return Err(error);
                }
            }
        }
        // A thread that panics is not heard of; it is told below.
        drop(ready);
        for () in is_ready.iter().take(threads.len()) {}
        drop(closed);
        let lost = || io::Error::other("a client thread panicked");
        threads
            .into_iter()
            .map(|thread| thread.join().ok().flatten().ok_or_else(lost))
            .collect()
    })
}
