//! Requests in flight together, each on a connection of its own.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock, mpsc};
use std::thread;

use super::RawResponse;
use super::client::{Connection, Request};

/// Most requests in flight at once: each has a thread of the client, which beyond it would be what
/// is measured.
pub const MOST_AT_ONCE: usize = 1024;
/// A client thread only copies bytes.
pub(super) const STACK_BYTES: usize = 256 << 10;

/// What the workers share.
struct Crowd<'a> {
    requests: &'a [Request<'a>],
    cancelled: &'a (dyn Fn() -> bool + Sync),
    /// The next request that nobody has taken.
    next: AtomicUsize,
    /// Set when no more is to be sent.
    over: AtomicBool,
    responses: Mutex<Vec<Option<RawResponse>>>,
}

impl Crowd<'_> {
    /// Takes requests in order until there are none left, or one has failed.
    fn work(&self, first: usize, opened: Result<Connection, Box<RawResponse>>) {
        let mut taken = Some((first, opened));
        while let Some((index, connection)) = taken {
            let response = match connection {
                Ok(connection) => connection.exchange(&self.cancelled),
                Err(failed) => *failed,
            };
            if response.failed() {
                self.over.store(true, Ordering::SeqCst);
            }
            let mut responses = self
                .responses
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            responses[index] = Some(response);
            drop(responses);
            if self.over.load(Ordering::SeqCst) {
                return;
            }
            let index = self.next.fetch_add(1, Ordering::SeqCst);
            let request = self.requests.get(index);
            taken = request.map(|request| (index, Connection::open(request)));
        }
    }
}

/// Sends requests with a number of workers: each opens its first connection, all write at once,
/// and each takes the next request in order when it has its answer. As many workers as requests
/// send all of them at once. Responses come back in the order of the requests and lie in memory
/// until the last has ended, so that nothing is written while times are taken; after a request
/// that failed no further one is taken, and those not taken are absent. The error is that the
/// system gives no more threads; nothing was sent then.
pub fn send_with_workers(
    requests: &[Request<'_>],
    workers: usize,
    cancelled: &(dyn Fn() -> bool + Sync),
) -> io::Result<Vec<Option<RawResponse>>> {
    let workers = workers.clamp(1, requests.len().max(1));
    let crowd = Crowd {
        requests,
        cancelled,
        next: AtomicUsize::new(workers),
        over: AtomicBool::new(false),
        responses: Mutex::new(vec![None; requests.len()]),
    };
    let called_off = AtomicBool::new(false);
    let gate = RwLock::new(());
    let (ready, is_ready) = mpsc::channel();
    thread::scope(|scope| {
        // Whoever is ready waits for this guard to go.
        let closed = gate.write().unwrap_or_else(PoisonError::into_inner);
        let mut threads = Vec::with_capacity(workers);
        for (index, request) in requests.iter().enumerate().take(workers) {
            let ready = ready.clone();
            let (gate, crowd, called_off) = (&gate, &crowd, &called_off);
            let work = move || {
                let opened = Connection::open(request);
                // The receiver lives until every thread has ended.
                let _ = ready.send(());
                drop(gate.read().unwrap_or_else(PoisonError::into_inner));
                if !called_off.load(Ordering::SeqCst) {
                    crowd.work(index, opened);
                }
            };
            let builder = thread::Builder::new().stack_size(STACK_BYTES);
            match builder.spawn_scoped(scope, work) {
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
        for thread in threads {
            let ended = thread.join();
            ended.map_err(|_| io::Error::other("a client thread panicked"))?;
        }
        Ok(())
    })?;
    Ok(crowd
        .responses
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner))
}
