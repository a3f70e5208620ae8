//! Pure: raw facts to labelled figures.

use serde::{Deserialize, Serialize};

/// `figures.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    verdict: Verdict,
}

/// What can be said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// One sentence.
    pub sentence: String,
}

impl Figures {
    /// How many figures.
    pub fn len(&self) -> usize {
        0
    }
    /// What can be said.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }
}
