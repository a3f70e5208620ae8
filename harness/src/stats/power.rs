//! What a study can see before it starts, and how much more would settle it after.

use super::noncentral::over_deviations;
use super::{ALPHA, noncentral_t_above, normal_cdf, t_quantile};

/// The power that studies are planned for: 4 times in 5.
pub const POWER: f64 = 0.8;

/// Most quartets that a study may have; what more than these would settle counts as never.
pub const MOST_QUARTETS: u32 = 1000;

/// The smallest true effect that a study of `pairs` pairs detects with 80% power at a two-sided 5%
/// level, in units of the deviation of the pairs' log-ratios. Absent below 3 pairs: no interval, so
/// nothing is ever detected.
pub fn minimum_detectable_effect(pairs: usize) -> Option<f64> {
    detectable_at(pairs, ALPHA)
}

/// The same at another two-sided level `alpha`, such as that of a planned look.
///
/// Power is that of the noncentral t with `pairs - 2` degrees of freedom and noncentrality
/// effect * sqrt(pairs): pairs come in quartets, so both orders are equally frequent. Cross-checked
/// against scipy's `nct`: 2.83, 1.54, 1.19 at 4, 6, 8 pairs.
pub fn detectable_at(pairs: usize, alpha: f64) -> Option<f64> {
    if pairs < 3 || !(alpha > 0.0 && alpha < 1.0) {
        return None;
    }
    let n = pairs as f64;
    let critical = t_quantile(1.0 - alpha / 2.0, n - 2.0);
    let (mut low, mut high) = (0.0_f64, 64.0_f64);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if two_sided(middle * n.sqrt(), n - 2.0, critical) < POWER {
            low = middle;
        } else {
            high = middle;
        }
    }
    // An effect as large as that is none that a level this strict finds with so few pairs.
    (high < 64.0).then(|| f64::midpoint(low, high))
}

/// P(|T| > critical) for a noncentral T.
fn two_sided(noncentrality: f64, df: f64, critical: f64) -> f64 {
    over_deviations(df, |s| {
        normal_cdf(noncentrality - critical * s) + normal_cdf(-noncentrality - critical * s)
    })
}

/// How many quartets settle a question with 80% power: the true effect lies `distance` (log units)
/// from the margin, and pairs of sessions deviate by `deviation` (log units). The two-sided 5%
/// interval then excludes the margin on the right side. Absent when the effect lies on the margin,
/// where nothing settles it, and beyond [`MOST_QUARTETS`].
///
/// By the noncentral t with its degrees of freedom at each size tried, as in R's `power.t.test`
/// (whose `power.t.test(power = .90, delta = 1)` is 22.02 a group), not by the normal shortcut,
/// which gives 2 quartets at 1.5 deviations where 4 are needed.
pub fn quartets_to_settle(distance: f64, deviation: f64) -> Option<u32> {
    let standardised = distance.abs() / deviation;
    if standardised.is_nan() || standardised <= 0.0 {
        return None;
    }
    let settles = |quartets: u32| {
        let n = f64::from(quartets) * 2.0;
        let critical = t_quantile(0.975, n - 2.0);
        noncentral_t_above(critical, n - 2.0, standardised * n.sqrt()) >= POWER
    };
    if !settles(MOST_QUARTETS) {
        return None;
    }
    // Power rises with size: the smallest that settles, by bisection. One quartet has no interval.
    let (mut low, mut high) = (1, MOST_QUARTETS);
    while high - low > 1 {
        let middle = u32::midpoint(low, high);
        if settles(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_detectable_without_an_interval_and_more_pairs_see_more() {
        assert_eq!(minimum_detectable_effect(2), None);
        let seen: Vec<f64> = [4, 6, 8, 12]
            .iter()
            .filter_map(|&n| minimum_detectable_effect(n))
            .collect();
        assert_eq!(seen.len(), 4);
        assert!(seen.windows(2).all(|w| w[0] > w[1]));
    }

    #[test]
    fn what_is_detectable_is_what_settles() {
        // The far tail, which one-sided power leaves out, is nothing at 80%.
        for quartets in [2, 3, 4, 6] {
            let effect = minimum_detectable_effect(quartets as usize * 2).unwrap();
            assert_eq!(quartets_to_settle(effect * 1.001, 1.0), Some(quartets));
            assert_eq!(quartets_to_settle(effect * 0.999, 1.0), Some(quartets + 1));
        }
    }

    #[test]
    fn an_effect_on_the_margin_is_never_settled() {
        assert_eq!(quartets_to_settle(0.0, 0.01), None);
        assert_eq!(quartets_to_settle(1e-9, 1.0), None);
        assert_eq!(quartets_to_settle(0.1, 0.0), Some(2), "no noise at all");
        assert_eq!(quartets_to_settle(0.0, 0.0), None);
    }
}
