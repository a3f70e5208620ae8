//! Binding, accepting, and stopping.

use std::future::Future;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::routes::router;
use super::{App, Backend};

/// Where and how to listen.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Host name or address.
    pub host: String,
    /// Port; 0 takes a free one.
    pub port: u16,
    /// How long running requests may take to end after SIGTERM or SIGINT.
    pub drain: Duration,
    /// How long a client may take over its request head, and may stay idle between requests.
    pub header_timeout: Duration,
    /// Connections at a time; further ones wait in the system's queue.
    pub max_connections: usize,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".into(),
            port: 8080,
            drain: Duration::from_secs(5),
            header_timeout: Duration::from_secs(30),
            max_connections: 512,
        }
    }
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The host is no address of this machine.
    #[error("cannot resolve the host {host:?}: {source}")]
    Host {
        /// As given.
        host: String,
        /// The resolver's reason.
        source: io::Error,
    },
    /// Someone else has the port.
    #[error("port {port} on {host} is in use; stop the other program or choose another --port")]
    PortInUse {
        /// As given.
        host: String,
        /// As given.
        port: u16,
    },
    /// Another reason.
    #[error("cannot listen on {host}:{port}: {source}")]
    Bind {
        /// As given.
        host: String,
        /// As given.
        port: u16,
        /// The system's reason.
        source: io::Error,
    },
    /// Signals or sockets could not be set up.
    #[error("the server cannot run: {0}")]
    Io(#[from] io::Error),
    /// The model did not load.
    #[error("{0}")]
    Load(String),
}

/// Serves until SIGTERM or SIGINT. The socket is bound first (`on_bound` is told where), then
/// `load` runs in the background; until it is done, requests get 503.
pub fn serve<L>(
    options: &ServeOptions,
    app: Arc<App>,
    on_bound: impl FnOnce(SocketAddr),
    load: L,
) -> Result<(), ServeError>
where
    L: FnOnce() -> Result<Arc<dyn Backend>, String> + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("http")
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(async {
        let listener = bind(options)?;
        let mut stop = Signals::new()?;
        on_bound(listener.local_addr()?);
        let (refused, load_failed) = tokio::sync::oneshot::channel();
        let loading = app.clone();
        std::thread::Builder::new()
            .name("load".into())
            .spawn(move || match load() {
                Ok(backend) => loading.set_backend(backend),
                // Nobody listens any more when the server is already stopping.
                Err(message) => drop(refused.send(message)),
            })?;
        let stopped = async {
            tokio::select! {
                () = stop.next() => None,
                // The sender is dropped without a word when loading went well.
                message = async {
                    match load_failed.await {
                        Ok(message) => message,
                        Err(_) => std::future::pending().await,
                    }
                } => Some(message),
            }
        };
        let failure = run(options, listener, app, stopped, stop_again()).await;
        failure.map_or(Ok(()), |message| Err(ServeError::Load(message)))
    });
    // A load that is still running must not hold up the exit.
    runtime.shutdown_background();
    outcome
}

/// Binds the address; nothing is accepted yet.
pub(super) fn bind(options: &ServeOptions) -> Result<TcpListener, ServeError> {
    let (host, port) = (options.host.clone(), options.port);
    let addresses: Vec<SocketAddr> = (host.as_str(), port)
        .to_socket_addrs()
        .map_err(|source| ServeError::Host {
            host: host.clone(),
            source,
        })?
        .collect();
    let listener = std::net::TcpListener::bind(addresses.as_slice()).map_err(|source| {
        if source.kind() == io::ErrorKind::AddrInUse {
            ServeError::PortInUse {
                host: host.clone(),
                port,
            }
        } else {
            ServeError::Bind {
                host: host.clone(),
                port,
                source,
            }
        }
    })?;
    listener.set_nonblocking(true)?;
    Ok(TcpListener::from_std(listener)?)
}

/// Accepts until `stop` resolves, then lets running requests end within the bound; `hurry` cuts
/// that short. Gives what `stop` gave.
pub(super) async fn run<T>(
    options: &ServeOptions,
    listener: TcpListener,
    app: Arc<App>,
    stop: impl Future<Output = T>,
    hurry: impl Future<Output = ()>,
) -> T {
    let router = router(app.clone());
    let seats = Arc::new(Semaphore::new(options.max_connections));
    let (stopping, stopped) = watch::channel(false);
    let mut connections = JoinSet::new();
    tokio::pin!(stop);
    let outcome = loop {
        tokio::select! {
            outcome = &mut stop => break outcome,
            stream = accept(&listener, &seats) => {
                let (stream, seat) = stream;
                let connection = connection(stream, router.clone(), options.header_timeout, stopped.clone());
                connections.spawn(async move {
                    connection.await;
                    drop(seat);
                });
            }
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    };
    drop(listener);
    app.stop_taking_work();
    // Every connection holds a receiver, or there is none and nobody to tell.
    let _ = stopping.send(true);
    let drained = async { while connections.join_next().await.is_some() {} };
    tokio::select! {
        _ = timeout(options.drain, drained) => {}
        () = hurry => {}
    }
    app.end_work();
    // Time for the last events to reach their readers.
    let ended = async { while connections.join_next().await.is_some() {} };
    let _ = timeout(Duration::from_secs(2), ended).await;
    outcome
}

/// Waits for a seat first, so that a crowd waits in the system's queue. An accept that fails
/// (too many open files) is tried again.
async fn accept(
    listener: &TcpListener,
    seats: &Arc<Semaphore>,
) -> (TcpStream, tokio::sync::OwnedSemaphorePermit) {
    loop {
        let Ok(seat) = seats.clone().acquire_owned().await else {
            // The semaphore is never closed.
            return std::future::pending().await;
        };
        match listener.accept().await {
            Ok((stream, _)) => return (stream, seat),
            Err(error) => {
                eprintln!("cannot accept a connection: {error}");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn connection(
    stream: TcpStream,
    router: Router,
    header_timeout: Duration,
    mut stopped: watch::Receiver<bool>,
) {
    // Without it a lone event could wait for the next one; it cannot fail on a fresh socket.
    let _ = stream.set_nodelay(true);
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .max_buf_size(64 * 1024);
    let service = TowerToHyperService::new(router);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    // A connection that breaks off is the client's affair: a request under way hears of it where
    // its answer cannot be sent.
    let _ = tokio::select! {
        ended = &mut connection => ended,
        () = told_to_stop(&mut stopped) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
}

async fn told_to_stop(stopped: &mut watch::Receiver<bool>) {
    // A sender that is gone has stopped too.
    let _ = stopped.wait_for(|stop| *stop).await;
}

#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }
    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// A second signal.
#[cfg(unix)]
async fn stop_again() {
    match Signals::new() {
        Ok(mut signals) => signals.next().await,
        Err(_) => std::future::pending().await,
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }
    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}

/// A second signal.
#[cfg(not(unix))]
async fn stop_again() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}
