//! The metrics that arms are compared by. All follow the client's clock and convention, the same
//! for every engine.

use serde::{Deserialize, Serialize};

use super::Unit;

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
}

impl Metric {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 4] = [
        Self::DecodeRate,
        Self::PromptRate,
        Self::Ttft,
        Self::ClientWall,
    ];

    /// The last part of figure ids.
    pub fn key(self) -> &'static str {
        match self {
            Self::DecodeRate => "decode_rate",
            Self::PromptRate => "prompt_rate",
            Self::Ttft => "ttft",
            Self::ClientWall => "client_wall",
        }
    }

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Self::DecodeRate => "Decode rate",
            Self::PromptRate => "Prompt rate",
            Self::Ttft => "Time to first token",
            Self::ClientWall => "Client wall time",
        }
    }

    /// Unit of its figures.
    pub fn unit(self) -> Unit {
        match self {
            Self::DecodeRate | Self::PromptRate => Unit::TokensPerSecond,
            Self::Ttft | Self::ClientWall => Unit::Seconds,
        }
    }

    /// Whether more is better.
    pub fn higher_is_better(self) -> bool {
        matches!(self, Self::DecodeRate | Self::PromptRate)
    }
}
