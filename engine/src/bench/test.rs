//! What is timed.

use std::fmt;

/// The tokens of one repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A prompt of so many tokens, in the model's blocks; the last position's logits are computed.
    Prompt(usize),
    /// So many tokens one at a time, each with its logits; choosing tokens is not timed.
    Generate(usize),
}

/// Work behind `depth` tokens that are in the K/V cache already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Test {
    /// What is timed.
    pub work: Work,
    /// Tokens in the cache before, untimed.
    pub depth: usize,
}

impl Test {
    /// Every combination: for each depth, the prompts, then the generations. Lengths of 0 are
    /// left out.
    pub fn all(prompts: &[usize], generations: &[usize], depths: &[usize]) -> Vec<Self> {
        let mut tests = Vec::new();
        for &depth in depths {
            let prompts = prompts.iter().map(|&n| Work::Prompt(n));
            let generations = generations.iter().map(|&n| Work::Generate(n));
            let works = prompts.chain(generations);
            tests.extend(works.map(|work| Self { work, depth }));
        }
        tests.retain(|test| test.tokens() > 0);
        tests
    }

    /// Tokens that are timed.
    pub fn tokens(self) -> usize {
        match self.work {
            Work::Prompt(n) | Work::Generate(n) => n,
        }
    }

    /// Positions that the cache must hold.
    pub fn context(self) -> usize {
        self.depth + self.tokens()
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.work {
            Work::Prompt(n) => write!(f, "pp{n}")?,
            Work::Generate(n) => write!(f, "tg{n}")?,
        }
        if self.depth > 0 {
            write!(f, " @ d{}", self.depth)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_in_order_and_none_of_zero() {
        let names: Vec<String> = Test::all(&[512, 0, 7], &[0, 128], &[0, 4096])
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            names,
            [
                "pp512",
                "pp7",
                "tg128",
                "pp512 @ d4096",
                "pp7 @ d4096",
                "tg128 @ d4096"
            ]
        );
        assert_eq!(Test::all(&[0], &[0], &[0]), []);
    }
}
