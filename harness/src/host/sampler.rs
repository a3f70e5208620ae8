//! Telemetry: a thread that looks at the machine every 250 ms.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::HostSample;
use super::machine::machine;

/// Time between samples.
pub const SAMPLE_EVERY: Duration = Duration::from_millis(250);

/// A running sampler; stops when dropped.
#[derive(Debug)]
pub struct Sampler {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    /// Starts sampling; `sink` gets each sample on the sampler's thread.
    pub fn start(mut sink: impl FnMut(HostSample) + Send + 'static) -> Self {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::spawn(move || {
            let mut telemetry = machine().telemetry();
            sink(telemetry.sample(false));
            loop {
                let last = !matches!(
                    stopped.recv_timeout(SAMPLE_EVERY),
                    Err(RecvTimeoutError::Timeout)
                );
                // One more when all is over: counters are then known for all of the session.
                sink(telemetry.sample(last));
                if last {
                    return;
                }
            }
        });
        Self {
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Stops and waits for the last sample to be handed over.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            eprintln!(
                "warning: the telemetry thread panicked; samples of this session are missing"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_come_until_stopped() {
        let (sink, samples) = mpsc::channel();
        let sampler = Sampler::start(move |s| {
            let _ = sink.send(s);
        });
        let first = samples.recv().unwrap();
        let second = samples.recv().unwrap();
        sampler.stop();
        assert!(second.ns > first.ns);
        assert!(first.cpu_busy.is_none());
        assert!(second.cpu_busy.is_some_and(|b| (0.0..=1.0).contains(&b)));
        assert!(samples.iter().count() < 100);
    }
}
