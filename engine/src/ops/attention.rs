//! Scaled dot-product attention over the cache, with grouped heads, a sliding window and sinks.
//!
//! Keys come in blocks of 64, aligned to absolute positions. Each row (a token and a query head)
//! goes through the blocks that it sees in order: scores, their share in the maximum and the
//! denominator, and the weighted values, added to what the blocks before gave. So a row sees the
//! same arithmetic whatever rows it is computed with. Blocks of rows that share a key head meet
//! each block of keys together, while it is in the cache.

use std::ops::Range;

use super::Tools;
use crate::kernels::{Isa, KEY_BLOCK, LANES, Product, Tally, products, soften};
use crate::kv::LayerView;
use crate::team::Block;

/// The shape of an attention step.
#[derive(Clone, Copy, Debug)]
pub struct AttentionShape {
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; each serves `heads / kv_heads` query heads in a row.
    pub kv_heads: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// Key j is visible from position i iff 0 <= i - j < window; `None`: iff j <= i.
    pub window: Option<usize>,
    /// Factor on the scores.
    pub scale: f32,
}

/// Where a row of a pass stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which sequence of the pass it belongs to.
    pub segment: usize,
    /// Its position there.
    pub position: usize,
}

/// Rows, of tokens and heads, that go through the keys together, where there are as many.
const ROWS: usize = 64;

/// With so few rows the keys and values come from memory more slowly than they are multiplied,
/// and are fetched ahead.
const FEW_ROWS: usize = 16;

/// Attention of the queries `q`, `[n, heads, head_dim]`, at `places`, each within its own
/// sequence, whose tokens lie together and in order: `caches`, one a segment, hold the keys and
/// values of all positions that are seen, their own included. `sinks`, one logit a head, join the
/// maximum and the denominator and have no value. `out` becomes `[n, heads, head_dim]`.
pub fn attention(
    tools: Tools<'_>,
    shape: &AttentionShape,
    q: &[f32],
    places: &[Place],
    caches: &[LayerView<'_>],
    sinks: Option<&[f32]>,
    out: &mut Vec<f32>,
) {
    let width = shape.heads * shape.head_dim;
    let group = shape.heads / shape.kv_heads;
    out.clear();
    out.resize(q.len(), 0.0);
    let bounds = token_blocks(places, ROWS.div_ceil(group));
    // Heads of a group part only where threads would have nothing to do otherwise.
    let pieces = (bounds.len() - 1) * shape.kv_heads;
    let parts = tools.team.threads().div_ceil(pieces.max(1)).min(group);
    let heads = (1..=group / parts).rfind(|&n| group.is_multiple_of(n));
    let heads = heads.unwrap_or(group);
    tools.team.for_blocks(
        out,
        width,
        &bounds,
        heads * shape.head_dim,
        |_, mut block| {
            let tokens = &places[block.rows()];
            let first = block.cols().start / shape.head_dim;
            let rows = Rows {
                shape,
                heads: first..first + heads,
                kv_head: first / group,
                places: tokens,
                cache: &caches[tokens[0].segment],
            };
            let q = &q[block.rows().start * width..];
            rows.attend(tools.isa, q, sinks, &mut block);
        },
    );
}

/// Bounds of blocks of at most `most` tokens, each of one segment.
fn token_blocks(places: &[Place], most: usize) -> Vec<usize> {
    let mut bounds = vec![0];
    let mut start = 0;
    for (i, place) in places.iter().enumerate().skip(1) {
        if i - start == most || place.segment != places[start].segment {
            bounds.push(i);
            start = i;
        }
    }
    bounds.push(places.len());
    bounds
}

/// Some tokens of a sequence, and the heads of one key head: rows `t * heads + h`.
struct Rows<'a> {
    shape: &'a AttentionShape,
    heads: Range<usize>,
    kv_head: usize,
    places: &'a [Place],
    cache: &'a LayerView<'a>,
}

