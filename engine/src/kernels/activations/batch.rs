//! A batch of activation vectors, laid out for the kernels' walk.

use std::ops::Range;

use super::block::BLOCK;
use super::{ActBlock, Precision};

/// Most tokens of a run.
///
/// A kernel decodes a block of weights once and takes it to each token of a run, so the blocks of
/// a run's tokens lie next to each other, k by k: at 2880 wide a run is 115 kB a digit.
pub const RUN: usize = 32;

/// One int8 digit of a batch.
#[derive(Clone, Debug)]
pub struct Digit {
    /// `n * k / 32` blocks, run by run and within a run `[k / 32, tokens of the run]`.
    pub(in crate::kernels) blocks: Vec<ActBlock>,
    /// No scale but 0 is less.
    pub(in crate::kernels) least: f32,
}

impl Default for Digit {
    fn default() -> Self {
        Self {
            blocks: Vec::new(),
            least: f32::MAX,
        }
    }
}

impl Digit {
    fn clear(&mut self) {
        self.blocks.clear();
        self.least = f32::MAX;
    }

    fn put(&mut self, at: usize, block: ActBlock) {
        if block.d != 0.0 {
            self.least = self.least.min(block.d);
        }
        self.blocks[at] = block;
    }
}

/// `n` activation vectors of width `k`, in f32 and (unless under `Precision::Reference`, and when
/// `k` is a multiple of 32) quantised.
#[derive(Clone, Debug, Default)]
pub struct Activations {
    /// Tokens.
    pub n: usize,
    /// Width.
    pub k: usize,
    /// `[n, k]` values; empty after a gathering without them.
    pub f: Vec<f32>,
    /// The first and the second; empty where not asked for.
    digits: [Digit; 2],
    /// Run r holds the tokens `bounds[r]..bounds[r + 1]`.
    bounds: Vec<usize>,
    /// Whether a quantised block held a NaN, an infinity or a value of
    /// [`MAX_ACTIVATION`](crate::kernels::MAX_ACTIVATION) or more; such a block has d = 0, so its
    /// products are worthless.
    pub overflow: bool,
}

impl Activations {
    /// Takes `n` vectors of width `k` and quantises them as `precision` asks, re-using buffers.
    /// NaN, infinite or too large input is quantised to d = 0 and sets `overflow`.
    ///
    /// # Panics
    /// When `x` is not `n * k` long.
    pub fn set(&mut self, x: &[f32], n: usize, k: usize, precision: Precision) {
        self.set_groups(x, &[0, n], k, precision);
    }

    /// As [`Activations::set`], for tokens that are used in groups: group g holds the tokens
    /// `groups[g]..groups[g + 1]`.
    ///
    /// # Panics
    /// When `x` does not hold the groups' tokens.
    pub fn set_groups(&mut self, x: &[f32], groups: &[usize], k: usize, precision: Precision) {
        let n = groups.last().copied().unwrap_or(0);
        assert_eq!(x.len(), n * k, "{n} activation vectors of width {k}");
        self.n = n;
        self.k = k;
        self.f.clear();
        self.f.extend_from_slice(x);
        self.bounds = runs(groups);
        self.digits.iter_mut().for_each(Digit::clear);
        self.overflow = false;
        if precision == Precision::Reference || !k.is_multiple_of(BLOCK) {
            return;
        }
        self.quantize(precision);
    }

    fn quantize(&mut self, precision: Precision) {
        let blocks = self.k / BLOCK;
        let values = self.f.as_chunks::<BLOCK>().0;
        let [first, second] = &mut self.digits;
        first.blocks.resize(values.len(), ActBlock::default());
        if precision == Precision::Int16 {
            second.blocks.resize(values.len(), ActBlock::default());
        }
        for run in self.bounds.windows(2) {
            for t in run[0]..run[1] {
                for b in 0..blocks {
                    let x = &values[t * blocks + b];
                    let at = run[0] * blocks + b * (run[1] - run[0]) + (t - run[0]);
                    let Some(digit) = ActBlock::first(x) else {
                        self.overflow = true;
                        continue;
                    };
                    first.put(at, digit);
                    if precision == Precision::Int16 {
                        second.put(at, ActBlock::second(x, &digit));
                    }
                }
            }
        }
    }

