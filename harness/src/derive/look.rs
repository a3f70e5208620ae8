//! Planned looks: which one a study stands at, and whether it ends there.

use serde::{Deserialize, Serialize};

use super::book::Book;
use super::figure::{Assumed, Fact, Figure, Unit};
use super::{Comparison, Figures, derive};
use crate::archive::Facts;
use crate::stats::{Decision, Difference, Interval, against_margin, difference};
use crate::study::Plan;

/// The look that a study stands at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// From 1.
    pub number: usize,
    /// How many are planned.
    pub of: usize,
    /// Quartets seen by then.
    pub quartets: u32,
    /// Its two-sided level: the interval's confidence is 1 less this.
    pub level: f64,
}

impl Look {
    /// The look at all complete quartets; absent where none is planned there.
    pub(super) fn of(facts: &Facts) -> Option<Self> {
        let looks = facts.plan.looks.as_ref()?;
        let quartets = complete_quartets(facts);
        let (number, level) = looks.after(quartets)?;
        Some(Self {
            number: number + 1,
            of: looks.at.len(),
            quartets,
            level,
        })
    }

    /// Publishes its level.
    pub(super) fn publish(&self, book: &mut Book) -> Figure<Assumed> {
        let field = format!("looks/levels/{}", self.number - 1);
        let fact = Fact::new("plan.json", &field, Some(self.level));
        let id = "study/look_level".to_owned();
        book.add(Figure::declared(id, Unit::Probability, fact))
    }

    /// `99.98% interval`, as its level has it.
    pub fn interval_title(&self) -> String {
        let percent = self.level * 100.0;
        // As many digits as tell the level itself.
        let decimals = (1 - libm::log10(percent).floor() as i32).clamp(0, 9) as usize;
        format!("{:.decimals$}% interval", 100.0 - percent)
    }
}

/// How many quartets are recorded from the first on, without a gap.
fn complete_quartets(facts: &Facts) -> u32 {
    let recorded = |quartets: u32| {
        let planned = facts.plan.sessions_until(quartets);
        planned
            .filter(|p| p.quartet == Some(quartets - 1))
            .all(|p| facts.sessions.iter().any(|s| s.planned == *p))
    };
    let all = facts.plan.coins.len() as u32;
    (1..=all).take_while(|q| recorded(*q)).last().unwrap_or(0)
}

/// What is known after a number of quartets; absent if they are not all recorded.
fn until(facts: &Facts, quartets: u32) -> Option<Facts> {
    let planned: Vec<_> = facts.plan.sessions_until(quartets).collect();
    let mut seen = facts.clone();
    seen.sessions.retain(|s| planned.contains(&&s.planned));
    (seen.sessions.len() == planned.len()).then_some(seen)
}

/// The quartets after which a planned look ended the study, or ends it now: the first early look
/// that settles it. Absent where none does.
pub fn ended_by_look(facts: &Facts) -> Option<u32> {
    let (_, early) = facts.plan.looks.as_ref()?.at.split_last()?;
    let settles =
        |quartets: &u32| until(facts, *quartets).is_some_and(|seen| derive(&seen).is_settled());
    early.iter().copied().find(settles)
}

impl Figures {
    /// The interval of a comparison's ratio; absent where there is none.
    pub fn interval(&self, c: &Comparison) -> Option<Interval> {
        let end = |name: &str| self.value(&format!("{}/{name}", c.prefix));
        if c.no_interval.is_some() {
            return None;
        }
        let (low, high) = (end("ratio_low")?, end("ratio_high")?);
        Some(Interval { low, high })
    }

    /// Whether every comparison of the primary metric is settled: on one side of the margin, or,
    /// where the study has none, of 1.
    pub fn is_settled(&self) -> bool {
        let metric = self.primary();
        let margin = self.value("study/margin");
        let settled = |c: &Comparison| match (self.interval(c), margin) {
            (None, _) => false,
            (Some(interval), Some(margin)) => {
                against_margin(interval, margin, metric.higher_is_better())
                    != Decision::Inconclusive
            }
            (Some(interval), None) => difference(interval) != Difference::NotShown,
        };
        let primary: Vec<&Comparison> = self.primary_comparisons().collect();
        !primary.is_empty() && primary.into_iter().all(settled)
    }

    /// Quartets after which an early look ended the study; absent where it went to its end.
    pub fn ended_early(&self) -> Option<u32> {
        let look = self.look().filter(|look| look.number < look.of)?;
        self.is_settled().then_some(look.quartets)
    }

    /// What the intervals are called.
    pub fn interval_title(&self) -> String {
        self.look()
            .map_or_else(|| "95% interval".to_owned(), Look::interval_title)
    }
}

/// Sessions that belong to a plan as far as it was followed: all, or those up to the look that
/// ended it.
pub fn followed(plan: &Plan, ended: Option<u32>) -> Vec<crate::study::PlannedSession> {
    match ended {
        Some(quartets) => plan.sessions_until(quartets).cloned().collect(),
        None => plan.sessions.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_called_by_its_level() {
        let at = |level| Look {
            number: 1,
            of: 3,
            quartets: 2,
            level,
        };
        assert_eq!(at(0.000_207_011).interval_title(), "99.979% interval");
        assert_eq!(at(0.046_256).interval_title(), "95.4% interval");
        assert_eq!(at(0.012_024).interval_title(), "98.8% interval");
    }
}
