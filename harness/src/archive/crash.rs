//! Being killed at a chosen step of writing: how the tests interrupt a study everywhere. Only in
//! builds with debug assertions; elsewhere nothing reads the variable and a step is nothing.
//!
//! `PALINDROME_CRASH=FROM:N` ends the process, as `kill -9` does, at the Nth step counted from the
//! first one whose name begins with FROM (which may be empty: every step counts).

use std::fs::File;
use std::io::{self, Write};

/// A step of writing has been done.
pub(crate) fn step(name: &str) {
    #[cfg(debug_assertions)]
    armed::step(name);
    #[cfg(not(debug_assertions))]
    let _ = name;
}

/// Writes all bytes. Where the process is to be killed it may be after half of them, as a crash may
/// leave them.
pub(super) fn write_all(file: &mut File, name: &str, bytes: &[u8]) -> io::Result<()> {
    #[cfg(debug_assertions)]
    if armed::is_set() {
        let (first, rest) = bytes.split_at(bytes.len() / 2);
        file.write_all(first)?;
        armed::step(&format!("half of {name}"));
        file.write_all(rest)?;
        armed::step(name);
        return Ok(());
    }
    let _ = name;
    file.write_all(bytes)
}

#[cfg(debug_assertions)]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use rustix::process::{Signal, getpid, kill_process};

    static AT: OnceLock<Option<(String, usize)>> = OnceLock::new();
    static COUNTS: AtomicBool = AtomicBool::new(false);
    static DONE: AtomicUsize = AtomicUsize::new(0);

    fn at() -> Option<&'static (String, usize)> {
        let read = || {
            let said = std::env::var("PALINDROME_CRASH").ok()?;
            let (from, nth) = said.rsplit_once(':')?;
            Some((from.to_owned(), nth.parse().ok()?))
        };
        AT.get_or_init(read).as_ref()
    }

    pub(super) fn is_set() -> bool {
        at().is_some()
    }

    pub(super) fn step(name: &str) {
        let Some((from, nth)) = at() else { return };
        if !COUNTS.load(Ordering::SeqCst) && !name.starts_with(from.as_str()) {
            return;
        }
        COUNTS.store(true, Ordering::SeqCst);
        if DONE.fetch_add(1, Ordering::SeqCst) + 1 != *nth {
            return;
        }
        eprintln!("crash: {name}");
        // Nothing may be done after this line, whatever the signal takes.
        let _ = kill_process(getpid(), Signal::KILL);
        loop {
            std::thread::park();
        }
    }
}
