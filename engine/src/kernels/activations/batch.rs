//! A batch of activation vectors, laid out for the kernels' walk.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::block::BLOCK;
use super::{ActBlock, Precision};

/// Most tokens of a run.
///
/// A kernel decodes a block of weights once and takes it to each token of a run, so the blocks of
/// a run's tokens lie next to each other, k by k: at 2880 wide a run is 173 kB a digit.
pub const RUN: usize = 48;

/// `n` activation vectors of width `k`, in f32 and (unless under `Precision::Reference`, and when
/// `k` is a multiple of 32) quantised.
#[derive(Clone, Debug, Default)]
pub struct Activations {
    /// Tokens.
    pub n: usize,
    /// Width.
    pub k: usize,
    /// `[n, k]` values; empty where they were not asked for.
    pub f: Vec<f32>,
    /// Digits of a block, 0 to 2.
    digits: usize,
    /// Run by run; within a run `[digits, k / 32, tokens of the run]`.
    blocks: Vec<ActBlock>,
    /// No digit's scale but 0 is less.
    pub(in crate::kernels) least_scale: f32,
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
        self.set_by(
            x,
            &[0, n],
            k,
            precision,
            true,
            |blocks, width, bounds, job| {
                for run in bounds.windows(2) {
                    job(run[0]..run[1], &mut blocks[run[0] * width..run[1] * width]);
                }
            },
        );
    }

    /// As [`Activations::set`], for tokens that are used in groups: group g holds the tokens
    /// `groups[g]..groups[g + 1]`. The f32 values are kept if `floats`.
    ///
    /// `spread` is given a buffer of rows, the width of a row, and bounds that cut the rows into
    /// parts; it calls the job it is given once for each part, with the part's rows and their
    /// piece of the buffer, in any order and on any threads.
    ///
    /// # Panics
    /// When `x` does not hold the groups' tokens.
    pub fn set_by(
        &mut self,
        x: &[f32],
        groups: &[usize],
        k: usize,
        precision: Precision,
        floats: bool,
        spread: impl FnOnce(
            &mut [ActBlock],
            usize,
            &[usize],
            &(dyn Fn(Range<usize>, &mut [ActBlock]) + Sync),
        ),
    ) {
        let n = groups.last().copied().unwrap_or(0);
        assert_eq!(x.len(), n * k, "{n} activation vectors of width {k}");
        self.n = n;
        self.k = k;
        self.f.clear();
        if floats {
            self.f.extend_from_slice(x);
        }
        self.bounds = runs(groups);
        self.digits = match precision {
            _ if !k.is_multiple_of(BLOCK) => 0,
            precision => precision.digits(),
        };
        let width = self.digits * k / BLOCK;
        self.blocks.clear();
        self.blocks.resize(n * width, ActBlock::default());
        let least = AtomicU32::new(f32::MAX.to_bits());
        let overflow = AtomicBool::new(false);
        let values = x.as_chunks::<BLOCK>().0;
        if width > 0 {
            spread(&mut self.blocks, width, &self.bounds, &|tokens, out| {
                let values = &values[tokens.start * k / BLOCK..tokens.end * k / BLOCK];
                let facts = quantize(values, tokens.len(), out);
                // The bits of floats above 0 are in order.
                least.fetch_min(facts.least_scale.to_bits(), Ordering::Relaxed);
                overflow.fetch_or(facts.overflow, Ordering::Relaxed);
            });
        }
        self.least_scale = f32::from_bits(least.into_inner());
        self.overflow = overflow.into_inner();
    }

    /// The digits of `tokens` in that order, in groups as in [`Activations::set_by`], as
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
        let digits = precision.digits().min(self.digits);
        let bounds = runs(groups);
        // Where a token's first block lies, and how far the next.
        let mut places = Vec::with_capacity(self.n);
        for run in self.bounds.windows(2) {
            let len = run[1] - run[0];
            let base = run[0] * self.digits * blocks;
            places.extend((0..len).map(|t| (base + t, len)));
        }
        let mut to = Vec::with_capacity(tokens.len() * digits * blocks);
        for run in bounds.windows(2) {
            let places = tokens[run[0]..run[1]].iter().map(|&t| places[t]);
            for b in 0..digits * blocks {
                to.extend(places.clone().map(|(at, step)| self.blocks[at + b * step]));
            }
        }
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
            blocks: to,
            least_scale: self.least_scale,
            bounds,
            overflow: self.overflow,
        }
    }

    /// Digits that a kernel walks through under `precision`.
    ///
    /// # Panics
    /// When so many were not asked for.
    pub(in crate::kernels) fn digits(&self, precision: Precision) -> usize {
        let digits = precision.digits();
        assert!(
            digits <= self.digits && self.blocks.len() == self.n * self.digits * self.k / BLOCK,
            "{digits} digits of activations quantised to {}",
            self.digits
        );
        digits
    }

    /// The runs that hold `tokens`, each as far as it does.
    pub(in crate::kernels) fn runs(&self, tokens: Range<usize>) -> impl Iterator<Item = Run<'_>> {
        let blocks = self.k / BLOCK;
        let width = self.digits * blocks;
        let first = self.bounds.partition_point(|&b| b <= tokens.start);
        self.bounds[first.saturating_sub(1)..]
            .array_windows()
            .take_while(move |[start, _]| *start < tokens.end)
            .map(move |&[start, end]| Run {
                all: &self.blocks[start * width..end * width],
                blocks,
                len: end - start,
                start,
                tokens: tokens.start.max(start)..tokens.end.min(end),
            })
    }

    /// Block `b` of token `t` in a digit.
    pub(in crate::kernels) fn block(&self, digit: usize, t: usize, b: usize) -> &ActBlock {
        let run = self.runs(t..t + 1).next();
        let run = run.unwrap_or_else(|| panic!("token {t} of {}", self.n));
        &run.blocks(digit, b)[0]
    }
}

