//! The assumption-free check: under no effect each quartet's sign is a coin.

/// Most quartets whose 2^q sign patterns are enumerated.
pub const MAX_QUARTETS: usize = 20;

/// Result of the test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignFlip {
    /// Share of sign patterns whose mean is at least as far from 0 as the observed one.
    pub p: f64,
    /// The smallest p that this many quartets can give: 2^(1 - q).
    pub smallest_p: f64,
}

/// Exact two-sided sign-flip test over quartet effects (log units). Absent for none and for more
/// than [`MAX_QUARTETS`].
///
/// R. A. Fisher, "The Design of Experiments", section 21: of the 32,768 sign patterns of Darwin's 15
/// pairs of maize plants, 1,726 have sums at least as far from 0 as the 314 observed.
pub fn sign_flip(effects: &[f64]) -> Option<SignFlip> {
    let q = effects.len();
    if q == 0 || q > MAX_QUARTETS || effects.iter().any(|e| !e.is_finite()) {
        return None;
    }
    let observed = effects.iter().sum::<f64>().abs();
    // Sums in another order round differently; a tie must count as a tie.
    let tie = observed * (1.0 - 1e-12);
    let patterns = 1_u32 << q;
    let extreme = (0..patterns)
        .filter(|pattern| {
            let sum: f64 = effects
                .iter()
                .enumerate()
                .map(|(i, e)| if pattern >> i & 1 == 1 { -e } else { *e })
                .sum();
            sum.abs() >= tie
        })
        .count();
    Some(SignFlip {
        p: extreme as f64 / f64::from(patterns),
        smallest_p: 2.0 / f64::from(patterns),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn darwins_maize_by_fisher() {
        let differences = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48];
        let test = sign_flip(&differences.map(f64::from)).unwrap();
        assert_eq!(test.p, 1726.0 / 32768.0);
    }

    #[test]
    fn one_quartet_can_never_be_significant() {
        assert_eq!(
            sign_flip(&[0.3]),
            Some(SignFlip {
                p: 1.0,
                smallest_p: 1.0
            })
        );
        assert_eq!(
            sign_flip(&[0.3; 6]),
            Some(SignFlip {
                p: 2.0 / 64.0,
                smallest_p: 2.0 / 64.0
            })
        );
        assert_eq!(sign_flip(&[]), None);
    }
}
