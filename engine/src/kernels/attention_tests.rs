//! Bits of every level against the scalar twins, and the twins against their definitions.

use half::slice::HalfFloatSliceExt;
use proptest::prelude::*;

use super::*;
use crate::kernels::exp;
use crate::kernels::tests::Words;

/// What numbers look like.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Usual,
    /// Sums that overflow f16's range by far, and cancel.
    Large,
    /// Subnormal in f16 and, multiplied, in f32.
    Tiny,
    /// Signed zeros, infinities and NaN among others.
    Odd,
}

const KINDS: [Kind; 4] = [Kind::Usual, Kind::Large, Kind::Tiny, Kind::Odd];

fn numbers(n: usize, kind: Kind, words: &mut Words) -> Vec<f32> {
    let mut one = || match kind {
        Kind::Usual => words.unit() * 3.0,
        Kind::Large => words.unit().signum() * 60_000.0,
        Kind::Tiny => words.unit() * 1e-6 * 1e-18f32.powi((words.next() % 2) as i32),
        Kind::Odd => {
            [0.0, -0.0, 1.0, -1.5, f32::INFINITY, f32::NAN, -3.0, 0.25][words.next() as usize % 8]
        }
    };
    (0..n).map(|_| one()).collect()
}

/// Bits, with one NaN for all: its sign and payload are no number's.
fn bits(x: &[f32]) -> Vec<u32> {
    let bits = |x: &f32| if x.is_nan() { u32::MAX } else { x.to_bits() };
    x.iter().map(bits).collect()
}

#[derive(Clone, Copy, Debug)]
struct Shape {
    rows: usize,
    row_len: usize,
    depth: usize,
    panels: usize,
}

/// All levels give the bits of the definition, in f32 and f16, with factors and without.
fn compare(shape: Shape, kind: Kind, seed: u64) {
    let words = &mut Words(seed);
    let Shape {
        rows: n,
        row_len,
        depth,
        panels,
    } = shape;
    let rows = numbers(n * row_len, kind, words);
    let f32s = numbers(panels * depth * LANES, kind, words);
    let mut f16s = vec![f16::ZERO; f32s.len()];
    f16s.convert_from_f32_slice(&f32s);
    let rounded: Vec<f32> = f16s.iter().map(|x| x.to_f32()).collect();
    let factors = numbers(n, kind, words);
    let out_len = panels * LANES + words.next() as usize % 3;
    let before = numbers(n * out_len, Kind::Usual, words);

    let most = depth.min(row_len);
    let from = words.next() as usize % (most + 1);
    let first = words.next() as usize % (panels + 1);
    for (steps, taken) in [(0..most, 0..panels), (from..most, first..panels)] {
        for (held, exact) in [(Panels::F32(&f32s), &f32s), (Panels::F16(&f16s), &rounded)] {
            for factors in [None, Some(&factors[..])] {
                let mut expected = before.clone();
                for (r, p, l) in (0..n).flat_map(|r| {
                    let lanes = move |p| (0..LANES).map(move |l| (r, p, l));
                    taken.clone().flat_map(lanes)
                }) {
                    let mut sum = 0.0f32;
                    for k in steps.clone() {
                        sum += rows[r * row_len + k] * exact[(p * depth + k) * LANES + l];
                    }
                    let out = &mut expected[r * out_len + p * LANES + l];
                    *out = factors.map_or(sum, |f| *out * f[r] + sum);
                }
                let product = Product {
                    rows: &rows,
                    row_len,
                    panels: held,
                    depth,
                    steps: steps.clone(),
                    taken: taken.clone(),
                    next: Some(held),
                };
                for isa in Isa::compared() {
                    let mut out = before.clone();
                    products(isa, &product, factors, &mut out, out_len);
                    let same = bits(&out) == bits(&expected);
                    let what = (isa.name(), &steps, &taken, factors.is_some());
                    assert!(same, "{shape:?} {kind:?} {seed} {what:?}");
                }
            }
        }
    }
}

#[test]
fn every_number_of_rows_and_panels() {
    for rows in 0..=18 {
        for panels in [1, 3, 4, 8, 9] {
            let shape = Shape {
                rows,
                row_len: 21,
                depth: 20,
                panels,
            };
            compare(shape, Kind::Usual, (rows * 10 + panels) as u64);
        }
    }
}

