//! Bits of every level against the scalar twins, and the twins against f64.

use half::f16;
use proptest::prelude::*;

use super::{Activations, Isa, Layout, Matrix, Precision, matmul};
use crate::formats::blocks::GgmlType;
use crate::formats::packed_scales;
use crate::formats::tiles::{self, TILE_ROWS};

/// A stream of well-mixed words (SplitMix64).
pub(super) struct Words(pub(super) u64);

impl Words {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// Uniform in (-1, 1).
    pub(super) fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / 8_388_608.0 - 1.0
    }
}

/// The nearest f16, ties to even, without the machine's instruction: an emulator's may round ties
/// away (Bochs 2.7), and what is made here has one meaning everywhere.
pub(super) fn soft_f16(x: f32) -> f16 {
    f16::from_f32_const(x)
}

/// What the scales and values of a random matrix look like.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Usual,
    /// Every weight code at its extreme, large scales.
    Largest,
    /// Subnormal f16 scales, E8M0 exponents that end in zero scales.
    Tiny,
    Zero,
}

const KINDS: [Kind; 4] = [Kind::Usual, Kind::Largest, Kind::Tiny, Kind::Zero];

fn weights(ty: GgmlType, rows: usize, cols: usize, kind: Kind, words: &mut Words) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..rows * cols / ty.block_len() {
        let block = ty.block_bytes();
        let start = bytes.len();
        if ty.is_float() {
            let x = match kind {
                Kind::Usual => words.unit(),
                Kind::Largest => 60_000.0,
                Kind::Tiny => words.unit() * 1e-7,
                Kind::Zero => 0.0,
            };
            match ty {
                GgmlType::F16 => bytes.extend(soft_f16(x).to_le_bytes()),
                _ => ty.quantize_row(&[x], &mut bytes),
            }
            continue;
        }
        bytes.extend((0..block).map(|at| match kind {
            Kind::Usual | Kind::Tiny => words.next() as u8,
            Kind::Largest if ty == GgmlType::Q8_0 => 0x80,
            Kind::Largest if ty == GgmlType::Q6K && at >= 192 => [0x80, 0x7f][at / 3 % 2],
            Kind::Largest => [0x77, 0xff, 0x00][words.next() as usize % 3],
            Kind::Zero => 0,
        }));
        if ty == GgmlType::Mxfp4 {
            bytes[start] = match kind {
                Kind::Usual => 118 + (words.next() % 10) as u8,
                Kind::Largest => 170,
                Kind::Tiny => (words.next() % 40) as u8,
                Kind::Zero => 0,
            };
            continue;
        }
        let scales_at: &[usize] = match ty {
            GgmlType::Q4_1 | GgmlType::Q4K | GgmlType::Q5K => &[0, 2],
            GgmlType::Q6K => &[208],
            _ => &[0],
        };
        for at in scales_at {
            let scale: u16 = match kind {
                Kind::Usual => 0x2000 | (words.next() as u16 & 0x87ff),
                Kind::Largest => 0x7bff,
                Kind::Tiny => words.next() as u16 & 0x83ff,
                Kind::Zero => 0,
            };
            bytes[start + at..start + at + 2].copy_from_slice(&scale.to_le_bytes());
        }
    }
    bytes
}

/// Usual weights.
pub(super) fn weights_of_seed(ty: GgmlType, rows: usize, cols: usize, seed: u64) -> Vec<u8> {
    weights(ty, rows, cols, Kind::Usual, &mut Words(seed))
}

/// Usual activations.
pub(super) fn activations_of_seed(n: usize, k: usize, seed: u64) -> Vec<f32> {
    activations(n, k, Kind::Usual, &mut Words(seed))
}

/// The width of as many blocks of this type as `cols` has blocks of 32.
fn wide(ty: GgmlType, cols: usize) -> usize {
    cols / 32 * ty.block_len().max(32)
}

