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

    /// How much a counter rose from its last reading before this to its first one after it; absent
    /// where there are fewer than two readings.
    pub(super) fn risen(
        self,
        all: &[HostSample],
        counter: fn(&HostSample) -> Option<u64>,
    ) -> Option<u64> {
        let readings: Vec<(u64, u64)> = all
            .iter()
            .filter_map(|s| Some((s.ns, counter(s)?)))
            .collect();
        let begin = readings.iter().rposition(|(ns, _)| *ns <= self.from_ns);
        let end = readings.iter().position(|(ns, _)| *ns >= self.to_ns);
        let begin = readings.get(begin.unwrap_or(0))?;
        let end = readings.get(end.unwrap_or(readings.len().checked_sub(1)?))?;
        (end.0 > begin.0).then(|| end.1.saturating_sub(begin.1))
    }
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
        let risen = |from_ns, to_ns| Window { from_ns, to_ns }.risen(&all, |s| s.swap_in_bytes);
        assert_eq!(risen(0, 60), Some(400));
        // The sample at 30 has no reading.
        assert_eq!(risen(30, 30), Some(200));
        assert_eq!(risen(60, 70), None);
        assert_eq!(risen(20, 20), None);
    }
}
