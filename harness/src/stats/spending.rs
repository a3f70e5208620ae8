//! Looking before the end, at a price that is fixed beforehand: alpha-spending.
//!
//! K. K. G. Lan and D. L. DeMets, "Discrete sequential boundaries for clinical trials", Biometrika
//! 1983. Each look has a level of its own; together they err as often as one look at the end would.

use serde::{Deserialize, Serialize};

use super::normal::{normal_density, normal_upper, normal_upper_quantile};

/// How the 5% are spread over the looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spending {
    /// Hardly anything early: the last look keeps nearly all.
    #[serde(rename = "obrien-fleming")]
    OBrienFleming,
    /// Nearly the same level at each look.
    Pocock,
}

impl Spending {
    /// The two-sided level spent by the time that a share `t` (0 to 1) of the study is done: each
    /// side spends 2 - 2 Phi(z(side / 2) / sqrt t), or side ln(1 + (e - 1) t).
    pub fn spent(self, t: f64, alpha: f64) -> f64 {
        let side = alpha / 2.0;
        2.0 * match self {
            Self::OBrienFleming => 2.0 * normal_upper(normal_upper_quantile(side / 2.0) / t.sqrt()),
            Self::Pocock => side * libm::log1p((std::f64::consts::E - 1.0) * t),
        }
    }
}

/// The two-sided level of each look, for looks after the shares `at` (rising, the last is 1) of a
/// study with a total two-sided level `alpha`. Absent when `at` is not such a list.
///
/// The boundary of a look is where what is newly spent equals the chance that a Brownian path that
/// crossed no earlier boundary lies beyond this one; by the recursion of Armitage, McPherson and
/// Rowe ("Repeated significance tests on accumulating data", 1969). Published for five equal steps
/// at 5% (Lan and DeMets): z of 4.8769, 3.3569, 2.6803, 2.2898, 2.0310 for O'Brien-Fleming and
/// 2.4380, 2.4268, 2.4101, 2.3966, 2.3859 for Pocock. The level is that of z; a t test takes the t
/// quantile of the same level (the significance-level rule of Jennison and Turnbull, "Group
/// Sequential Methods", chapter 3).
pub fn look_levels(at: &[f64], spending: Spending, alpha: f64) -> Option<Vec<f64>> {
    let rising = at.windows(2).all(|w| w[0] < w[1]);
    let whole = at.last() == Some(&1.0) && at.first().is_some_and(|t| *t > 0.0);
    if !(rising && whole && alpha > 0.0 && alpha < 1.0) {
        return None;
    }
    let mut levels = Vec::with_capacity(at.len());
    let (mut spent, mut before) = (0.0, 0.0);
    let mut path = Path::start();
    for &t in at {
        let now = spending.spent(t, alpha);
        let z = path.boundary(now - spent, t, before);
        levels.push(2.0 * normal_upper(z));
        path = path.beyond(z * t.sqrt(), t, before);
        (spent, before) = (now, t);
    }
    Some(levels)
}

/// Intervals of the grid; even, for Simpson's rule.
const GRID: usize = 400;

/// Where paths are that crossed no boundary so far: (place, mass) on a grid.
struct Path(Vec<(f64, f64)>);

impl Path {
    fn start() -> Self {
        Self(vec![(0.0, 1.0)])
    }

    /// The z beyond which the mass `newly` lies at time `t`.
    fn boundary(&self, newly: f64, t: f64, before: f64) -> f64 {
        let step = (t - before).sqrt();
        let beyond = |z: f64| -> f64 {
            let edge = z * t.sqrt();
            let of = |(x, mass): &(f64, f64)| {
                mass * (normal_upper((edge - x) / step) + normal_upper((edge + x) / step))
            };
            self.0.iter().map(of).sum()
        };
        let (mut low, mut high) = (0.0_f64, 40.0_f64);
        for _ in 0..80 {
            let middle = f64::midpoint(low, high);
            if beyond(middle) > newly {
                low = middle;
            } else {
                high = middle;
            }
        }
        f64::midpoint(low, high)
    }

    /// The paths at time `t` that stay within `edge`.
    fn beyond(&self, edge: f64, t: f64, before: f64) -> Self {
        let step = (t - before).sqrt();
        let h = 2.0 * edge / GRID as f64;
        let at = |i: usize| {
            let place = -edge + i as f64 * h;
            let weight = match i {
                0 | GRID => 1.0,
                i if i % 2 == 1 => 4.0,
                _ => 2.0,
            };
            let density: f64 = self
                .0
                .iter()
                .map(|(x, mass)| mass * normal_density((place - x) / step) / step)
                .sum();
            (place, density * weight * h / 3.0)
        };
        Self((0..=GRID).map(at).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(spending: Spending, expected: [f64; 5]) {
        let at = [0.2, 0.4, 0.6, 0.8, 1.0];
        let levels = look_levels(&at, spending, 0.05).unwrap();
        for (level, z) in levels.iter().zip(expected) {
            let found = normal_upper_quantile(level / 2.0);
            assert!((found - z).abs() < 1.5e-4, "{spending:?}: {found} for {z}");
        }
    }

    #[test]
    fn the_published_boundaries() {
        published(
            Spending::OBrienFleming,
            [4.8769, 3.3569, 2.6803, 2.2898, 2.0310],
        );
        published(Spending::Pocock, [2.4380, 2.4268, 2.4101, 2.3966, 2.3859]);
    }

    #[test]
    fn one_look_at_the_end_costs_nothing_and_nonsense_is_refused() {
        for spending in [Spending::OBrienFleming, Spending::Pocock] {
            let levels = look_levels(&[1.0], spending, 0.05).unwrap();
            assert!((levels[0] - 0.05).abs() < 1e-12, "{levels:?}");
            for wrong in [&[][..], &[0.5], &[0.5, 0.5, 1.0], &[0.0, 1.0]] {
                assert_eq!(look_levels(wrong, spending, 0.05), None);
            }
        }
    }
}