    /// The digits of `tokens` in that order, in groups as in [`Activations::set_groups`], as
    /// `precision` needs them, and their f32 values if `floats`.
    #[must_use]
    pub fn gather(
        &self,
        tokens: &[usize],
        groups: &[usize],
        precision: Precision,
        floats: bool,
    ) -> Self {
        let blocks = self.k / BLOCK;
        let bounds = runs(groups);
        // Where a token's first block lies, and how far the next.
        let mut places = Vec::with_capacity(self.n);
        for run in self.bounds.windows(2) {
            let len = run[1] - run[0];
            places.extend((0..len).map(|t| (run[0] * blocks + t, len)));
        }
        let digits = std::array::from_fn(|i| {
            let Some(from) = self.digits(precision).get(i) else {
                return Digit::default();
            };
            let mut to = Vec::with_capacity(tokens.len() * blocks);
            for run in bounds.windows(2) {
                let places = tokens[run[0]..run[1]].iter().map(|&t| places[t]);
                for b in 0..blocks {
                    to.extend(places.clone().map(|(at, step)| from.blocks[at + b * step]));
                }
            }
            Digit {
                blocks: to,
                least: from.least,
            }
        });
        let mut f = Vec::new();
        if floats {
            f.reserve(tokens.len() * self.k);
            for t in tokens {
                f.extend_from_slice(&self.f[t * self.k..][..self.k]);
            }
        }
        Self {
            n: tokens.len(),
            k: self.k,
            f,
            digits,
            bounds,
            overflow: self.overflow,
        }
    }

    /// What a kernel walks through under `precision`.
    pub(in crate::kernels) fn digits(&self, precision: Precision) -> &[Digit] {
        &self.digits[..precision.digits()]
    }

    /// The runs that hold `tokens`, each as far as it does.
    pub(in crate::kernels) fn runs(&self, tokens: Range<usize>) -> impl Iterator<Item = Run> {
        let blocks = self.k / BLOCK;
        let first = self.bounds.partition_point(|&b| b <= tokens.start);
        self.bounds[first.saturating_sub(1)..]
            .array_windows()
            .take_while(move |[start, _]| *start < tokens.end)
            .map(move |&[start, end]| Run {
                base: start * blocks,
                len: end - start,
                start,
                tokens: tokens.start.max(start)..tokens.end.min(end),
            })
    }

    /// Block `b` of token `t` in a digit.
    pub(in crate::kernels) fn block<'a>(
        &self,
        digit: &'a Digit,
        t: usize,
        b: usize,
    ) -> &'a ActBlock {
        let run = self.runs(t..t + 1).next();
        let run = run.unwrap_or_else(|| panic!("token {t} of {}", self.n));
        &run.blocks(digit, b)[0]
    }
}

/// Some tokens of a run.
#[derive(Clone, Debug)]
pub(in crate::kernels) struct Run {
    /// Index of the run's first block in a digit.
    base: usize,
    /// Tokens of the whole run.
    len: usize,
    /// Its first token.
    start: usize,
    /// Those meant.
    pub(in crate::kernels) tokens: Range<usize>,
}

impl Run {
    /// Block `b` of each of the tokens.
    #[inline]
    pub(in crate::kernels) fn blocks<'a>(&self, digit: &'a Digit, b: usize) -> &'a [ActBlock] {
        let at = self.base + b * self.len + (self.tokens.start - self.start);
        &digit.blocks[at..][..self.tokens.len()]
    }
}

