//! Arrays made element by element where instruction sets differ.

/// The array of `f(0)` to `f(N - 1)`, N at least 1.
///
/// Always inlined, so that a closure over vector instructions ends up in the function that has
/// them enabled; through the standard library's `map` and `from_fn` each register may cost a call.
#[inline(always)]
#[expect(clippy::inline_always, reason = "see above")]
pub(super) fn array<T: Copy, const N: usize>(f: impl Fn(usize) -> T) -> [T; N] {
    let mut out = [f(0); N];
    for (i, out) in out.iter_mut().enumerate().skip(1) {
        *out = f(i);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_in_order() {
        assert_eq!(array::<_, 4>(|i| i * i), [0, 1, 4, 9]);
        assert_eq!(array::<_, 1>(|i| i), [0]);
    }
}
