//! Planned looks: when a study may end early, and what each look costs. Declared before the first
//! session; without them nothing ends early.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::stats::{ALPHA, Spending, look_levels};

/// `[looks]` as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LooksFile {
    /// After how many quartets: rising, the last is the study's `quartets`.
    pub at: Spanned<Vec<u32>>,
    /// How the level is spread over them.
    #[serde(default = "obrien_fleming")]
    pub spending: Spending,
}

fn obrien_fleming() -> Spending {
    Spending::OBrienFleming
}

/// The looks of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Looks {
    /// After how many quartets.
    pub at: Vec<u32>,
    /// How the level is spread over them.
    pub spending: Spending,
    /// The two-sided level of each.
    pub levels: Vec<f64>,
}

impl LooksFile {
    /// The looks of a study of `quartets`, or what is wrong with them and where.
    pub(super) fn resolve(&self, quartets: u32) -> Result<Looks, (Range<usize>, String)> {
        let at = self.at.as_ref();
        let bad = |what: String| {
            let right = "rising numbers of quartets from 2 on, the last one the study's own";
            let such = if quartets > 2 {
                format!("such as [2, {quartets}]")
            } else {
                "which takes 3 quartets or more".to_owned()
            };
            let message = format!("looks.at = {at:?}: {what}; give {right}, {such}");
            Err((self.at.span(), message))
        };
        if at.last() != Some(&quartets) {
            return bad(format!(
                "the study has {quartets} quartets and ends with them"
            ));
        }
        if at.iter().any(|q| *q < 2) {
            return bad("one quartet gives no interval to look at".into());
        }
        if at.windows(2).any(|w| w[0] >= w[1]) {
            return bad("looks follow each other".into());
        }
        let shares: Vec<f64> = at
            .iter()
            .map(|q| f64::from(*q) / f64::from(quartets))
            .collect();
        match look_levels(&shares, self.spending, ALPHA) {
            Some(levels) => Ok(Looks {
                at: at.clone(),
                spending: self.spending,
                levels,
            }),
            None => bad("no level can be given to them".into()),
        }
    }
}

impl Looks {
    /// The look at a number of quartets: its number, from 0, and its level.
    pub fn after(&self, quartets: u32) -> Option<(usize, f64)> {
        let number = self.at.iter().position(|q| *q == quartets)?;
        Some((number, *self.levels.get(number)?))
    }

    /// The level of the last look: the one that a study is planned by.
    pub fn last_level(&self) -> f64 {
        self.levels.last().copied().unwrap_or(ALPHA)
    }
}
