//! The bits of every kernel as they were once written down: the same on every architecture and at
//! every level. (The other tests compare levels of one machine.)

use std::fmt::Write as _;

use half::f16;
use sha2::{Digest, Sha256};

use super::tests::{Words, activations_of_seed, soft_f16, weights_of_seed};
use super::{
    Activations, Isa, KEY_BLOCK, LANES, Layout, Matrix, Panels, Precision, Product, Tally, exp,
    matmul, products, sigmoid, soften,
};
use crate::formats::blocks::GgmlType;
use crate::formats::packed_scales;
use crate::formats::tiles::{self, TILE_ROWS};
use crate::hex::hex;

/// The start of a SHA-256 of some floats' bits.
fn digest(values: &[f32]) -> String {
    let mut hash = Sha256::new();
    for x in values {
        hash.update(x.to_bits().to_le_bytes());
    }
    hex(&hash.finalize()[..8])
}

const PRECISIONS: [(Precision, &str); 3] = [
    (Precision::Int8, "int8"),
    (Precision::Int16, "int16"),
    (Precision::Reference, "reference"),
];

/// Rows in file order and in tiles, five tokens, at one level.
fn matrices(isa: Isa, lines: &mut String) {
    let (rows, n) = (2 * TILE_ROWS, 5);
    for ty in GgmlType::ALL {
        let cols = 4 * ty.block_len().max(32);
        let bytes = weights_of_seed(ty, rows, cols, 21);
        let values = activations_of_seed(n, cols, 22);
        for (precision, name) in PRECISIONS {
            let mut x = Activations::default();
            x.set(&values, n, cols, precision);
            let run = |layout, bytes: &[u8]| {
                let w = Matrix {
                    ty,
                    rows,
                    cols,
                    layout,
                    bytes,
                };
                let mut out = vec![0.0; rows * n];
                matmul(isa, &w, 0..rows, &x, 0..n, precision, &mut out);
                digest(&out)
            };
            let in_rows = run(Layout::Rows, &bytes);
            if tiles::is_tiled(ty, rows) {
                let mut packed = vec![0; bytes.len()];
                let tile = bytes.len() / 2;
                for (rows, out) in bytes.chunks(tile).zip(packed.chunks_mut(tile)) {
                    tiles::pack(ty, rows, out);
                }
                assert_eq!(run(Layout::Tiles, &packed), in_rows, "{}", isa.name());
            }
            if ty == GgmlType::Mxfp4 {
                let packed = packed_scales::pack_rows(&bytes, 4).expect("scales close together");
                let found = run(Layout::PackedScales, &packed);
                assert_eq!(found, in_rows, "{}, packed scales", isa.name());
            }
            writeln!(lines, "{} {name} {in_rows}", ty.name()).expect("a string takes everything");
        }
    }
}

/// Products with panels in f32 and f16, and a softmax of their first scores.
fn attention(isa: Isa, lines: &mut String) {
    let (n, depth, panels) = (3, 40, KEY_BLOCK / LANES);
    let words = &mut Words(23);
    let mut draw = |count: usize| (0..count).map(|_| words.unit()).collect::<Vec<f32>>();
    let (rows, wide) = (draw(n * depth), draw(panels * depth * LANES));
    let half: Vec<f16> = wide.iter().map(|x| soft_f16(*x)).collect();
    for (panels_of, name) in [(Panels::F32(&wide), "f32"), (Panels::F16(&half), "f16")] {
        let product = Product {
            rows: &rows,
            row_len: depth,
            panels: panels_of,
            depth,
            steps: 0..depth,
            taken: 0..panels,
            next: None,
        };
        let mut out = vec![0.0; n * KEY_BLOCK];
        products(isa, &product, None, &mut out, KEY_BLOCK);
        writeln!(lines, "attention {name} {}", digest(&out)).expect("a string takes everything");
        let mut tallies = vec![Tally::new(Some(0.5)); n];
        for (r, tally) in tallies.iter_mut().enumerate() {
            tally.seen = r..KEY_BLOCK - 7 * r;
        }
        let scores = out.as_chunks_mut::<KEY_BLOCK>().0;
        soften(isa, scores, &mut tallies);
        let mut seen = out;
        seen.extend(tallies.iter().flat_map(|t| [t.max, t.total, t.factor]));
        writeln!(lines, "softmax {name} {}", digest(&seen)).expect("a string takes everything");
    }
}

/// What depends on no level: quantised activations, and elementary functions.
fn common(lines: &mut String) {
    let values = activations_of_seed(3, 96, 24);
    let mut x = Activations::default();
    x.set(&values, 3, 96, Precision::Int16);
    let mut numbers = Vec::new();
    for digit in 0..2 {
        for (t, b) in (0..3).flat_map(|t| (0..3).map(move |b| (t, b))) {
            let block = x.block(digit, t, b);
            numbers.extend(block.q.map(f32::from));
            numbers.push(block.d);
        }
    }
    writeln!(lines, "digits {}", digest(&numbers)).expect("a string takes everything");
    let words = &mut Words(25);
    let at: Vec<f32> = (0..1000).map(|_| words.unit() * 100.0).collect();
    for (name, f) in [("exp", exp as fn(f32) -> f32), ("sigmoid", sigmoid)] {
        let values: Vec<f32> = at.iter().map(|x| f(*x)).collect();
        writeln!(lines, "{name} {}", digest(&values)).expect("a string takes everything");
    }
}

#[test]
fn bits_are_those_written_down() {
    let expected = include_str!("golden_bits.txt");
    for isa in Isa::compared() {
        let mut lines = String::new();
        common(&mut lines);
        matrices(isa, &mut lines);
        attention(isa, &mut lines);
        assert_eq!(lines, expected, "at level {}", isa.name());
    }
}
