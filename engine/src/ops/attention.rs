//! Scaled dot-product attention over the cache, with grouped heads, a sliding window and sinks.
//!
//! A token and a head see the same arithmetic whatever block the token came in: scores one key at
//! a time, the denominator with key j in lane j mod 16, values in blocks of keys aligned to
//! absolute positions.

use super::elementary::exp;
use super::reduce::{dot, sum};
use crate::kernels::{LANES, Lanes};
use crate::kv::{KV_BLOCK, LayerView};
use crate::team::Team;

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

/// Attention of the queries `q`, `[n, heads, head_dim]`, at `places`, each within its own
/// sequence: `caches`, one a segment, hold the keys and values of all positions up to its own.
/// `sinks`, one logit a head, join the maximum and the denominator and have no value. `out`
/// becomes `[n, heads, head_dim]`.
pub fn attention(
    team: &Team,
    shape: &AttentionShape,
    q: &[f32],
    places: &[Place],
    caches: &[LayerView<'_>],
    sinks: Option<&[f32]>,
    out: &mut Vec<f32>,
) {
    let group = shape.heads / shape.kv_heads;
    let chunk = group * shape.head_dim;
    out.clear();
    out.resize(q.len(), 0.0);
    team.for_chunks(out, chunk, |piece, out| {
        let (place, kv_head) = (places[piece / shape.kv_heads], piece % shape.kv_heads);
        let q = &q[piece * chunk..][..chunk];
        let sinks = sinks.map(|s| &s[kv_head * group..][..group]);
        let cache = &caches[place.segment];
        attend(shape, q, place.position, kv_head, cache, sinks, out);
    });
}

/// One token and the query heads of one key head.
fn attend(
    shape: &AttentionShape,
    q: &[f32],
    position: usize,
    kv_head: usize,
    cache: &LayerView<'_>,
    sinks: Option<&[f32]>,
    out: &mut [f32],
) {
    let head_dim = shape.head_dim;
    let group = q.len() / head_dim;
    let end = position + 1;
    let first = shape.window.map_or(0, |w| end.saturating_sub(w));
    // Scores lie at their position minus `base`; those before `first` stay 0.
    let base = first - first % KV_BLOCK;
    let stride = end - base;
    let mut scores = vec![0.0f32; group * stride];
    for (from, to) in blocks(first, end) {
        let keys = cache.keys(kv_head, from, to);
        for (j, key) in (from..to).zip(keys.chunks_exact(head_dim)) {
            for (h, q) in q.chunks_exact(head_dim).enumerate() {
                scores[h * stride + j - base] = dot(q, key) * shape.scale;
            }
        }
    }
    let mut totals = Vec::with_capacity(group);
    for (h, row) in scores.chunks_exact_mut(stride).enumerate() {
        totals.push(soften(row, first - base, sinks.map(|s| s[h])));
    }
    for (from, to) in blocks(first, end) {
        let values = cache.values(kv_head, from, to);
        for (h, out) in out.chunks_exact_mut(head_dim).enumerate() {
            let weights = &scores[h * stride + from - base..][..to - from];
            add_values(weights, values, out);
        }
    }
    for (out, total) in out.chunks_exact_mut(head_dim).zip(totals) {
        for v in out {
            *v /= total;
        }
    }
}

/// The aligned blocks that `first..end` touches, cut to it.
fn blocks(first: usize, end: usize) -> impl Iterator<Item = (usize, usize)> {
    let start = first - first % KV_BLOCK;
    (start..end)
        .step_by(KV_BLOCK)
        .map(move |b| (b.max(first), (b + KV_BLOCK).min(end)))
}

/// Turns scores (from index `first` on) into e^(score - max) and returns their sum with the
/// sink's share. NaN and infinite scores give a NaN sum, which the caller's output shows.
fn soften(scores: &mut [f32], first: usize, sink: Option<f32>) -> f32 {
    let seen = &mut scores[first..];
    let mut max = sink.unwrap_or(f32::NEG_INFINITY);
    for &s in &*seen {
        max = if s > max { s } else { max };
    }
    for s in seen {
        *s = exp(*s - max);
    }
    // Positions before `first` hold 0 and only keep key j in lane j mod 16.
    sum(scores) + sink.map_or(0.0, |s| exp(s - max))
}

/// Adds the weighted sum of a block's values to `out`: keys in rising order for each element.
fn add_values(weights: &[f32], values: &[f32], out: &mut [f32]) {
    let head_dim = out.len();
    let (chunks, rest) = out.as_chunks_mut::<LANES>();
    let at_rest = chunks.len() * LANES;
    for (c, out) in chunks.iter_mut().enumerate() {
        let mut lanes = Lanes::zero();
        for (w, value) in weights.iter().zip(values.chunks_exact(head_dim)) {
            lanes.add_scaled(*w, &value.as_chunks().0[c]);
        }
        for (out, sum) in out.iter_mut().zip(lanes.array()) {
            *out += sum;
        }
    }
    for (d, out) in rest.iter_mut().enumerate() {
        let mut total = 0.0;
        for (w, value) in weights.iter().zip(values.chunks_exact(head_dim)) {
            total += w * value[at_rest + d];
        }
        *out += total;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::{KvCache, KvShape};

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
            for block in [n, 7] {
                let mut cache = KvCache::new(kv);
                let mut all = Vec::new();
                for start in (0..n).step_by(block) {
                    let end = (start + block).min(n);
                    let part = start * 2 * dim..end * 2 * dim;
                    cache.write(0, &k[part.clone()], &v[part]);
                    let q = &q[start * 4 * dim..end * 4 * dim];
                    let mut out = Vec::new();
                    let place = |position| Place {
                        segment: 0,
                        position,
                    };
                    let places: Vec<Place> = (start..end).map(place).collect();
                    let views = [cache.layer(0)];
                    attention(&team, &shape, q, &places, &views, sinks, &mut out);
                    cache.advance(end - start);
                    all.extend(out);
                }
                if whole.is_empty() {
                    whole = all;
                } else {
                    assert_eq!(whole, all, "the block size changed the bits");
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
