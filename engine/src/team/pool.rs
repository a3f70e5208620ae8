//! A fixed set of threads that run the pieces of one job after another.

/// Worker threads plus the caller. Which thread runs which piece never changes a result.
pub struct Team {}

impl Team {
    /// `threads` in all, the caller included (so 1 spawns none).
    pub fn new(_threads: usize) -> Self {
        todo!()
    }
    /// Threads in all.
    pub fn threads(&self) -> usize {
        todo!()
    }
    /// Runs `job(piece)` once for each piece in `0..pieces`; returns when all are done.
    pub fn run(&self, _pieces: usize, _job: &(dyn Fn(usize) + Sync)) {
        todo!()
    }
}