impl Rows<'_> {
    /// The positions that a token sees.
    fn sees(&self, token: usize) -> Range<usize> {
        let end = self.places[token].position + 1;
        self.shape.window.map_or(0, |w| end.saturating_sub(w))..end
    }

    /// All of these rows. `q` begins with the first token's queries; `out` is their part of the
    /// outputs.
    fn attend(&self, isa: Isa, q: &[f32], sinks: Option<&[f32]>, out: &mut Block<'_, f32>) {
        let dim = self.shape.head_dim;
        let padded = dim.next_multiple_of(LANES);
        let (tokens, heads) = (self.places.len(), self.heads.len());
        let rows = tokens * heads;
        let width = self.shape.heads * dim;
        let mut scaled = Vec::with_capacity(rows * dim);
        for t in 0..tokens {
            let q = &q[t * width + self.heads.start * dim..][..heads * dim];
            scaled.extend(q.iter().map(|q| q * self.shape.scale));
        }
        let tally = |row: usize| Tally::new(sinks.map(|s| s[self.heads.start + row % heads]));
        let mut tallies: Vec<Tally> = (0..rows).map(tally).collect();
        let mut scores = vec![[0.0f32; KEY_BLOCK]; rows];
        let mut factors = vec![1.0f32; rows];
        let mut sums = vec![0.0f32; rows * padded];

        let blocks = self.sees(0).start / KEY_BLOCK..self.sees(tokens - 1).end.div_ceil(KEY_BLOCK);
        let (few, last) = (rows <= FEW_ROWS, blocks.end);
        for block in blocks {
            for (row, tally) in tallies.iter_mut().enumerate() {
                tally.seen = within(self.sees(row / heads), block);
            }
            let seen = || {
                tallies
                    .iter()
                    .map(|t| &t.seen)
                    .filter(|seen| !seen.is_empty())
            };
            let Some(from) = seen().map(|seen| seen.start).min() else {
                continue;
            };
            let to = seen().map(|seen| seen.end).max().unwrap_or(from);
            let keys = Product {
                rows: &scaled,
                row_len: dim,
                panels: self.cache.keys(self.kv_head, block),
                depth: dim,
                steps: 0..dim,
                taken: from / LANES..to.div_ceil(LANES),
                next: few.then(|| self.cache.values(self.kv_head, block)),
            };
            products(isa, &keys, None, scores.as_flattened_mut(), KEY_BLOCK);
            soften(isa, &mut scores, &mut tallies);
            for (factor, tally) in factors.iter_mut().zip(&tallies) {
                *factor = tally.factor;
            }
            // Rows that see the same keys go together.
            let mut first = 0;
            for run in tallies.chunk_by(|a, b| a.seen == b.seen) {
                let these = first..first + run.len();
                first = these.end;
                let values = Product {
                    rows: scores[these.clone()].as_flattened(),
                    row_len: KEY_BLOCK,
                    panels: self.cache.values(self.kv_head, block),
                    depth: KEY_BLOCK,
                    steps: run[0].seen.clone(),
                    taken: 0..padded / LANES,
                    next: (few && block + 1 < last)
                        .then(|| self.cache.keys(self.kv_head, block + 1)),
                };
                if !values.steps.is_empty() {
                    let sums = &mut sums[these.start * padded..these.end * padded];
                    products(isa, &values, Some(&factors[these]), sums, padded);
                }
            }
        }
        for t in 0..tokens {
            let of_token = t * heads..(t + 1) * heads;
            let sums = sums[t * heads * padded..].chunks_exact(padded);
            for ((out, sums), tally) in out
                .row(t)
                .chunks_exact_mut(dim)
                .zip(sums)
                .zip(&tallies[of_token])
            {
                for (out, sum) in out.iter_mut().zip(sums) {
                    *out = sum / tally.total;
                }
            }
        }
    }
}

