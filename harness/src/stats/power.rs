//! What a study can see before it starts.

use super::t_quantile;

/// The smallest true effect that a study of `pairs` pairs detects with 80% power at a two-sided 5%
/// level, in units of the deviation of the pairs' log-ratios. Absent below 3 pairs: no interval, so
/// nothing is ever detected.
///
/// Power is that of the noncentral t with `pairs - 2` degrees of freedom and noncentrality
/// effect * sqrt(pairs), integrated over the chi distribution of the estimated deviation.
pub fn minimum_detectable_effect(pairs: usize) -> Option<f64> {
    if pairs < 3 {
        return None;
    }
    let n = pairs as f64;
    let critical = t_quantile(0.975, n - 2.0);
    let (mut low, mut high) = (0.0_f64, 64.0_f64);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if power(middle * n.sqrt(), n - 2.0, critical) < 0.8 {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(f64::midpoint(low, high))
}

/// P(|T| > critical) for a noncentral T.
fn power(noncentrality: f64, df: f64, critical: f64) -> f64 {
    // s = estimated / true deviation; s^2 df is chi-squared. Simpson's rule over s in (0, 12): at
    // df = 1 the mass beyond is below 1e-30.
    const STEPS: usize = 4000;
    let h = 12.0 / STEPS as f64;
    let log_norm = libm::log(2.0) + df / 2.0 * libm::log(df / 2.0) - libm::lgamma(df / 2.0);
    let mut sum = 0.0;
    for i in 0..=STEPS {
        let s = (i as f64 * h).max(1e-12);
        let density = libm::exp(log_norm + (df - 1.0) * libm::log(s) - df * s * s / 2.0);
        let outside =
            normal_cdf(noncentrality - critical * s) + normal_cdf(-noncentrality - critical * s);
        let weight = if i == 0 || i == STEPS {
            1.0
        } else if i % 2 == 1 {
            4.0
        } else {
            2.0
        };
        sum += weight * density * outside;
    }
    sum * h / 3.0
}

fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
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
}
