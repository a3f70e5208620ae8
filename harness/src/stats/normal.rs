//! The normal distribution, by `libm` alone: the same bits on every machine.

/// P(Z <= x).
pub fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
}

/// P(Z > x), with its relative precision kept far out.
pub fn normal_upper(x: f64) -> f64 {
    normal_cdf(-x)
}

/// The density at x.
pub(super) fn normal_density(x: f64) -> f64 {
    const ONE_OVER_SQRT_TWO_PI: f64 = 0.398_942_280_401_432_7;
    ONE_OVER_SQRT_TWO_PI * libm::exp(-0.5 * x * x)
}

/// The x with P(Z > x) = `tail`; `tail` in (0, 1/2], else NaN. By bisection down to neighbouring
/// numbers.
pub fn normal_upper_quantile(tail: f64) -> f64 {
    if !(tail > 0.0 && tail <= 0.5) {
        return f64::NAN;
    }
    // P(Z > 40) is below the smallest number there is.
    let (mut low, mut high) = (0.0_f64, 40.0_f64);
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            return middle;
        }
        if normal_upper(middle) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantile_that_everyone_knows() {
        assert!((normal_upper_quantile(0.025) - 1.959_963_984_540_054).abs() < 1e-12);
        assert!(normal_upper_quantile(0.5).abs() < 1e-15);
        assert!(normal_upper_quantile(0.0).is_nan() && normal_upper_quantile(0.6).is_nan());
        assert!((normal_density(0.0) - 0.398_942_280_401_432_7).abs() < 1e-16);
    }
}
