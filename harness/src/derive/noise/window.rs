//! The part of a session's telemetry that lies around its requests.

use crate::archive::SessionFacts;
use crate::host::HostSample;

/// From before the first request to the end of the last answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::derive) struct Window {
    pub(in crate::derive) from_ns: u64,
    pub(in crate::derive) to_ns: u64,
}

impl Window {
    /// Absent where nothing was sent.
    pub(in crate::derive) fn of(session: &SessionFacts) -> Option<Self> {
        let requests = session.requests.iter();
        Some(Self {
            from_ns: requests.clone().map(|r| r.sent_ns).min()?,
            to_ns: requests.map(|r| r.done_ns).max()?,
        })
    }

    pub(super) fn seconds(self) -> f64 {
        self.to_ns.saturating_sub(self.from_ns) as f64 / 1e9
    }

    /// Samples from the last one before it to the first one after it.
    pub(in crate::derive) fn samples(self, all: &[HostSample]) -> &[HostSample] {
        let begin = all.iter().rposition(|s| s.ns <= self.from_ns).unwrap_or(0);
        let end = all.iter().position(|s| s.ns >= self.to_ns);
        let end = end.map_or(all.len(), |at| at + 1);
        &all[begin.min(end)..end]
    }
}

/// How much a counter rose over samples; absent where fewer than two show it.
pub(super) fn risen(
    samples: &[HostSample],
    counter: fn(&HostSample) -> Option<u64>,
) -> Option<u64> {
    let mut shown = samples.iter().filter_map(counter);
    let first = shown.next()?;
    Some(shown.next_back()?.saturating_sub(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_around_the_requests_are_taken() {
        let at = |ns| HostSample {
            ns,
            swap_in_bytes: (ns != 30).then_some(ns * 10),
            ..HostSample::default()
        };
        let all = [at(10), at(20), at(30), at(40), at(50)];
        let taken = |from_ns, to_ns| -> Vec<u64> {
            let window = Window { from_ns, to_ns };
            window.samples(&all).iter().map(|s| s.ns).collect()
        };
        assert_eq!(taken(25, 35), [20, 30, 40]);
        assert_eq!(taken(5, 60), [10, 20, 30, 40, 50]);
        assert_eq!(taken(20, 20), [20]);
        assert_eq!(taken(60, 70), [50]);
        assert_eq!(risen(&all, |s| s.swap_in_bytes), Some(400));
        assert_eq!(risen(&all[1..3], |s| s.swap_in_bytes), None);
    }
}