fn activations(n: usize, k: usize, kind: Kind, words: &mut Words) -> Vec<f32> {
    (0..n * k)
        .map(|i| match kind {
            Kind::Usual => words.unit() * 3.0,
            Kind::Largest => {
                if i % 3 == 0 {
                    -1e9
                } else {
                    1e9
                }
            }
            Kind::Tiny => words.unit() * 1e-28,
            Kind::Zero => 0.0,
        })
        .collect()
}

/// All of `rows` and tokens at once.
fn whole(isa: Isa, w: &Matrix<'_>, x: &Activations, precision: Precision) -> Vec<u32> {
    let mut out = vec![f32::NAN; w.rows * x.n];
    matmul(isa, w, 0..w.rows, x, 0..x.n, precision, &mut out);
    out.iter().map(|x| x.to_bits()).collect()
}

fn compare(ty: GgmlType, rows: usize, cols: usize, n: usize, kinds: (Kind, Kind), seed: u64) {
    let words = &mut Words(seed);
    let bytes = weights(ty, rows, cols, kinds.0, words);
    let w = Matrix {
        ty,
        rows,
        cols,
        layout: Layout::Rows,
        bytes: &bytes,
    };
    let mut packed = vec![0; bytes.len()];
    let tiles = tiles::is_tiled(ty, rows).then(|| {
        let tile = TILE_ROWS * w.row_bytes();
        for (rows, out) in bytes.chunks(tile).zip(packed.chunks_mut(tile)) {
            tiles::pack(ty, rows, out);
        }
        Matrix {
            layout: Layout::Tiles,
            bytes: &packed,
            ..w
        }
    });
    let packed = match (ty, tiles) {
        (GgmlType::Mxfp4, Some(_)) => packed_scales::pack_rows(&bytes, cols / 32),
        _ => None,
    };
    let packed = packed.as_ref().map(|bytes| Matrix {
        layout: Layout::PackedScales,
        bytes,
        ..w
    });
    for precision in [Precision::Int8, Precision::Int16, Precision::Reference] {
        let mut x = Activations::default();
        x.set(&activations(n, cols, kinds.1, words), n, cols, precision);
        assert!(!x.overflow);
        let twin = whole(Isa::SCALAR, &w, &x, precision);
        assert!(
            twin.iter().all(|b| !f32::from_bits(*b).is_nan()),
            "the data is sound"
        );
        let layouts = [w].into_iter().chain(tiles).chain(packed);
        for (isa, w) in Isa::compared()
            .into_iter()
            .flat_map(|isa| layouts.clone().map(move |w| (isa, w)))
        {
            let what = || {
                format!(
                    "{} {} {:?} {rows}x{cols} n={n} {kinds:?} {precision:?} seed {seed}",
                    isa.name(),
                    ty.name(),
                    w.layout
                )
            };
            assert_eq!(whole(isa, &w, &x, precision), twin, "{}", what());
            // Row by row and token by token.
            let mut one = [0f32];
            for r in 0..rows {
                let t = (r * 7 + seed as usize) % n;
                matmul(isa, &w, r..r + 1, &x, t..t + 1, precision, &mut one);
                assert_eq!(
                    one[0].to_bits(),
                    twin[t * rows + r],
                    "row {r} token {t} {}",
                    what()
                );
            }
            // An inner strip over some of the tokens.
            let (strip, tokens) = (rows / 3..rows, n / 2..n);
            let mut out = vec![0f32; strip.len() * tokens.len()];
            matmul(
                isa,
                &w,
                strip.clone(),
                &x,
                tokens.clone(),
                precision,
                &mut out,
            );
            for (i, t) in tokens.enumerate() {
                for (j, r) in strip.clone().enumerate() {
                    let bits = out[i * strip.len() + j].to_bits();
                    assert_eq!(
                        bits,
                        twin[t * rows + r],
                        "strip row {r} token {t} {}",
                        what()
                    );
                }
            }
        }
    }
}