/// The part of `positions` that lies in a block, counted from the block's first.
fn within(positions: Range<usize>, block: usize) -> Range<usize> {
    let base = block * KEY_BLOCK;
    let cut = |at: usize| at.clamp(base, base + KEY_BLOCK) - base;
    cut(positions.start)..cut(positions.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Precision;
    use crate::kv::{KvCache, KvShape, KvType};
    use crate::ops::Precisions;
    use crate::team::Team;

    /// Something like noise, without a generator.
    fn wave(n: usize, step: f32) -> Vec<f32> {
        (0..n).map(|i| (i as f32 * step).sin() * 2.0).collect()
    }

    /// Attention in f64, straight from the formula.
    fn by_formula(
        shape: &AttentionShape,
        q: &[f32],
        (k, v): (&[f32], &[f32]),
        position: usize,
        head: usize,
        sink: Option<f32>,
    ) -> Vec<f64> {
        let (dim, kv_heads) = (shape.head_dim, shape.kv_heads);
        let kv_head = head / (shape.heads / kv_heads);
        let row = |x: &[f32], j: usize| -> Vec<f64> {
            x[(j * kv_heads + kv_head) * dim..][..dim]
                .iter()
                .map(|&x| f64::from(x))
                .collect()
        };
        let q = &q[(position * shape.heads + head) * dim..][..dim];
        let visible = (0..=position).filter(|j| shape.window.is_none_or(|w| position - j < w));
        let mut denominator = sink.map_or(0.0, |s| f64::from(s).exp());
        let mut out = vec![0.0; dim];
        for j in visible {
            let score: f64 = q
                .iter()
                .zip(row(k, j))
                .map(|(a, b)| f64::from(*a) * b)
                .sum();
            let weight = (score * f64::from(shape.scale)).exp();
            denominator += weight;
            out.iter_mut()
                .zip(row(v, j))
                .for_each(|(o, v)| *o += weight * v);
        }
        out.iter().map(|o| o / denominator).collect()
    }

    #[test]
    fn windows_groups_and_sinks_follow_the_formula() {
        let n = 150;
        for (window, dim, sinks) in [
            (None, 16, None),
            (Some(70), 20, Some(&[0.5, -1.0, 3.0, 0.0][..])),
            (Some(1), 16, Some(&[0.0; 4][..])),
        ] {
            let shape = AttentionShape {
                heads: 4,
                kv_heads: 2,
                head_dim: dim,
                window,
                scale: 0.25,
            };
            let q = wave(n * 4 * dim, 0.37);
            let (k, v) = (wave(n * 2 * dim, 0.91), wave(n * 2 * dim, 0.53));
            let kv = KvShape {
                layers: 1,
                kv_heads: 2,
                head_dim: dim,
                ctx: n,
            };
            let team = Team::new(2);
            let mut whole = Vec::new();
            for (isa, block) in Isa::available()
                .into_iter()
                .flat_map(|isa| [(isa, n), (isa, 7)])
            {
                let tools = Tools {
                    team: &team,
                    isa,
                    precisions: Precisions::all(Precision::Reference),
                };
                let mut cache = KvCache::windowed(kv, KvType::F32, &[window]);
                let mut all = Vec::new();
                for start in (0..n).step_by(block) {
                    let end = (start + block).min(n);
                    let part = start * 2 * dim..end * 2 * dim;
                    cache.write(0, &k[part.clone()], &v[part]).unwrap();
                    let q = &q[start * 4 * dim..end * 4 * dim];
                    let mut out = Vec::new();
                    let place = |position| Place {
                        segment: 0,
                        position,
                    };
                    let places: Vec<Place> = (start..end).map(place).collect();
                    let views = [cache.layer(0)];
                    attention(tools, &shape, q, &places, &views, sinks, &mut out);
                    cache.advance(end - start);
                    all.extend(out);
                }
                if whole.is_empty() {
                    whole = all;
                } else {
                    let same = whole == all;
                    assert!(same, "{}, blocks of {block} changed the bits", isa.name());
                }
            }
            for position in 0..n {
                for head in 0..4 {
                    let sink = sinks.map(|s| s[head]);
                    let exact = by_formula(&shape, &q, (&k, &v), position, head, sink);
                    let got = &whole[(position * 4 + head) * dim..][..dim];
                    for (g, e) in got.iter().zip(exact) {
                        assert!(
                            (f64::from(*g) - e).abs() < 1e-5,
                            "{position} {head}: {g} {e}"
                        );
                    }
                }
            }
        }
    }
}
