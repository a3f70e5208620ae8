//! The two matrix products of attention: queries times keys, and weights times values.
//!
//! Both are rows times *panels*: sixteen columns side by side, so that a lane owns a column and
//! walks through the steps in order. Keys lie with sixteen positions in a panel's lanes and a
//! step a dimension; values with sixteen dimensions in the lanes and a step a position. Nothing
//! is added across lanes, so the bits of an output depend on its row and column alone.

use std::ops::Range;

use half::f16;

use super::isa::Level;
use super::softmax::{KEY_BLOCK, Tally};
use super::{Isa, LANES, scalar};

/// Panels one after another, `[panels, depth, 16]`.
#[derive(Clone, Copy, Debug)]
pub enum Panels<'a> {
    /// In f32.
    F32(&'a [f32]),
    /// In f16, each widened before it is multiplied.
    F16(&'a [f16]),
}

impl Panels<'_> {
    /// Numbers held.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(x) => x.len(),
            Self::F16(x) => x.len(),
        }
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Rows times panels.
#[derive(Clone, Debug)]
pub struct Product<'a> {
    /// Rows, `row_len` numbers each.
    pub rows: &'a [f32],
    /// Length of a row.
    pub row_len: usize,
    /// What they are multiplied with.
    pub panels: Panels<'a>,
    /// Steps of a panel.
    pub depth: usize,
    /// The steps taken: number `k` of a row meets step `k` of a panel.
    pub steps: Range<usize>,
    /// The panels taken.
    pub taken: Range<usize>,
    /// What is likely to come next, to be fetched meanwhile. It changes no result.
    pub next: Option<Panels<'a>>,
}

impl Product<'_> {
    /// Everything that the kernels rely on.
    fn check(&self, factors: Option<&[f32]>, out: &[f32], out_len: usize) {
        let n = self.n();
        assert!(
            self.row_len > 0 && self.rows.len() == n * self.row_len,
            "whole rows"
        );
        assert!(
            self.steps.end <= self.depth.min(self.row_len),
            "steps inside the rows and the panels"
        );
        assert!(
            self.taken.end * self.depth * LANES <= self.panels.len(),
            "panels that there are"
        );
        assert!(
            self.taken.end * LANES <= out_len && out.len() == n * out_len,
            "room for each row's products"
        );
        assert!(
            factors.is_none_or(|factors| factors.len() == n),
            "a factor a row"
        );
    }

    /// Number of rows.
    pub(super) fn n(&self) -> usize {
        self.rows.len() / self.row_len
    }

    /// Cache lines of what comes next: the share that is fetched with panel `p` of these.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    pub(super) fn share_of_next(&self, p: usize) -> impl Iterator<Item = *const u8> {
        let (start, bytes) = match self.next {
            None => (std::ptr::null(), 0),
            Some(Panels::F32(x)) => (x.as_ptr().cast::<u8>(), size_of_val(x)),
            Some(Panels::F16(x)) => (x.as_ptr().cast::<u8>(), size_of_val(x)),
        };
        let share = bytes.div_ceil(self.taken.len().max(1));
        let from = (p - self.taken.start) * share;
        (from..(from + share).min(bytes))
            .step_by(64)
            .map(move |line| start.wrapping_add(line))
    }
}

/// Where a product's numbers lie, for kernels that go by pointers.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[derive(Clone, Copy)]
pub(super) struct At {
    /// The first step's number of the first row.
    pub rows: *const f32,
    pub row_len: usize,
    pub panel_len: usize,
    pub steps: usize,
    pub factors: Option<*const f32>,
    pub out: *mut f32,
    pub out_len: usize,
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
impl At {
    pub fn of(
        product: &Product<'_>,
        factors: Option<&[f32]>,
        out: &mut [f32],
        out_len: usize,
    ) -> Self {
        Self {
            rows: product.rows[product.steps.start..].as_ptr(),
            row_len: product.row_len,
            panel_len: product.depth * LANES,
            steps: product.steps.len(),
            factors: factors.map(<[f32]>::as_ptr),
            out: out.as_mut_ptr(),
            out_len,
        }
    }

    /// This place, `r` rows further.
    #[inline]
    pub fn row(self, r: usize) -> Self {
        Self {
            rows: self.rows.wrapping_add(r * self.row_len),
            factors: self.factors.map(|factors| factors.wrapping_add(r)),
            out: self.out.wrapping_add(r * self.out_len),
            ..self
        }
    }
}

/// `out[r, 16 p + l] = sum over k of rows[r, k] * panels[p, k, l]`, for each row r, panel p taken
/// and lane l; rows of `out` are `out_len` long, and what lies beside the panels taken stays. With
/// `factors`, one a row, the sum is added to `factors[r]` times what was there.
///
/// Sums start at 0 and take the steps in rising order; each product is rounded, then added.
///
/// # Panics
/// When the shapes do not agree.
pub fn products(
    isa: Isa,
    product: &Product<'_>,
    factors: Option<&[f32]>,
    out: &mut [f32],
    out_len: usize,
) {
    product.check(factors, out, out_len);
    if product.n() == 0 {
        return;
    }
    match isa.0 {
        Level::Scalar => scalar::products(product, factors, out, out_len),
        #[cfg(target_arch = "aarch64")]
        Level::Neon => super::neon::products(product, factors, out, out_len),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 | Level::AvxVnni => super::avx2::products(product, factors, out, out_len),
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => super::avx512::products(product, factors, out, out_len),
    }
}

/// Turns each row's scores of a block of keys into weights, e^(score - max), 0 for keys that are
/// not seen, and counts them in its tally. Maximum and sum go over 16 lanes, key j in lane j mod
/// 16, and a pairwise tree (lane 0 with 8, 1 with 9, ...; then 0 with 4, and so on). A row that
/// sees nothing stays as it is. A seen score that is not finite gives a total that is not.
///
/// # Panics
/// When there are not as many tallies as rows.
pub fn soften(isa: Isa, scores: &mut [[f32; KEY_BLOCK]], tallies: &mut [Tally]) {
    assert_eq!(scores.len(), tallies.len(), "a tally a row");
    match isa.0 {
        Level::Scalar => scalar::soften(scores, tallies),
        #[cfg(target_arch = "aarch64")]
        Level::Neon => super::neon::soften(scores, tallies),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 | Level::AvxVnni => super::avx2::soften(scores, tallies),
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => super::avx512::soften(scores, tallies),
    }
}

#[cfg(test)]
#[path = "attention_tests.rs"]
mod tests;
