//! Noise models: how a machine changes from session to session.

use serde::Serialize;

use super::Random;

/// What the sessions of a study do beside what the arms do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Noise {
    /// Independent and normal: what the t interval supposes.
    Gaussian,
    /// Independent, Student's t with 3 degrees of freedom.
    HeavyTails,
    /// Normal, and one session in 20 is 5 deviations slower.
    Spikes,
    /// Normal around a machine that slows by 2 deviations each session.
    LinearDrift,
    /// Normal around a machine that slows by 10 deviations in all, most of it in the first sessions.
    SaturatingDrift,
    /// Each session keeps half of the one before: AR(1) with 0.5.
    Ar1,
    /// Normal, and a neighbour that comes (15% a session) and goes (30%) costs 3 deviations.
    Neighbour,
}

impl Noise {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Gaussian,
        Self::HeavyTails,
        Self::Spikes,
        Self::LinearDrift,
        Self::SaturatingDrift,
        Self::Ar1,
        Self::Neighbour,
    ];

    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gaussian => "gaussian",
            Self::HeavyTails => "heavy-tails",
            Self::Spikes => "spikes",
            Self::LinearDrift => "linear-drift",
            Self::SaturatingDrift => "saturating-drift",
            Self::Ar1 => "ar1",
            Self::Neighbour => "neighbour",
        }
    }

    /// What it is, for people.
    pub fn explained(self) -> &'static str {
        match self {
            Self::Gaussian => "independent normal sessions",
            Self::HeavyTails => "independent sessions, Student's t with 3 degrees of freedom",
            Self::Spikes => "normal, and one session in 20 is 5 deviations slower",
            Self::LinearDrift => "normal, and each session 2 deviations slower than the one before",
            Self::SaturatingDrift => "normal, and 10 deviations slower in all, most of it early",
            Self::Ar1 => "each session keeps half of the one before",
            Self::Neighbour => "normal, and a neighbour that comes and goes costs 3 deviations",
        }
    }

    /// The log-rates of `sessions` consecutive sessions in units of their deviation, negative being
    /// slower.
    pub fn sessions(self, random: &mut Random, sessions: usize) -> Vec<f64> {
        let mut kept = random.normal();
        // As often as it is there in the long run.
        let mut neighbour = random.happens(1.0 / 3.0);
        (0..sessions)
            .map(|i| match self {
                Self::Gaussian => random.normal(),
                Self::HeavyTails => random.heavy(),
                Self::Spikes => random.normal() - if random.happens(0.05) { 5.0 } else { 0.0 },
                Self::LinearDrift => random.normal() - 2.0 * i as f64,
                Self::SaturatingDrift => {
                    random.normal() - 10.0 * (1.0 - libm::exp(-(i as f64) / 4.0))
                }
                Self::Ar1 => {
                    let value = kept;
                    kept = 0.5 * kept + 0.75_f64.sqrt() * random.normal();
                    value
                }
                Self::Neighbour => {
                    let value = random.normal() - if neighbour { 3.0 } else { 0.0 };
                    let leaves_or_comes = if neighbour { 0.30 } else { 0.15 };
                    neighbour ^= random.happens(leaves_or_comes);
                    value
                }
            })
            .collect()
    }
}
