//! Matrix times activations.

use std::borrow::Cow;
use std::ops::Range;

use super::isa::Level;
use super::{Activations, Isa, Precision, scalar};
use crate::formats::blocks::GgmlType;
use crate::formats::packed_scales;
use crate::formats::tiles::{self, TILE_ROWS};

/// How a matrix lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Row after row, as in a GGUF file.
    Rows,
    /// In tiles of 16 rows (`formats::tiles`).
    Tiles,
    /// MXFP4 in tiles with packed scales (`formats::packed_scales`); the bytes behind the last tile
    /// mean nothing.
    PackedScales,
    /// Q8_0 in tiles, the lowest bits of the weights apart (`formats::planes`).
    Planes,
    /// The same bytes, of which the lowest bits are not read: the two lowest bits of each weight
    /// count as 0.
    HighPlanes,
}

/// A weight matrix in memory: `rows` rows of `cols` weights.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    /// Element type.
    pub ty: GgmlType,
    /// Output width.
    pub rows: usize,
    /// Input width.
    pub cols: usize,
    /// Order of the bytes; tiles hold all rows.
    pub layout: Layout,
    /// `rows` times the row's bytes.
    pub bytes: &'a [u8],
}

impl<'a> Matrix<'a> {
    /// Bytes of a row.
    ///
    /// # Panics
    /// When `cols` is not whole blocks.
    pub fn row_bytes(&self) -> usize {
        self.ty.row_bytes(self.cols).unwrap_or_else(|| {
            panic!(
                "rows of {} weights are not whole {} blocks",
                self.cols,
                self.ty.name()
            )
        })
    }
    /// The bytes of row `r` where they lie; only of a matrix in rows.
    pub(super) fn row(&self, r: usize) -> &'a [u8] {
        debug_assert_eq!(self.layout, Layout::Rows);
        let len = self.row_bytes();
        &self.bytes[r * len..][..len]
    }

    /// Bytes of a tile.
    pub(super) fn tile_bytes(&self) -> usize {
        if self.layout == Layout::PackedScales {
            packed_scales::tile_bytes(self.cols / self.ty.block_len())
        } else {
            TILE_ROWS * self.row_bytes()
        }
    }

    /// Tile `tile`; of no matrix in rows.
    pub(super) fn tile(&self, tile: usize) -> &'a [u8] {
        debug_assert_ne!(self.layout, Layout::Rows);
        let len = self.tile_bytes();
        &self.bytes[tile * len..][..len]
    }

    /// Row `r` as it would lie in a file.
    pub fn read_row(&self, r: usize) -> Cow<'a, [u8]> {
        if self.layout == Layout::Rows {
            return Cow::Borrowed(self.row(r));
        }
        let mut row = vec![0; self.row_bytes()];
        let mut tile = Cow::Borrowed(self.tile(r / TILE_ROWS));
        if let Layout::Planes | Layout::HighPlanes = self.layout {
            let mut joined = vec![0; tile.len()];
            super::planes::join(self, &tile, &mut joined);
            tile = Cow::Owned(joined);
        } else if self.layout == Layout::PackedScales {
            let mut plain = vec![0; TILE_ROWS * self.row_bytes()];
            packed_scales::unpack(&tile, &mut plain);
            tile = Cow::Owned(plain);
        }
        tiles::read_row(self.ty, &tile, r % TILE_ROWS, &mut row);
        Cow::Owned(row)
    }
}

/// `out[(t - tokens.start) * rows.len() + (r - rows.start)] = w[r] . x[t]`, for a strip of rows
/// and a range of tokens. The bits of each output depend on row r and token t alone.
///
/// Quantised weights take the integer kernels; float weights, and everything under `Reference`,
/// take f32 over 16 virtual lanes (`scalar::floats`).
///
/// # Panics
/// When the shapes do not agree, or `x` was not quantised as `precision` asks.
pub fn matmul(
    isa: Isa,
    w: &Matrix<'_>,
    rows: Range<usize>,
    x: &Activations,
    tokens: Range<usize>,
    precision: Precision,
    out: &mut [f32],
) {
    assert_eq!(
        w.cols, x.k,
        "weights of width {} on activations of width {}",
        w.cols, x.k
    );
    assert!(
        rows.end <= w.rows && tokens.end <= x.n,
        "a strip inside the matrix and the batch"
    );
    assert_eq!(
        out.len(),
        rows.len() * tokens.len(),
        "one output a row and token"
    );
    assert_eq!(
        w.bytes.len(),
        w.rows * w.row_bytes(),
        "the bytes of the whole matrix"
    );
    assert!(
        w.layout == Layout::Rows || tiles::is_tiled(w.ty, w.rows),
        "{} rows of {} in tiles",
        w.rows,
        w.ty.name()
    );
    assert!(
        w.layout != Layout::PackedScales || w.ty == GgmlType::Mxfp4,
        "packed scales of {}",
        w.ty.name()
    );
    if rows.is_empty() || tokens.is_empty() {
        return;
    }
    if let Layout::Planes | Layout::HighPlanes = w.layout {
        return super::planes::product(isa, w, rows, x, tokens, precision, out);
    }
    if precision == Precision::Reference || w.ty.is_float() {
        float_rows(isa, w, rows.clone(), x, tokens, out);
    } else {
        quantised(isa, w, rows.clone(), x, tokens, precision, out);
    }
    #[cfg(test)]
    isa.break_product(w, &rows, out);
}

fn quantised(
    isa: Isa,
    w: &Matrix<'_>,
    rows: Range<usize>,
    x: &Activations,
    tokens: Range<usize>,
    precision: Precision,
    out: &mut [f32],
) {
    match isa.0 {
        Level::Scalar => scalar::quantised(w, rows, x, tokens, precision, out),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => super::avx2::quantised::<false>(w, rows, x, tokens, precision, out),
        #[cfg(target_arch = "x86_64")]
        Level::AvxVnni => super::avx2::quantised::<true>(w, rows, x, tokens, precision, out),
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => super::avx512::quantised(w, rows, x, tokens, precision, out),
        #[cfg(target_arch = "aarch64")]
        Level::Neon => super::neon::quantised(w, rows, x, tokens, precision, out),
    }
}

/// Rows expanded to f32 at a time; their dot products hide each other's latency.
pub(super) const FLOAT_ROWS: usize = 4;

fn float_rows(
    isa: Isa,
    w: &Matrix<'_>,
    rows: Range<usize>,
    x: &Activations,
    tokens: Range<usize>,
    out: &mut [f32],
) {
    let mut expanded = vec![0f32; FLOAT_ROWS * w.cols];
    let width = rows.len();
    for first in rows.clone().step_by(FLOAT_ROWS) {
        let count = FLOAT_ROWS.min(rows.end - first);
        for i in 0..count {
            w.ty.dequantize_row(
                &w.read_row(first + i),
                &mut expanded[i * w.cols..][..w.cols],
            );
        }
        for t in tokens.clone() {
            let x = &x.f[t * w.cols..][..w.cols];
            let dots = match isa.0 {
                Level::Scalar => scalar::dot_rows(&expanded, x),
                #[cfg(target_arch = "x86_64")]
                Level::Avx2 | Level::AvxVnni => super::avx2::dot_rows(&expanded, x),
                #[cfg(target_arch = "x86_64")]
                Level::Avx512 => super::avx512::dot_rows(&expanded, x),
                #[cfg(target_arch = "aarch64")]
                Level::Neon => super::neon::dot_rows(&expanded, x),
            };
            let at = (t - tokens.start) * width + (first - rows.start);
            out[at..at + count].copy_from_slice(&dots[..count]);
        }
    }
}