#[test]
fn levels_not_on_this_machine_are_named() {
    let names = |levels: Vec<Isa>| levels.iter().map(|isa| isa.name()).collect::<Vec<_>>();
    let (here, compared) = (names(Isa::available()), names(Isa::compared()));
    for name in Isa::all_names() {
        if compared.contains(&name) {
            println!("kernel level {name}: bits compared with the scalar twins");
        } else if here.contains(&name) {
            println!("NOT TESTED: kernel level {name} was told to be left out");
        } else {
            println!("NOT TESTED: kernel level {name} is not on this machine");
        }
        assert_eq!(Isa::by_name(name).is_some(), here.contains(&name));
    }
}

#[test]
fn every_token_count_and_odd_row_counts() {
    for ty in GgmlType::ALL {
        for n in 1..=17 {
            let rows = [1, 7, 8, 9, 15, 16, 17, 33][n % 8];
            compare(
                ty,
                rows,
                wide(ty, 96),
                n,
                (Kind::Usual, Kind::Usual),
                n as u64,
            );
        }
    }
}

#[test]
fn more_tokens_than_a_run() {
    for ty in GgmlType::ALL {
        compare(ty, 19, wide(ty, 64), 70, (Kind::Usual, Kind::Usual), 70);
        compare(ty, 48, wide(ty, 64), 70, (Kind::Usual, Kind::Usual), 71);
    }
}

#[test]
fn adversarial_rows() {
    for ty in GgmlType::ALL {
        for w in KINDS {
            for x in KINDS {
                compare(ty, 9, wide(ty, 128), 3, (w, x), 5);
                compare(ty, 16, wide(ty, 128), 3, (w, x), 6);
            }
        }
    }
}

#[test]
fn widths_that_are_not_whole_lanes() {
    for ty in [GgmlType::F32, GgmlType::F16, GgmlType::BF16] {
        for cols in [1, 15, 17, 40, 100] {
            compare(ty, 5, cols, 2, (Kind::Usual, Kind::Usual), cols as u64);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn random_shapes(
        ty in prop::sample::select(&GgmlType::ALL[..]),
        rows in 1usize..40,
        blocks in 1usize..12,
        n in 1usize..40,
        kinds in (prop::sample::select(&KINDS[..]), prop::sample::select(&KINDS[..])),
        seed: u64,
    ) {
        compare(ty, rows, wide(ty, blocks * 32), n, kinds, seed);
    }
}

/// Int8 against f64 over the dequantised weights: the error is that of the activations alone.
#[test]
fn results_are_right() {
    let (rows, n) = (5, 2);
    for ty in GgmlType::ALL {
        let cols = 2880 - 2880 % ty.block_len();
        let words = &mut Words(11);
        let bytes = weights(ty, rows, cols, Kind::Usual, words);
        let w = Matrix {
            ty,
            rows,
            cols,
            layout: Layout::Rows,
            bytes: &bytes,
        };
        for (precision, bound) in [
            (Precision::Int8, 1e-2),
            (Precision::Int16, 4e-5),
            (Precision::Reference, 1e-6),
        ] {
            let mut x = Activations::default();
            x.set(
                &activations(n, cols, Kind::Usual, words),
                n,
                cols,
                precision,
            );
            let got = whole(Isa::detect(), &w, &x, precision);
            let mut row = vec![0f32; cols];
            for r in 0..rows {
                ty.dequantize_row(w.row(r), &mut row);
                for t in 0..n {
                    let terms = || {
                        row.iter()
                            .zip(&x.f[t * cols..])
                            .map(|(w, x)| f64::from(*w) * f64::from(*x))
                    };
                    let exact: f64 = terms().sum();
                    let size = terms().map(|p| p * p).sum::<f64>().sqrt();
                    let error = (f64::from(f32::from_bits(got[t * rows + r])) - exact).abs();
                    assert!(
                        error < bound * size,
                        "{} {precision:?}: {error} of {size}",
                        ty.name()
                    );
                }
            }
        }
    }
}
