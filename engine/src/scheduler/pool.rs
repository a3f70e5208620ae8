//! Sequences that stay in memory after their requests, for requests that begin the same way.

use crate::kv::KvCache;

/// Sequences kept.
const SEQUENCES: usize = 4;

/// When re-using a prefix would throw away more positions than this, the prefix is copied.
const COPY_ABOVE: usize = 64;

/// Tokens and their keys and values; `tokens.len() == cache.len()` between requests.
pub(super) struct Sequence {
    pub tokens: Vec<u32>,
    pub cache: KvCache,
}

/// Kept sequences, least recently used first.
pub(super) struct Pool {
    sequences: Vec<Sequence>,
    /// Positions that all kept sequences may hold together.
    most_positions: usize,
}

impl Pool {
    pub fn new(ctx: usize) -> Self {
        Self {
            sequences: Vec::new(),
            most_positions: ctx.saturating_mul(2),
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.sequences.clear();
    }

    /// A sequence that holds as much of `prompt` as any kept one does, but never all of it: the
    /// last token is computed, for its logits. `fresh` makes an empty cache.
    pub fn take(
        &mut self,
        prompt: &[u32],
        reuse: bool,
        fresh: impl FnOnce() -> KvCache,
    ) -> Sequence {
        let common = |s: &Sequence| {
            let same = s
                .tokens
                .iter()
                .zip(prompt)
                .take_while(|(a, b)| a == b)
                .count();
            same.min(prompt.len().saturating_sub(1))
        };
        let best = self
            .sequences
            .iter()
            .enumerate()
            .map(|(i, s)| (common(s), i))
            .max()
            .filter(|&(n, _)| reuse && n > 0);
        let Some((n, i)) = best else {
            return Sequence {
                tokens: Vec::new(),
                cache: fresh(),
            };
        };
        let kept = &self.sequences[i];
        if kept.tokens.len() - n > COPY_ABOVE {
            return Sequence {
                tokens: prompt[..n].to_vec(),
                cache: kept.cache.prefix(n),
            };
        }
        let mut taken = self.sequences.remove(i);
        taken.tokens.truncate(n);
        taken.cache.truncate(n);
        taken
    }

    /// Keeps a sequence, at the cost of the least recently used ones.
    pub fn put(&mut self, sequence: Sequence) {
        debug_assert_eq!(sequence.tokens.len(), sequence.cache.len());
        self.sequences.push(sequence);
        let total = |s: &[Sequence]| s.iter().map(|s| s.tokens.len()).sum::<usize>();
        while self.sequences.len() > SEQUENCES
            || (self.sequences.len() > 1 && total(&self.sequences) > self.most_positions)
        {
            self.sequences.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::KvShape;

    fn fresh() -> KvCache {
        KvCache::new(KvShape {
            layers: 1,
            kv_heads: 1,
            head_dim: 1,
            ctx: 1000,
        })
    }

    fn sequence(tokens: Vec<u32>) -> Sequence {
        let mut cache = fresh();
        let keys: Vec<f32> = tokens.iter().map(|&t| t as f32).collect();
        cache.write(0, &keys, &keys);
        cache.advance(tokens.len());
        Sequence { tokens, cache }
    }

    fn held(s: &Sequence) -> usize {
        for (i, &token) in s.tokens.iter().enumerate() {
            assert_eq!(s.cache.layer(0).keys(0, i, i + 1), [token as f32]);
        }
        assert_eq!(s.tokens.len(), s.cache.len());
        s.tokens.len()
    }

    #[test]
    fn the_longest_common_prefix_wins_but_never_the_whole_prompt() {
        let mut pool = Pool::new(1000);
        pool.put(sequence(vec![1, 2, 3]));
        pool.put(sequence(vec![1, 2, 3, 4, 5]));
        pool.put(sequence(vec![9]));
        assert_eq!(held(&pool.take(&[1, 2, 3, 4, 5], false, fresh)), 0);
        let taken = pool.take(&[1, 2, 3, 4, 5], true, fresh);
        assert_eq!(held(&taken), 4);
        assert_eq!(held(&pool.take(&[7, 7], true, fresh)), 0);
        assert_eq!(held(&pool.take(&[1, 2, 8], true, fresh)), 2);
        assert_eq!(held(&pool.take(&[9], true, fresh)), 0);
    }

    #[test]
    fn a_long_tail_is_not_thrown_away() {
        let mut pool = Pool::new(1000);
        pool.put(sequence((0..200).collect()));
        assert_eq!(held(&pool.take(&[0, 1, 2, 9], true, fresh)), 3);
        assert_eq!(
            held(&pool.take(&(0..201).collect::<Vec<_>>(), true, fresh)),
            200
        );
    }

    #[test]
    fn the_least_recently_used_go_first() {
        let mut pool = Pool::new(1000);
        for first in 1..=5 {
            pool.put(sequence(vec![first, 0]));
        }
        assert_eq!(held(&pool.take(&[1, 0, 0], true, fresh)), 0);
        assert_eq!(held(&pool.take(&[2, 0, 0], true, fresh)), 2);
        let mut small = Pool::new(10);
        small.put(sequence(vec![1; 15]));
        small.put(sequence(vec![2; 15]));
        assert_eq!(small.sequences.len(), 1);
    }
}