/// Cuts each group into runs.
fn runs(groups: &[usize]) -> Vec<usize> {
    let mut bounds = vec![0];
    for group in groups.windows(2) {
        let cuts = (group[0]..group[1]).step_by(RUN).skip(1);
        bounds.extend(cuts.chain((group[1] > group[0]).then_some(group[1])));
    }
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Token t's value i is some function of both.
    fn batch(n: usize, k: usize, groups: &[usize]) -> Activations {
        let x: Vec<f32> = (0..n * k).map(|i| ((i * 31) % 257) as f32 - 90.0).collect();
        let mut a = Activations::default();
        a.set_groups(&x, groups, k, Precision::Int16);
        a
    }

    #[test]
    fn groups_are_cut_into_runs() {
        assert_eq!(runs(&[0, 0, 3, 3, 70]), [0, 3, 35, 67, 70]);
        assert_eq!(runs(&[0, 32, 64]), [0, 32, 64]);
        assert_eq!(runs(&[0]), [0]);
    }

    #[test]
    fn blocks_are_those_of_their_token() {
        let (n, k) = (70, 96);
        for groups in [&[0, 70][..], &[0, 3, 3, 50, 70]] {
            let a = batch(n, k, groups);
            let values = a.f.as_chunks::<BLOCK>().0;
            for t in 0..n {
                for b in 0..k / BLOCK {
                    let x = &values[t * (k / BLOCK) + b];
                    let first = ActBlock::first(x).unwrap();
                    let [digit, rest] = &a.digits;
                    assert_eq!(a.block(digit, t, b), &first);
                    assert_eq!(a.block(rest, t, b), &ActBlock::second(x, &first));
                }
            }
        }
    }

    #[test]
    fn runs_cover_the_tokens_asked_for() {
        let a = batch(70, 32, &[0, 3, 3, 50, 70]);
        let parts = |tokens| a.runs(tokens).map(|run| run.tokens).collect::<Vec<_>>();
        assert_eq!(parts(0..70), [0..3, 3..35, 35..50, 50..70]);
        assert_eq!(parts(4..36), [4..35, 35..36]);
        assert_eq!(parts(69..70), vec![69..70; 1]);
        let run = a.runs(4..36).next().unwrap();
        let got = run.blocks(&a.digits[0], 0);
        let expected: Vec<_> = (4..35).map(|t| *a.block(&a.digits[0], t, 0)).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn gathering_is_setting_in_another_order() {
        let (n, k) = (70, 64);
        let a = batch(n, k, &[0, n]);
        let tokens: Vec<usize> = (0..100).map(|i| i * 37 % n).collect();
        let groups = [0, 40, 40, 41, 100];
        let x: Vec<f32> = tokens
            .iter()
            .flat_map(|&t| a.f[t * k..][..k].to_vec())
            .collect();
        let mut expected = Activations::default();
        for precision in [Precision::Int8, Precision::Int16] {
            expected.set_groups(&x, &groups, k, precision);
            let got = a.gather(&tokens, &groups, precision, false);
            assert_eq!((got.n, &got.bounds), (100, &expected.bounds));
            for (got, expected) in got.digits.iter().zip(&expected.digits) {
                assert_eq!(got.blocks, expected.blocks);
                assert!(got.least <= expected.least);
            }
        }
        let floats = a.gather(&tokens, &groups, Precision::Reference, true);
        assert_eq!((floats.f, floats.digits[0].blocks.len()), (x, 0));
    }

    #[test]
    fn bad_numbers_are_told() {
        let mut x = vec![1f32; 128];
        let mut a = Activations::default();
        a.set(&x, 2, 64, Precision::Int8);
        assert!(!a.overflow && a.digits[1].blocks.is_empty());
        x[64] = f32::NAN;
        a.set(&x, 1, 128, Precision::Int8);
        assert!(a.overflow);
        assert_eq!(a.digits[0].blocks[2], ActBlock::default());
        assert_eq!(
            a.digits[0].blocks[1].d,
            2f32.powi(-7) * (1.0 + 2f32.powi(-6))
        );
        a.set(&x, 1, 128, Precision::Reference);
        assert!(a.digits[0].blocks.is_empty() && !a.overflow);
        a.set(&x[..20], 1, 20, Precision::Int8);
        assert!(a.digits[0].blocks.is_empty() && a.f.len() == 20);
    }
}