#[test]
fn heads_of_64_128_and_odd_widths() {
    for (kind, dim) in KINDS
        .into_iter()
        .flat_map(|k| [1, 18, 64, 80, 128, 200].map(|d| (k, d)))
    {
        for rows in [1, 8, 9] {
            let keys = Shape {
                rows,
                row_len: dim,
                depth: dim,
                panels: KEY_BLOCK / LANES,
            };
            compare(keys, kind, dim as u64);
            let values = Shape {
                rows,
                row_len: KEY_BLOCK,
                depth: KEY_BLOCK,
                panels: dim.div_ceil(LANES),
            };
            compare(values, kind, dim as u64);
        }
    }
}

/// Random rows through a few blocks at every level; the scalar one checked against f64.
fn soften_alike(kind: Kind, sink: Option<f32>, scale: f32, seed: u64) {
    let words = &mut Words(seed);
    let rows = 5;
    let mut at_level: Vec<Vec<Tally>> = Isa::available()
        .iter()
        .map(|_| vec![Tally::new(sink); rows])
        .collect();
    let mut all: Vec<Vec<f64>> = vec![sink.into_iter().map(f64::from).collect(); rows];
    for _ in 0..4 {
        let mut scores = vec![[0f32; KEY_BLOCK]; rows];
        for (r, row) in scores.iter_mut().enumerate() {
            row.copy_from_slice(&numbers(KEY_BLOCK, kind, words));
            for score in row.iter_mut() {
                *score *= scale;
            }
            let mut ends = [words.next() as usize % 65, words.next() as usize % 65];
            ends.sort_unstable();
            let seen = if r == 0 { 0..64 } else { ends[0]..ends[1] };
            all[r].extend(row[seen.clone()].iter().map(|s| f64::from(*s)));
            for tallies in &mut at_level {
                tallies[r].seen = seen.clone();
            }
        }
        let mut first: Option<Vec<[f32; KEY_BLOCK]>> = None;
        for (isa, tallies) in Isa::available().into_iter().zip(&mut at_level) {
            let mut weights = scores.clone();
            soften(isa, &mut weights, tallies);
            let first = first.get_or_insert_with(|| weights.clone());
            let same = bits(first.as_flattened()) == bits(weights.as_flattened());
            assert!(same, "{}, {kind:?}, seed {seed}", isa.name());
        }
        for tallies in &at_level {
            let of = |t: &[Tally]| {
                let numbers = t.iter().flat_map(|t| [t.max, t.total, t.factor]);
                bits(&numbers.collect::<Vec<f32>>())
            };
            assert_eq!(of(tallies), of(&at_level[0]), "{kind:?}, seed {seed}");
        }
    }
    if matches!(kind, Kind::Odd) {
        return;
    }
    for (tally, scores) in at_level[0].iter().zip(all) {
        let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        assert_eq!(f64::from(tally.max), max);
        let total: f64 = scores.iter().map(|s| (s - max).exp()).sum();
        let error = (f64::from(tally.total) - total).abs();
        assert!(
            error <= 1e-5 * total,
            "{kind:?}: {} for {total}",
            tally.total
        );
    }
}

#[test]
fn softmax_is_the_same_at_every_level() {
    for kind in KINDS {
        for (seed, sink) in [None, Some(0.5), Some(1e6), Some(-1e30)]
            .into_iter()
            .enumerate()
        {
            for scale in [1.0, 30.0, 1e-3] {
                soften_alike(kind, sink, scale, seed as u64);
            }
        }
    }
}

#[test]
fn weights_are_powers_of_e_and_unseen_keys_have_none() {
    let mut scores = [[f32::NAN; KEY_BLOCK]];
    scores[0][3] = 1.0;
    scores[0][4] = -1.0;
    let mut tallies = [Tally::new(None)];
    tallies[0].seen = 3..5;
    for isa in Isa::available() {
        let (mut scores, mut tallies) = (scores, tallies.clone());
        soften(isa, &mut scores, &mut tallies);
        let weights = (scores[0][2], scores[0][3], scores[0][4], scores[0][5]);
        assert_eq!(weights, (0.0, 1.0, exp(-2.0), 0.0));
        let Tally {
            max, total, factor, ..
        } = tallies[0];
        assert_eq!((max, total, factor), (1.0, 1.0 + exp(-2.0), 0.0));
        // Nothing seen, nothing changed.
        tallies[0].seen = 7..7;
        soften(isa, &mut scores, &mut tallies);
        assert_eq!((tallies[0].total, tallies[0].factor), (total, 1.0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn random_products(
        rows in 0usize..20,
        row_len in 1usize..140,
        depth in 1usize..140,
        panels in 1usize..10,
        kind in prop::sample::select(&KINDS[..]),
        seed: u64,
    ) {
        compare(Shape { rows, row_len, depth, panels }, kind, seed);
    }
}
