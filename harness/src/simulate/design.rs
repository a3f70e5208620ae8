//! Designs: in which order sessions run and when they are looked at.

use serde::Serialize;

use crate::stats::Spending;

/// A design and its usual analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// Quartets of ABBA or BAAB by a coin, the pair-plus-order estimate, one test at the end: what
    /// studies do.
    Mirrored,
    /// The same with planned looks after a third and two thirds, O'Brien-Fleming spending.
    LooksOBrienFleming,
    /// The same with Pocock spending.
    LooksPocock,
    /// WRONG: the same quartets with a look at a 95% interval at each of those places.
    Peeking,
    /// WRONG: A B A B, each pair compared, a paired t test.
    Abab,
    /// WRONG: every A and then every B, a two-sample t test.
    Aabb,
}

impl Design {
    /// All of them, wrong ones last.
    pub const ALL: [Self; 6] = [
        Self::Mirrored,
        Self::LooksOBrienFleming,
        Self::LooksPocock,
        Self::Peeking,
        Self::Abab,
        Self::Aabb,
    ];

    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mirrored => "mirrored",
            Self::LooksOBrienFleming => "looks-obrien-fleming",
            Self::LooksPocock => "looks-pocock",
            Self::Peeking => "peeking",
            Self::Abab => "abab",
            Self::Aabb => "aabb",
        }
    }

    /// Whether it is there as a contrast only.
    pub fn is_wrong(self) -> bool {
        matches!(self, Self::Peeking | Self::Abab | Self::Aabb)
    }

    /// Whether it looks before the end.
    pub fn looks(self) -> bool {
        matches!(
            self,
            Self::LooksOBrienFleming | Self::LooksPocock | Self::Peeking
        )
    }

    /// Whether there is such a design of this size: looks are several.
    pub fn fits(self, quartets: u32) -> bool {
        !self.looks() || self.at(quartets).len() > 1
    }

    /// After how many quartets it is looked at: thirds where it looks early and there are enough.
    pub fn at(self, quartets: u32) -> Vec<u32> {
        if !self.looks() {
            return vec![quartets];
        }
        let thirds = [quartets / 3, quartets * 2 / 3, quartets];
        let mut at: Vec<u32> = thirds.into_iter().filter(|q| *q >= 2).collect();
        at.dedup();
        at
    }

    /// How its level is spread over its looks; absent where it is not.
    pub fn spending(self) -> Option<Spending> {
        match self {
            Self::LooksOBrienFleming => Some(Spending::OBrienFleming),
            Self::LooksPocock => Some(Spending::Pocock),
            Self::Mirrored | Self::Peeking | Self::Abab | Self::Aabb => None,
        }
    }
}
