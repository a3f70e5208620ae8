//! Attention's products with a panel in four registers: four rows share each load, or one row
//! goes through four panels at once, so that sixteen sums hide the additions' latency.

use std::arch::aarch64::{
    float32x4_t, vaddq_f32, vdupq_n_f32, vld1_u16, vld1q_f32, vmulq_f32, vst1q_f32,
};
use std::array::from_fn;
use std::mem::MaybeUninit;

use half::f16;

use super::instructions::{prefetch, widen};
use crate::kernels::LANES;
use crate::kernels::attention::{At, Panels, Product};

/// Registers of a step of a panel.
const QUADS: usize = LANES / 4;
/// Rows of a tile.
const ROWS: usize = 4;
/// Steps of a panel that can be widened beforehand, once for all rows.
const WIDENED: usize = 128;

/// A number in a panel.
trait Element: Copy {
    /// Four of them.
    ///
    /// # Safety
    /// The machine has NEON; there are four at `at`.
    unsafe fn load(at: *const Self) -> float32x4_t;
}

impl Element for f32 {
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn load(at: *const Self) -> float32x4_t {
        // SAFETY: by the caller's promise.
        unsafe { vld1q_f32(at) }
    }
}

impl Element for f16 {
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn load(at: *const Self) -> float32x4_t {
        // SAFETY: by the caller's promise; an f16 is its 16 bits.
        widen(unsafe { vld1_u16(at.cast()) })
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
    // SAFETY: reached only through `Isa(Level::Neon)`, which only detection makes;
    // `Product::check` found `n` rows, the panels taken and room for their products.
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
#[target_feature(enable = "neon")]
unsafe fn all<E: Element>(at: At, panels: *const E, product: &Product<'_>, n: usize) {
    let whole = n - n % ROWS;
    // SAFETY: rows and panels below are those of the caller's promise.
    unsafe {
        for p in product.taken.clone() {
            fetch(product, p);
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
            3 => sweep::<E, 3, 1>(at, panels, product),
            2 => sweep::<E, 2, 2>(at, panels, product),
            1 => sweep::<E, 1, 4>(at, panels, product),
            _ => {}
        }
    }
}

/// `R` rows through all panels, `P` at once.
///
/// # Safety
/// As [`all`], for these rows.
#[target_feature(enable = "neon")]
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
#[target_feature(enable = "neon")]
unsafe fn widened(at: At, panels: *const f16, product: &Product<'_>, n: usize) {
    let mut wide = MaybeUninit::<[f32; WIDENED * LANES]>::uninit();
    let wide = wide.as_mut_ptr().cast::<f32>();
    for p in product.taken.clone() {
        fetch(product, p);
        // SAFETY: `at.steps` steps of a panel taken, and as many in `wide`, which are all written
        // before they are read; then as [`all`], with this panel alone.
        unsafe {
            let panel = panels.add(p * at.panel_len);
            for i in (0..at.steps * LANES).step_by(4) {
                vst1q_f32(wide.add(i), f16::load(panel.add(i)));
            }
            let whole = n - n % ROWS;
            for r in (0..whole).step_by(ROWS) {
                tile::<f32, ROWS, 1>(at.row(r), wide, p * LANES);
            }
            match n - whole {
                3 => tile::<f32, 3, 1>(at.row(whole), wide, p * LANES),
                2 => tile::<f32, 2, 1>(at.row(whole), wide, p * LANES),
                1 => tile::<f32, 1, 1>(at.row(whole), wide, p * LANES),
                _ => {}
            }
        }
    }
}

/// Asks for the share of the next panels that falls to panel `p` of these.
#[inline]
fn fetch(product: &Product<'_>, p: usize) {
    for line in product.share_of_next(p) {
        prefetch(line);
    }
}

/// `R` rows times `P` panels, to column `column` of `out` on.
///
/// # Safety
/// There are `R` rows, `P` panels and as much room.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn tile<E: Element, const R: usize, const P: usize>(at: At, panel: *const E, column: usize) {
    let mut sums = [[[vdupq_n_f32(0.0); QUADS]; P]; R];
    for k in 0..at.steps {
        // SAFETY: step k of each panel, by the caller's promise.
        let lanes: [[float32x4_t; QUADS]; P] = from_fn(|p| {
            from_fn(|i| unsafe { E::load(panel.add(p * at.panel_len + k * LANES + 4 * i)) })
        });
        for (r, sums) in sums.iter_mut().enumerate() {
            // SAFETY: number k of a row, by the caller's promise.
            let x = vdupq_n_f32(unsafe { *at.rows.add(r * at.row_len + k) });
            for (sums, lanes) in sums.iter_mut().zip(lanes) {
                for (sum, lane) in sums.iter_mut().zip(lanes) {
                    // Rounded, then added: not fused.
                    *sum = vaddq_f32(*sum, vmulq_f32(x, lane));
                }
            }
        }
    }
    for (r, sums) in sums.into_iter().enumerate() {
        for (i, sum) in sums.into_iter().flatten().enumerate() {
            // SAFETY: room for the products and a factor a row, by the caller's promise.
            unsafe {
                let out = at.out.add(r * at.out_len + column + 4 * i);
                let sum = match at.factors {
                    None => sum,
                    Some(factors) => {
                        let factor = vdupq_n_f32(*factors.add(r));
                        vaddq_f32(vmulq_f32(vld1q_f32(out), factor), sum)
                    }
                };
                vst1q_f32(out, sum);
            }
        }
    }
}
