//! Attention's products with a panel in one register: eight rows share each load, or one row
//! goes through eight panels at once, so that eight sums hide the additions' latency.

// (The lint does not fire in a test build, where `expect` would be unfulfilled.)
#[allow(
    clippy::wildcard_imports,
    reason = "a kernel names dozens of intrinsics"
)]
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use half::f16;

use crate::kernels::LANES;
use crate::kernels::attention::{At, Panels, Product};

/// Rows of a tile.
const ROWS: usize = 8;
/// Steps of a panel that can be widened beforehand, once for all rows.
const WIDENED: usize = 128;

/// A number in a panel.
trait Element: Copy {
    /// Sixteen of them.
    ///
    /// # Safety
    /// The machine has AVX-512; there are sixteen at `at`.
    unsafe fn load(at: *const Self) -> __m512;
}

impl Element for f32 {
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load(at: *const Self) -> __m512 {
        // SAFETY: by the caller's promise.
        unsafe { _mm512_loadu_ps(at) }
    }
}

impl Element for f16 {
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load(at: *const Self) -> __m512 {
        // SAFETY: by the caller's promise.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(at.cast())) }
    }
}

/// See [`crate::kernels::products`]. The caller holds an `Isa` of this level and has checked the
/// shapes.
pub(in crate::kernels) fn products(
    product: &Product<'_>,
    factors: Option<&[f32]>,
    out: &mut [f32],
    out_len: usize,
) {
    let at = At::of(product, factors, out, out_len);
    let (first, n) = (product.steps.start * LANES, product.n());
    // SAFETY: reached only through `Isa(Level::Avx512)`, which only detection of AVX-512
    // makes; `Product::check` found `n` rows, the panels taken and room for their products.
    unsafe {
        match product.panels {
            Panels::F32(panels) => all(at, panels[first..].as_ptr(), product, n),
            Panels::F16(panels) if n > ROWS && at.steps <= WIDENED => {
                widened(at, panels[first..].as_ptr(), product, n);
            }
            Panels::F16(panels) => all(at, panels[first..].as_ptr(), product, n),
        }
    }
}

/// All rows, with panels as they lie.
///
/// # Safety
/// There are `n` rows, the panels taken (`panels` is the first step of panel 0), and room in `out`.
#[target_feature(enable = "avx512f")]
unsafe fn all<E: Element>(at: At, panels: *const E, product: &Product<'_>, n: usize) {
    let taken = &product.taken;
    let whole = n - n % ROWS;
    // SAFETY: rows and panels below are those of the caller's promise.
    unsafe {
        for p in taken.clone() {
            let panel = panels.add(p * at.panel_len);
            for r in (0..whole).step_by(ROWS) {
                tile::<E, ROWS, 1>(at.row(r), panel, p * LANES);
            }
        }
        if whole == n {
            return;
        }
        let at = at.row(whole);
        match n - whole {
            7 => sweep::<E, 7, 1>(at, panels, product),
            6 => sweep::<E, 6, 1>(at, panels, product),
            5 => sweep::<E, 5, 1>(at, panels, product),
            4 => sweep::<E, 4, 2>(at, panels, product),
            3 => sweep::<E, 3, 2>(at, panels, product),
            2 => sweep::<E, 2, 4>(at, panels, product),
            1 => sweep::<E, 1, 8>(at, panels, product),
            _ => {}
        }
    }
}

/// `R` rows through all panels, `P` at once.
///
/// # Safety
/// As [`all`], for these rows.
#[target_feature(enable = "avx512f")]
unsafe fn sweep<E: Element, const R: usize, const P: usize>(
    at: At,
    panels: *const E,
    product: &Product<'_>,
) {
    let mut p = product.taken.start;
    // SAFETY: only panels taken are touched.
    unsafe {
        while p + P <= product.taken.end {
            tile::<E, R, P>(at, panels.add(p * at.panel_len), p * LANES);
            p += P;
        }
        while p < product.taken.end {
            tile::<E, R, 1>(at, panels.add(p * at.panel_len), p * LANES);
            p += 1;
        }
    }
}

/// All rows, each panel widened once.
///
/// # Safety
/// As [`all`], and there are at most `WIDENED` steps.
#[target_feature(enable = "avx512f")]
unsafe fn widened(at: At, panels: *const f16, product: &Product<'_>, n: usize) {
    let mut wide = MaybeUninit::<[f32; WIDENED * LANES]>::uninit();
    let wide = wide.as_mut_ptr().cast::<f32>();
    for p in product.taken.clone() {
        // SAFETY: `at.steps` steps of a panel taken, and as many in `wide`, which are all written
        // before they are read; then as [`all`], with this panel alone.
        unsafe {
            let panel = panels.add(p * at.panel_len);
            for i in (0..at.steps * LANES).step_by(LANES) {
                _mm512_storeu_ps(wide.add(i), f16::load(panel.add(i)));
            }
            let mut r = 0;
            while r + ROWS <= n {
                tile::<f32, ROWS, 1>(at.row(r), wide, p * LANES);
                r += ROWS;
            }
            if r == n {
                continue;
            }
            let at = at.row(r);
            match n - r {
                7 => tile::<f32, 7, 1>(at, wide, p * LANES),
                6 => tile::<f32, 6, 1>(at, wide, p * LANES),
                5 => tile::<f32, 5, 1>(at, wide, p * LANES),
                4 => tile::<f32, 4, 1>(at, wide, p * LANES),
                3 => tile::<f32, 3, 1>(at, wide, p * LANES),
                2 => tile::<f32, 2, 1>(at, wide, p * LANES),
                1 => tile::<f32, 1, 1>(at, wide, p * LANES),
                _ => {}
            }
        }
    }
}

/// `R` rows times `P` panels, to column `column` of `out` on.
///
/// # Safety
/// There are `R` rows, `P` panels and as much room.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn tile<E: Element, const R: usize, const P: usize>(at: At, panel: *const E, column: usize) {
    let mut sums = [[_mm512_setzero_ps(); P]; R];
    for k in 0..at.steps {
        let mut lanes = [_mm512_setzero_ps(); P];
        for (p, lanes) in lanes.iter_mut().enumerate() {
            // SAFETY: step k of a panel, by the caller's promise.
            *lanes = unsafe { E::load(panel.add(p * at.panel_len + k * LANES)) };
        }
        for (r, sums) in sums.iter_mut().enumerate() {
            // SAFETY: number k of a row, by the caller's promise.
            let x = unsafe { _mm512_set1_ps(*at.rows.add(r * at.row_len + k)) };
            for (sum, lanes) in sums.iter_mut().zip(lanes) {
                *sum = _mm512_add_ps(*sum, _mm512_mul_ps(x, lanes));
            }
        }
    }
    for (r, sums) in sums.into_iter().enumerate() {
        for (i, sum) in sums.into_iter().enumerate() {
            // SAFETY: room for the products and a factor a row, by the caller's promise.
            unsafe {
                let out = at.out.add(r * at.out_len + column + LANES * i);
                let sum = match at.factors {
                    None => sum,
                    Some(factors) => {
                        let factor = _mm512_set1_ps(*factors.add(r));
                        _mm512_add_ps(_mm512_mul_ps(_mm512_loadu_ps(out), factor), sum)
                    }
                };
                _mm512_storeu_ps(out, sum);
            }
        }
    }
}
