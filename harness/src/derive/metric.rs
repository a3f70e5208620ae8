//! The metrics that arms are compared by. All follow the client's clock and convention, the same
//! for every engine.

use serde::{Deserialize, Serialize};

use super::Unit;
use crate::study::Protocol;

/// A compared metric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Tokens after the first event, over the time from first to last token.
    #[default]
    DecodeRate,
    /// Prompt tokens not taken from a cache, over the time to the first token.
    PromptRate,
    /// From before the request is written to the first generated token.
    Ttft,
    /// From before the request is written to the end of the stream.
    ClientWall,
    /// Tokens that a cohort generated, over its wall time.
    CohortRate,
    /// From the first request of a cohort written to the end of its last stream.
    CohortWall,
    /// Tokens that a level generated, over its wall time.
    Throughput,
    /// Time from first to last token, over the tokens after those of the first event.
    Tpot,
    /// Requests that met the study's limits, over the level's wall time.
    Goodput,
}

impl Metric {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::DecodeRate,
        Self::PromptRate,
        Self::Ttft,
        Self::ClientWall,
        Self::CohortRate,
        Self::CohortWall,
        Self::Throughput,
        Self::Tpot,
        Self::Goodput,
    ];

    /// Those that a protocol shows, in the order of tables; the first is what a study is about
    /// unless it says otherwise. Where requests share the server, tokens over the time to the first
    /// token are no prompt rate, so there is none.
    pub fn of(protocol: &Protocol) -> &'static [Self] {
        match protocol {
            Protocol::Fresh | Protocol::Warm | Protocol::Paired { .. } => &[
                Self::DecodeRate,
                Self::PromptRate,
                Self::Ttft,
                Self::ClientWall,
            ],
            Protocol::Cohort { .. } => &[
                Self::CohortRate,
                Self::CohortWall,
                Self::DecodeRate,
                Self::Ttft,
                Self::ClientWall,
            ],
            Protocol::ClosedLoop { .. } => {
                &[Self::Throughput, Self::Ttft, Self::Tpot, Self::ClientWall]
            }
            // Below what a server can do, its throughput is what it is asked for.
            Protocol::OpenLoop { limits: None, .. } | Protocol::Arrivals { limits: None, .. } => {
                &[Self::Ttft, Self::Tpot, Self::ClientWall, Self::Throughput]
            }
            Protocol::OpenLoop { .. } | Protocol::Arrivals { .. } => &[
                Self::Goodput,
                Self::Ttft,
                Self::Tpot,
                Self::ClientWall,
                Self::Throughput,
            ],
        }
    }

    /// Whether a session has one value of it, and not one a request.
    pub fn of_session(self) -> bool {
        matches!(
            self,
            Self::CohortRate | Self::CohortWall | Self::Throughput | Self::Goodput
        )
    }

    /// The last part of figure ids.
    pub fn key(self) -> &'static str {
        match self {
            Self::DecodeRate => "decode_rate",
            Self::PromptRate => "prompt_rate",
            Self::Ttft => "ttft",
            Self::ClientWall => "client_wall",
            Self::CohortRate => "cohort_rate",
            Self::CohortWall => "cohort_wall",
            Self::Throughput => "throughput",
            Self::Tpot => "tpot",
            Self::Goodput => "goodput",
        }
    }

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Self::DecodeRate => "Decode rate",
            Self::PromptRate => "Prompt rate",
            Self::Ttft => "Time to first token",
            Self::ClientWall => "Client wall time",
            Self::CohortRate => "Cohort rate",
            Self::CohortWall => "Cohort wall time",
            Self::Throughput => "Throughput",
            Self::Tpot => "Time per output token",
            Self::Goodput => "Goodput",
        }
    }

    /// Unit of its figures.
    pub fn unit(self) -> Unit {
        match self {
            Self::DecodeRate | Self::PromptRate | Self::CohortRate | Self::Throughput => {
                Unit::TokensPerSecond
            }
            Self::Ttft | Self::ClientWall | Self::CohortWall | Self::Tpot => Unit::Seconds,
            Self::Goodput => Unit::RequestsPerSecond,
        }
    }

    /// Whether more is better.
    pub fn higher_is_better(self) -> bool {
        self.unit() != Unit::Seconds
    }
}
