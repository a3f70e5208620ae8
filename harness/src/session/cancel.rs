//! Being told to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that an interrupt sets and everything that waits looks at.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A flag that nobody has set.
    pub fn new() -> Self {
        Self::default()
    }

    /// A flag that Ctrl-C, SIGTERM and SIGHUP set; once a process.
    pub fn on_interrupt() -> Result<Self, ctrlc::Error> {
        let cancel = Self::new();
        let flag = cancel.clone();
        ctrlc::set_handler(move || flag.set())?;
        Ok(cancel)
    }

    /// Asks everything to stop.
    pub fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether to stop.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
