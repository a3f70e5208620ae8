//! The noncentral t distribution: what a t test does when there is something to find.

use super::normal::normal_cdf;

/// P(T > critical) of a noncentral T with `df` degrees of freedom (`df` > 0).
///
/// T = (Z + noncentrality) / S where S is the estimated over the true deviation. Published check: R's
/// `power.t.test(n = 20, delta = 1, sd = 1)` gives 0.8689528, which is
/// `noncentral_t_above(t(0.975, 38), 38, sqrt(10))`.
pub fn noncentral_t_above(critical: f64, df: f64, noncentrality: f64) -> f64 {
    over_deviations(df, |s| normal_cdf(noncentrality - critical * s))
}

/// The mean of `what` over S, the estimated over the true deviation: S^2 df is chi-squared. The
/// order of its sums is part of published figures: a change needs a new formula id.
pub(super) fn over_deviations(df: f64, what: impl Fn(f64) -> f64) -> f64 {
    // Simpson's rule over s in (0, 12): at df = 1 the mass beyond is below 1e-30.
    const STEPS: usize = 4000;
    let h = 12.0 / STEPS as f64;
    let log_norm = libm::log(2.0) + df / 2.0 * libm::log(df / 2.0) - libm::lgamma(df / 2.0);
    let mut sum = 0.0;
    for i in 0..=STEPS {
        let s = (i as f64 * h).max(1e-12);
        let density = libm::exp(log_norm + (df - 1.0) * libm::log(s) - df * s * s / 2.0);
        let weight = if i == 0 || i == STEPS {
            1.0
        } else if i % 2 == 1 {
            4.0
        } else {
            2.0
        };
        sum += weight * density * what(s);
    }
    sum * h / 3.0
}

#[cfg(test)]
mod tests {
    use super::super::t_quantile;
    use super::*;

    #[test]
    fn the_example_of_rs_documentation() {
        let power = noncentral_t_above(t_quantile(0.975, 38.0), 38.0, 10.0_f64.sqrt());
        assert!((power - 0.868_952_8).abs() < 5e-8, "{power}");
    }

    #[test]
    fn without_an_effect_it_is_students_t() {
        for df in [1.0, 2.0, 4.0, 22.0, 400.0] {
            let tail = noncentral_t_above(t_quantile(0.975, df), df, 0.0);
            assert!((tail - 0.025).abs() < 1e-7, "{df}: {tail}");
        }
    }
}
