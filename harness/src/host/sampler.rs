//! Telemetry: a thread that looks at the machine every 250 ms.

use std::fs;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::HostSample;
use super::clock::now_ns;
use super::proc::{cpu_jiffies, load1, meminfo, number, pressure_some10, text, vmstat};

/// Time between samples.
pub const SAMPLE_EVERY: Duration = Duration::from_millis(250);

/// Reads the machine once; `before` is the busy and total jiffies of the sample before.
fn sample(before: &mut Option<(u64, u64)>) -> HostSample {
    let now = cpu_jiffies();
    let cpu_busy = match (*before, now) {
        (Some((busy0, all0)), Some((busy1, all1))) if all1 > all0 => {
            Some(busy1.saturating_sub(busy0) as f64 / (all1 - all0) as f64)
        }
        _ => None,
    };
    *before = now;
    let memory = meminfo();
    let vm = vmstat();
    HostSample {
        ns: now_ns(),
        cpu_busy,
        load1: load1(),
        psi_cpu_some10: pressure_some10("cpu"),
        psi_memory_some10: pressure_some10("memory"),
        psi_io_some10: pressure_some10("io"),
        available_bytes: memory.get("MemAvailable").copied(),
        cached_bytes: memory.get("Cached").copied(),
        faults: vm.get("pgfault").copied(),
        major_faults: vm.get("pgmajfault").copied(),
        disk_read_bytes: disk_read_bytes(),
        cpu_mhz: number::<f64>("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq")
            .map(|khz| khz / 1000.0),
        celsius: hottest(),
    }
}

/// Bytes read by whole disks: partitions, loops and stacked devices would count twice.
fn disk_read_bytes() -> Option<u64> {
    let mut sectors = None;
    for line in text("/proc/diskstats")?.lines() {
        let mut fields = line.split_whitespace().skip(2);
        let (Some(name), Some(read)) = (fields.next(), fields.nth(2)) else {
            continue;
        };
        let whole = fs::exists(format!("/sys/block/{name}/device")).unwrap_or(false);
        if whole && let Ok(read) = read.parse::<u64>() {
            sectors = Some(sectors.unwrap_or(0) + read);
        }
    }
    // Always 512 bytes here, whatever the disk's own sector size.
    sectors.map(|s| s * 512)
}

fn hottest() -> Option<f64> {
    let zones = fs::read_dir("/sys/class/thermal").ok()?;
    zones
        .filter_map(|zone| number::<f64>(zone.ok()?.path().join("temp")))
        .map(|milli| milli / 1000.0)
        .reduce(f64::max)
}

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
            let mut before = None;
            loop {
                sink(sample(&mut before));
                match stopped.recv_timeout(SAMPLE_EVERY) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
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
