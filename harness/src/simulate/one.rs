//! One simulated study, from its plan to its interval.

use super::{Design, Noise, Random};
use crate::stats::{
    ALPHA, Difference, Interval, PairEffect, PairOrder, difference, look_levels,
    pair_order_estimate_at, t_quantile,
};
use crate::study::{PlannedSession, coins, order};

/// What a simulated study came to: the interval of its ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// Of second arm over first, not logarithms.
    pub ratio: Interval,
    /// Quartets that ran.
    pub quartets: u32,
}

/// The levels of a design's looks at `quartets`, each with the quartets after which it is.
pub(super) fn levels(design: Design, quartets: u32) -> Vec<(u32, f64)> {
    let at = design.at(quartets);
    let shares: Vec<f64> = at
        .iter()
        .map(|q| f64::from(*q) / f64::from(quartets))
        .collect();
    let levels = design
        .spending()
        .and_then(|spending| look_levels(&shares, spending, ALPHA))
        .unwrap_or_else(|| vec![ALPHA; at.len()]);
    at.into_iter().zip(levels).collect()
}

/// Runs one study: B's log-ratio over A is `log_effect`, a pair of sessions deviates by
/// `log_deviation`. Absent where the design gives no interval.
pub fn judged(
    design: Design,
    levels: &[(u32, f64)],
    noise: Noise,
    (log_effect, log_deviation): (f64, f64),
    random: &mut Random,
) -> Option<Judged> {
    let quartets = levels.last()?.0;
    let of_session = log_deviation / std::f64::consts::SQRT_2;
    let plan = plan(design, quartets, random.seed());
    let rates: Vec<f64> = noise
        .sessions(random, plan.len())
        .into_iter()
        .zip(&plan)
        .map(|(noise, session)| {
            let effect = if session.arm == "B" { log_effect } else { 0.0 };
            effect + noise * of_session
        })
        .collect();
    if let Design::Abab | Design::Aabb = design {
        let interval = wrong(design, &plan, &rates)?;
        return Some(Judged {
            ratio: ratio(interval),
            quartets,
        });
    }
    let pairs = pairs(&plan, &rates);
    let mut last = None;
    for &(quartets, level) in levels {
        let seen = pairs.get(..quartets as usize * 2)?;
        let interval = pair_order_estimate_at(seen, level)?.interval.ok()?;
        let judged = Judged {
            ratio: ratio(interval),
            quartets,
        };
        last = Some(judged);
        if difference(judged.ratio) != Difference::NotShown {
            break;
        }
    }
    last
}

fn ratio(log: Interval) -> Interval {
    Interval {
        low: libm::exp(log.low),
        high: libm::exp(log.high),
    }
}

/// The order of sessions: that of a real plan, or a wrong one. The burn-in session comes first.
fn plan(design: Design, quartets: u32, seed: u64) -> Vec<PlannedSession> {
    let arms = ["A".to_owned(), "B".to_owned()];
    let mut sessions = order(&arms, &coins(seed, quartets), true);
    let scored = sessions.len() - 1;
    for (i, session) in sessions.iter_mut().skip(1).enumerate() {
        let b = match design {
            Design::Abab => i % 2 == 1,
            Design::Aabb => i >= scored / 2,
            _ => continue,
        };
        session.arm.clone_from(&arms[usize::from(b)]);
    }
    sessions
}

/// Log-ratios of neighbouring sessions, with which arm ran first.
fn pairs(plan: &[PlannedSession], rates: &[f64]) -> Vec<PairEffect> {
    let scored: Vec<(&PlannedSession, f64)> = plan
        .iter()
        .zip(rates.iter().copied())
        .filter(|(s, _)| s.pair.is_some())
        .collect();
    scored
        .chunks_exact(2)
        .map(|pair| {
            let [(first, x), (_, y)] = [pair[0], pair[1]];
            if first.arm == "A" {
                PairEffect {
                    log_ratio: y - x,
                    order: PairOrder::Ab,
                }
            } else {
                PairEffect {
                    log_ratio: x - y,
                    order: PairOrder::Ba,
                }
            }
        })
        .collect()
}

/// The 95% intervals that wrong designs usually come with: a paired t test for A B A B, a
/// two-sample t test with pooled variance for A A B B.
fn wrong(design: Design, plan: &[PlannedSession], rates: &[f64]) -> Option<Interval> {
    let of = |arm: &str| -> Vec<f64> {
        let scored = plan.iter().zip(rates).filter(|(s, _)| s.pair.is_some());
        scored
            .filter(|(s, _)| s.arm == arm)
            .map(|(_, r)| *r)
            .collect()
    };
    let (a, b) = (of("A"), of("B"));
    let n = a.len() as f64;
    let (centre, error, df) = if design == Design::Abab {
        let differences: Vec<f64> = a.iter().zip(&b).map(|(a, b)| b - a).collect();
        let (mean, squares) = mean_and_squares(&differences);
        (mean, (squares / (n - 1.0) / n).sqrt(), n - 1.0)
    } else {
        let ((mean_a, squares_a), (mean_b, squares_b)) =
            (mean_and_squares(&a), mean_and_squares(&b));
        let variance = (squares_a + squares_b) / (2.0 * n - 2.0);
        (mean_b - mean_a, (variance * 2.0 / n).sqrt(), 2.0 * n - 2.0)
    };
    (df >= 1.0).then(|| {
        let half = t_quantile(1.0 - ALPHA / 2.0, df) * error;
        Interval {
            low: centre - half,
            high: centre + half,
        }
    })
}

fn mean_and_squares(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (mean, values.iter().map(|v| (v - mean).powi(2)).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_what_they_are_called() {
        let told = |design| -> String {
            let plan = plan(design, 2, 3);
            plan.iter().skip(1).map(|s| s.arm.as_str()).collect()
        };
        assert_eq!(told(Design::Abab), "ABABABAB");
        assert_eq!(told(Design::Aabb), "AAAABBBB");
        let mirrored = told(Design::Mirrored);
        for quartet in [&mirrored[..4], &mirrored[4..]] {
            assert!(["ABBA", "BAAB"].contains(&quartet), "{mirrored}");
        }
    }

    #[test]
    fn without_noise_the_effect_is_found_exactly() {
        let mut random = Random::new(1);
        for design in Design::ALL {
            let levels = levels(design, 6);
            let found = judged(design, &levels, Noise::Gaussian, (0.05, 1e-12), &mut random);
            let found = found.unwrap().ratio;
            assert!((found.low - 0.05_f64.exp()).abs() < 1e-9, "{design:?}");
        }
    }

    #[test]
    fn one_quartet_gives_no_interval() {
        let mut random = Random::new(1);
        let levels = [(1, ALPHA)];
        let found = judged(
            Design::Mirrored,
            &levels,
            Noise::Gaussian,
            (0.0, 0.01),
            &mut random,
        );
        assert_eq!(found, None);
    }
}
