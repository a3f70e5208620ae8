//! The recorder's own socket: a thread a connection, until it is told to stop.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::super::WorkloadError;
use super::exchange::Client;
use super::head::RequestHead;
use super::keeper::{Keeper, Kept, Note, Ticket, is_asking};
use super::upstream::Upstream;
use crate::host::now_ns;

/// How long a silent read lasts before the stop flag and the other side are looked at.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(25);
/// A thread only copies bytes.
const STACK_BYTES: usize = 256 << 10;

/// What all connections use.
pub(super) struct Shared<'a> {
    pub(super) upstream: &'a Upstream,
    stopped: &'a AtomicBool,
    notes: Mutex<Sender<Note>>,
    tickets: Mutex<Tickets>,
}

#[derive(Default)]
struct Tickets {
    given: u32,
    origin_ns: u64,
}

impl Shared<'_> {
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    pub(super) fn tell(&self, note: Note) {
        let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        // The keeper ends early only on an error, which stops the recorder.
        let _ = notes.send(note);
    }

    fn ticket(&self, arrived_ns: u64) -> Ticket {
        let mut tickets = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        if tickets.given == 0 {
            tickets.origin_ns = arrived_ns;
        }
        tickets.given += 1;
        Ticket {
            number: tickets.given,
            arrived_ns,
            origin_ns: tickets.origin_ns,
        }
    }
}

/// A recorder that listens and has its folder.
pub struct Recorder {
    listener: TcpListener,
    keeper: Keeper,
    upstream: Upstream,
}

/// How a recording ended.
#[derive(Debug)]
pub struct Stopped {
    /// What the folder holds.
    pub kept: Kept,
}

impl Recorder {
    /// Takes the address and the folder, which must be new or empty.
    pub fn begin(
        upstream: Upstream,
        listen: SocketAddr,
        folder: &Path,
    ) -> Result<Self, WorkloadError> {
        let listener = TcpListener::bind(listen).map_err(|e| {
            WorkloadError::Wrong(format!(
                "cannot listen on {listen}: {e}; give another --listen"
            ))
        })?;
        Ok(Self {
            listener,
            keeper: Keeper::begin(folder, &upstream.url())?,
            upstream,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop` says so; answers that are under way are cut then. `said` gets a line for
    /// people about each body.
    pub fn run(
        self,
        stop: &(dyn Fn() -> bool + Sync),
        said: &(dyn Fn(&str) + Sync),
    ) -> Result<Stopped, WorkloadError> {
        let stopped = AtomicBool::new(false);
        let wrong =
            |e: io::Error| WorkloadError::Wrong(format!("the recorder's socket failed: {e}"));
        let address = self.listener.local_addr().map_err(wrong)?;
        let (sender, notes) = mpsc::channel();
        let shared = Shared {
            upstream: &self.upstream,
            stopped: &stopped,
            notes: Mutex::new(sender),
            tickets: Mutex::default(),
        };
        let (listener, keeper) = (self.listener, self.keeper);
        thread::scope(|scope| {
            let writing = scope.spawn({
                let stopped = &stopped;
                move || {
                    let kept = keeper.keep(&notes, said);
                    stopped.store(true, Ordering::SeqCst);
                    kept
                }
            });
            let watching = scope.spawn(|| {
                while !stop() && !stopped.load(Ordering::SeqCst) {
                    thread::sleep(LOOK_EVERY);
                }
                stopped.store(true, Ordering::SeqCst);
                // Wakes the listener; one that is awake already does not need it.
                let _ = TcpStream::connect_timeout(&address, Duration::from_secs(1));
            });
            // All connections end, and with them every way to the keeper, before it is waited for.
            thread::scope(|connections| {
                let shared = &shared;
                for stream in listener.incoming() {
                    if shared.is_stopped() {
                        break;
                    }
                    let Ok(stream) = stream else {
                        // Too many open files, for instance: others may close.
                        thread::sleep(LOOK_EVERY);
                        continue;
                    };
                    let serve = move || serve(stream, shared);
                    let builder = thread::Builder::new().stack_size(STACK_BYTES);
                    // No thread: the connection closes, and the client sees that.
                    let _ = builder.spawn_scoped(connections, serve);
                }
            });
            drop(shared);
            let kept = writing.join();
            // It ends by itself once the stop flag is set.
            let _ = watching.join();
            let kept =
                kept.map_err(|_| WorkloadError::Wrong("the writing thread panicked".to_owned()))??;
            Ok(Stopped { kept })
        })
    }
}

/// Serves a connection, request after request.
fn serve(stream: TcpStream, shared: &Shared<'_>) {
    let set = stream
        .set_nodelay(true)
        .and_then(|()| stream.set_read_timeout(Some(LOOK_EVERY)))
        .and_then(|()| stream.set_write_timeout(Some(LOOK_EVERY)));
    if set.is_err() {
        return;
    }
    let mut client = Client {
        stream,
        held: Vec::new(),
    };
    loop {
        let mut arrived_ns = (!client.held.is_empty()).then(now_ns);
        let head = loop {
            match RequestHead::parse(&client.held) {
                Ok(Some((head, length))) => {
                    client.held.drain(..length);
                    break head;
                }
                Ok(None) => match client.read_on(shared) {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {
                        arrived_ns.get_or_insert_with(now_ns);
                    }
                },
                Err(why) => {
                    client.refuse(shared, 400, &why);
                    return;
                }
            }
        };
        let arrived_ns = arrived_ns.unwrap_or_else(now_ns);
        let ticket = is_asking(&head.method, &head.target).then(|| shared.ticket(arrived_ns));
        if !client.exchange(&head, ticket, shared) {
            return;
        }
    }
}
