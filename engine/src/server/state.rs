//! What all requests share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use super::{ApiError, ApiKeys, Backend};

/// How a server answers.
#[derive(Clone, Debug, Default)]
pub struct AppOptions {
    /// Keys that are accepted.
    pub keys: ApiKeys,
    /// The model's name towards clients; `None`: its own.
    pub alias: Option<String>,
    /// As given on the command line, for `/props`.
    pub model_path: String,
    /// Largest request body in bytes.
    pub body_limit_bytes: usize,
}

/// The shared state of one server: it exists before the model is loaded.
pub struct App {
    pub(super) options: AppOptions,
    backend: OnceLock<Arc<dyn Backend>>,
    started: u64,
    stopping: AtomicBool,
}

impl App {
    /// State without a model: every route but `/health` answers 503 until [`App::set_backend`].
    pub fn new(options: AppOptions) -> Self {
        Self {
            options,
            backend: OnceLock::new(),
            started: unix_seconds(),
            stopping: AtomicBool::new(false),
        }
    }
    /// The model is ready. A second call changes nothing.
    pub fn set_backend(&self, backend: Arc<dyn Backend>) {
        self.backend.get_or_init(|| backend);
    }
    /// The model, or 503 while it loads or the server stops.
    pub(super) fn backend(&self) -> Result<&Arc<dyn Backend>, ApiError> {
        self.backend
            .get()
            .ok_or_else(|| ApiError::unavailable("Loading model"))
    }
    /// As [`App::backend`], for requests that start work.
    pub(super) fn backend_for_work(&self) -> Result<&Arc<dyn Backend>, ApiError> {
        if self.stopping.load(Ordering::Relaxed) {
            return Err(ApiError::unavailable("the server is shutting down"));
        }
        self.backend()
    }
    /// New work is refused from now on.
    pub(super) fn stop_taking_work(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }
    /// Ends the work that runs.
    pub(super) fn end_work(&self) {
        if let Some(backend) = self.backend.get() {
            backend.shut_down();
        }
    }
    /// The model's name towards clients.
    pub(super) fn model_name(&self, backend: &dyn Backend) -> String {
        self.options
            .alias
            .clone()
            .unwrap_or_else(|| backend.model_name().to_owned())
    }
    /// When this server started.
    pub(super) fn started_unix_seconds(&self) -> u64 {
        self.started
    }
}

/// Seconds since 1970, as OpenAI's `created` counts them.
pub(super) fn unix_seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
