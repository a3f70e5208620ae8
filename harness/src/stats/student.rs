//! Student's t distribution. Logarithms and exponentials come from `libm` (pure Rust), so that a
//! figure has the same bits on every machine that audits it.

use std::cell::RefCell;
use std::collections::HashMap;

/// Cumulative distribution of Student's t at `t` with `df` degrees of freedom (`df` > 0), by the
/// regularised incomplete beta function (Abramowitz & Stegun 26.7.1, 26.5.8).
pub fn t_cdf(t: f64, df: f64) -> f64 {
    let tail = 0.5 * incomplete_beta(df / (df + t * t), df / 2.0, 0.5);
    if t > 0.0 { 1.0 - tail } else { tail }
}

thread_local! {
    /// The last few quantiles: simulated studies ask for the same ones thousands of times.
    static KNOWN: RefCell<HashMap<(u64, u64), f64>> = RefCell::new(HashMap::new());
}

/// The `p` quantile of Student's t with `df` degrees of freedom; `p` in (0, 1), else NaN.
pub fn t_quantile(p: f64, df: f64) -> f64 {
    if !(p > 0.0 && p < 1.0) {
        return f64::NAN;
    }
    let key = (p.to_bits(), df.to_bits());
    KNOWN.with_borrow_mut(|known| {
        if known.len() > 64 {
            known.clear();
        }
        *known.entry(key).or_insert_with(|| find_quantile(p, df))
    })
}

fn find_quantile(p: f64, df: f64) -> f64 {
    // Work in the upper half on the small tail, where the function keeps its relative precision.
    let tail = p.min(1.0 - p);
    let upper_tail = |t: f64| 0.5 * incomplete_beta(df / (df + t * t), df / 2.0, 0.5);
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    while upper_tail(high) > tail {
        low = high;
        high *= 2.0;
    }
    // Bisection down to neighbouring numbers: slow, exact, the same everywhere.
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return if p < 0.5 { -middle } else { middle };
        }
        if upper_tail(middle) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
}

/// Regularised incomplete beta I_x(a, b).
pub(super) fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = libm::exp(
        libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b)
            + a * libm::log(x)
            + b * libm::log1p(-x),
    );
    // The continued fraction converges fast on this side of the mean; symmetry gives the other.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(x, a, b) / a
    } else {
        1.0 - front * beta_fraction(1.0 - x, b, a) / b
    }
}

/// The continued fraction of the incomplete beta (Abramowitz & Stegun 26.5.8) by the modified
/// Lentz method.
fn beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let floor = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / floor(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for m in 1..500 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / floor(1.0 + even * d);
        c = floor(1.0 + even / c);
        value *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / floor(1.0 + odd * d);
        c = floor(1.0 + odd / c);
        let step = d * c;
        value *= step;
        if (step - 1.0).abs() < 1e-16 {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symmetric_and_undefined_outside() {
        assert_eq!(t_quantile(0.25, 4.0), -t_quantile(0.75, 4.0));
        assert!(t_quantile(0.0, 4.0).is_nan() && t_quantile(1.0, 4.0).is_nan());
        assert!((t_cdf(0.0, 3.0) - 0.5).abs() < 1e-15);
    }

    #[test]
    fn one_degree_of_freedom_is_cauchy() {
        // Closed form: tan(pi (p - 1/2)).
        let exact = (std::f64::consts::PI * 0.475).tan();
        assert!((t_quantile(0.975, 1.0) / exact - 1.0).abs() < 1e-12);
    }
}