/// Some tokens of a run.
#[derive(Clone, Debug)]
pub(in crate::kernels) struct Run<'a> {
    /// The whole run's blocks.
    all: &'a [ActBlock],
    /// Blocks of a token's digit.
    blocks: usize,
    /// Tokens of the whole run.
    len: usize,
    /// Its first token.
    start: usize,
    /// Those meant.
    pub(in crate::kernels) tokens: Range<usize>,
}

impl<'a> Run<'a> {
    /// Block `b` of a digit of each of the tokens.
    #[inline]
    pub(in crate::kernels) fn blocks(&self, digit: usize, b: usize) -> &'a [ActBlock] {
        let at = (digit * self.blocks + b) * self.len + (self.tokens.start - self.start);
        &self.all[at..][..self.tokens.len()]
    }
}

/// What quantising found.
struct Facts {
    least_scale: f32,
    overflow: bool,
}

/// Quantises a run: `n` tokens' `values`, to as many digits as `out` has room for.
fn quantize(values: &[[f32; BLOCK]], n: usize, out: &mut [ActBlock]) -> Facts {
    let blocks = values.len() / n;
    let (first, second) = out.split_at_mut(values.len());
    let mut facts = Facts {
        least_scale: f32::MAX,
        overflow: false,
    };
    let mut put = |to: &mut ActBlock, block: ActBlock| {
        if block.d != 0.0 {
            facts.least_scale = facts.least_scale.min(block.d);
        }
        *to = block;
    };
    for (t, token) in values.chunks_exact(blocks).enumerate() {
        for (b, x) in token.iter().enumerate() {
            let at = b * n + t;
            let Some(digit) = ActBlock::first(x) else {
                facts.overflow = true;
                continue;
            };
            put(&mut first[at], digit);
            if let Some(second) = second.get_mut(at) {
                put(second, ActBlock::second(x, &digit));
            }
        }
    }
    facts
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

    /// Groups, one after another, on this thread.
    fn set_groups(a: &mut Activations, x: &[f32], groups: &[usize], k: usize, p: Precision) {
        a.set_by(x, groups, k, p, true, |blocks, width, bounds, job| {
            // In reverse: the order must not matter.
            for run in bounds.windows(2).rev() {
                job(run[0]..run[1], &mut blocks[run[0] * width..run[1] * width]);
            }
        });
    }

    /// Token t's value i is some function of both.
    fn batch(n: usize, k: usize, groups: &[usize]) -> Activations {
        let x: Vec<f32> = (0..n * k).map(|i| ((i * 31) % 257) as f32 - 90.0).collect();
        let mut a = Activations::default();
        set_groups(&mut a, &x, groups, k, Precision::Int16);
        a
    }

    #[test]
    fn groups_are_cut_into_runs() {
        assert_eq!(runs(&[0, 0, 3, 3, 110]), [0, 3, 51, 99, 110]);
        assert_eq!(runs(&[0, 48, 96]), [0, 48, 96]);
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
                    assert_eq!(a.block(0, t, b), &first);
                    assert_eq!(a.block(1, t, b), &ActBlock::second(x, &first));
                }
            }
            let scales = a.blocks.iter().map(|block| block.d).filter(|d| *d > 0.0);
            assert_eq!(a.least_scale, scales.fold(f32::MAX, f32::min));
        }
    }

    #[test]
    fn runs_cover_the_tokens_asked_for() {
        let a = batch(70, 32, &[0, 3, 3, 53, 70]);
        let parts = |tokens| a.runs(tokens).map(|run| run.tokens).collect::<Vec<_>>();
        assert_eq!(parts(0..70), [0..3, 3..51, 51..53, 53..70]);
        assert_eq!(parts(4..52), [4..51, 51..52]);
        assert_eq!(parts(69..70), vec![69..70; 1]);
        let run = a.runs(4..52).next().unwrap();
        let expected: Vec<_> = (4..51).map(|t| *a.block(1, t, 0)).collect();
        assert_eq!(run.blocks(1, 0), expected);
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
            set_groups(&mut expected, &x, &groups, k, precision);
            let got = a.gather(&tokens, &groups, precision, false);
            assert_eq!((got.n, &got.bounds), (100, &expected.bounds));
            assert_eq!(got.blocks, expected.blocks);
            assert!(got.least_scale <= expected.least_scale);
        }
        let floats = a.gather(&tokens, &groups, Precision::Reference, true);
        assert_eq!((floats.f, floats.blocks), (x, vec![]));
    }

    #[test]
    fn bad_numbers_are_told() {
        let mut x = vec![1f32; 128];
        let mut a = Activations::default();
        a.set(&x, 2, 64, Precision::Int8);
        assert!(!a.overflow && a.digits == 1);
        x[64] = f32::NAN;
        a.set(&x, 1, 128, Precision::Int8);
        assert!(a.overflow);
        assert_eq!(a.blocks[2], ActBlock::default());
        assert_eq!(a.blocks[1].d, 2f32.powi(-7) * (1.0 + 2f32.powi(-6)));
        a.set(&x, 1, 128, Precision::Reference);
        assert!(a.blocks.is_empty() && !a.overflow);
        a.set(&x[..20], 1, 20, Precision::Int8);
        assert!(a.blocks.is_empty() && a.f.len() == 20);
    }
}
