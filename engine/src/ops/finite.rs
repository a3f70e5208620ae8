//! Numbers that a forward pass cannot use are found where they arise: NaN, infinities, and
//! magnitudes beyond what quantised activations can hold.

/// A row that holds a NaN, an infinity, or a magnitude of 2^34 or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} of row {row} is not finite, or beyond 2^34")]
pub struct NonFinite {
    /// Which intermediate value.
    pub what: &'static str,
    /// The row (token of the block) it belongs to.
    pub row: usize,
}

/// Looks through `x`, rows of `width` values.
pub fn check_finite(what: &'static str, x: &[f32], width: usize) -> Result<(), NonFinite> {
    check(what, x, width, |_| false)
}

/// As [`check_finite`], but negative infinity stands for a value that was not computed.
pub fn check_computed(what: &'static str, x: &[f32], width: usize) -> Result<(), NonFinite> {
    check(what, x, width, |v| v == f32::NEG_INFINITY)
}

#[inline]
fn check(
    what: &'static str,
    x: &[f32],
    width: usize,
    exempt: impl Fn(f32) -> bool,
) -> Result<(), NonFinite> {
    const LIMIT: u32 = 0x5080_0000; // the bits of 2^34; those of infinity and NaN are larger
    for (row, values) in x.chunks(width.max(1)).enumerate() {
        // No early exit, so that the loop runs in SIMD lanes.
        let bad = values.iter().fold(0u32, |bad, v| {
            bad | u32::from(v.to_bits() & 0x7fff_ffff >= LIMIT && !exempt(*v))
        });
        if bad != 0 {
            return Err(NonFinite { what, row });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_row_is_named() {
        let mut x = vec![1.0, -1.7e10, 0.0, f32::MIN_POSITIVE];
        assert_eq!(check_finite("x", &x, 2), Ok(()));
        for bad in [
            f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            -17_179_869_184.0,
        ] {
            x[3] = bad;
            assert_eq!(
                check_finite("x", &x, 2),
                Err(NonFinite { what: "x", row: 1 })
            );
        }
    }
}
