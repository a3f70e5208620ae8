//! From where on something is noise. Declared here, once, and printed with every finding.

/// Thresholds. They say what is named, and change no figure and no verdict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// A process is named that used this share of a core between two looks.
    pub other_core: f64,
    /// Or this share of a core over all of the session,
    pub other_mean: f64,
    /// and this much CPU time.
    pub other_ms: u64,
    /// Share of installed memory that must stay available, unless the study's guard says how much.
    pub free_memory: f64,
    /// Major faults, as a multiple of the median of the arm's other scored sessions,
    pub faults_times: f64,
    /// and at least this many more than it.
    pub faults_more: f64,
    /// Load above the number of processors.
    pub load_above: f64,
    /// Mean share of CPU time taken by the hypervisor.
    pub steal: f64,
    /// Bytes swapped in or out, on the whole machine.
    pub swap_bytes: u64,
    /// Time held back by a CPU limit.
    pub held_back_ns: u64,
    /// Frequency below this share of what it was, while the CPUs were busy.
    pub frequency: f64,
}

impl Limits {
    /// The ones that are used.
    pub const DECLARED: Self = Self {
        other_core: 0.5,
        other_mean: 0.05,
        other_ms: 200,
        free_memory: 0.05,
        faults_times: 10.0,
        faults_more: 100.0,
        load_above: 1.0,
        steal: 0.02,
        swap_bytes: 1 << 20,
        held_back_ns: 10_000_000,
        frequency: 0.9,
    };
}

/// The same in words, for reports.
pub const NOISE_RULES: &str = "Named are, between the first request and the last answer of a session: another process that used half a \
     core between two looks (about a second apart), or 5% of a core and 0.2 s over the session; available memory below the \
     study's guard, else below 5% of what is installed; the server's major faults 10 times the median of its arm's other \
     scored sessions, and 100 more; a load of one above the processors; 2% of CPU time taken by the hypervisor; 1 MiB \
     swapped; any thermal throttling; 10 ms held back by a CPU limit of the group; a frequency below 0.9 of what it was \
     in the session's first quarter, or of the other sessions' median. A process that begins and ends between two looks is \
     not seen.";
