//! Sequences that stay in memory after their requests, for requests that begin the same way.

use crate::kv::KvCache;

/// When re-using a prefix would throw away more positions than this, the prefix is copied.
const COPY_ABOVE: usize = 64;

/// Tokens and their keys and values; `tokens.len() == cache.len()` between requests.
pub(super) struct Sequence {
    pub tokens: Vec<u32>,
    pub cache: KvCache,
}

impl Sequence {
    /// Cuts back to `n` tokens, or to fewer where the cache cannot go on from there.
    pub fn truncate(&mut self, n: usize) {
        let held = self.cache.truncate(n);
        self.tokens.truncate(held);
    }
}

/// Sequences kept beyond one a slot.
const SPARE: usize = 3;

/// Contexts' worth of positions beyond one a slot.
const SPARE_CONTEXTS: usize = 2;

/// Kept sequences, least recently used first.
///
/// Running and kept sequences together never hold more than `slots + 2` contexts of positions:
/// every running request counts as a whole context, whatever it holds so far, and so does the
/// next one, which may begin as a copy of a kept sequence.
pub(super) struct Pool {
    sequences: Vec<Sequence>,
    ctx: usize,
    slots: usize,
}

impl Pool {
    /// Of a scheduler that runs up to `slots` requests of `ctx` positions.
    pub fn new(ctx: usize, slots: usize) -> Self {
        Self {
            sequences: Vec::new(),
            ctx,
            slots,
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.sequences.clear();
    }

    /// A sequence that holds as much of `prompt` as any kept one does, or any of the `running`
    /// ones (whose part is copied), but never all of it: the last token is computed, for its
    /// logits. Where windowed layers have let go of what the longest common beginning would need,
    /// it is a shorter one. `fresh` makes an empty cache.
    pub fn take<'a>(
        &mut self,
        prompt: &[u32],
        reuse: bool,
        running: impl Iterator<Item = &'a Sequence>,
        fresh: impl FnOnce() -> KvCache,
    ) -> Sequence {
        let common = |s: &Sequence| {
            let same = s
                .tokens
                .iter()
                .zip(prompt)
                .take_while(|(a, b)| a == b)
                .count();
            s.cache.resumable(same.min(prompt.len().saturating_sub(1)))
        };
        let copy = |s: &Sequence, n: usize| Sequence {
            tokens: prompt[..n].to_vec(),
            cache: s.cache.prefix(n),
        };
        let kept = self.sequences.iter().enumerate();
        let kept = kept.map(|(i, s)| (common(s), i)).max();
        let kept = kept.filter(|&(n, _)| reuse && n > 0);
        let kept_n = kept.map_or(0, |(n, _)| n);
        let lent = running
            .map(|s| (common(s), s))
            .filter(|&(n, _)| reuse && n > kept_n)
            .max_by_key(|&(n, _)| n);
        match (lent, kept) {
            (Some((n, donor)), _) => copy(donor, n),
            (None, None) => Sequence {
                tokens: Vec::new(),
                cache: fresh(),
            },
            (None, Some((n, i))) if self.sequences[i].tokens.len() - n > COPY_ABOVE => {
                self.sequences[i..].rotate_left(1);
                copy(&self.sequences[self.sequences.len() - 1], n)
            }
            (None, Some((n, i))) => {
                let mut taken = self.sequences.remove(i);
                taken.truncate(n);
                taken
            }
        }
    }

    /// Keeps a sequence, as the most recently used one.
    pub fn put(&mut self, sequence: Sequence) {
        debug_assert_eq!(sequence.tokens.len(), sequence.cache.len());
        if !sequence.tokens.is_empty() {
            self.sequences.push(sequence);
        }
    }

    /// Whether the bound holds at this moment, beside `running` positions of running requests.
    pub fn is_within(&self, running: usize) -> bool {
        running + positions(&self.sequences) <= (self.slots + SPARE_CONTEXTS) * self.ctx
    }

    /// Gives up the least recently used sequences that there is no room for beside `running`
    /// requests.
    pub fn keep_within(&mut self, running: usize) {
        let running_soon = (running + 1).min(self.slots);
        let most_positions = (self.slots + SPARE_CONTEXTS - running_soon) * self.ctx;
        while self.sequences.len() > self.slots + SPARE
            || positions(&self.sequences) > most_positions
        {
            self.sequences.remove(0);
        }
    }
}

/// Positions that sequences hold together.
pub(super) fn positions<'a>(sequences: impl IntoIterator<Item = &'a Sequence>) -> usize {
    sequences.into_iter().map(|s| s.tokens.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::{KvShape, KvType};

    const NONE: [Sequence; 0] = [];

    fn fresh() -> KvCache {
        let shape = KvShape {
            layers: 1,
            kv_heads: 1,
            head_dim: 1,
            ctx: 1000,
        };
        KvCache::new(shape, KvType::F32)
    }

    fn sequence(tokens: Vec<u32>) -> Sequence {
        let mut cache = fresh();
        let keys: Vec<f32> = tokens.iter().map(|&t| t as f32).collect();
        cache.write(0, &keys, &keys).unwrap();
        cache.advance(tokens.len());
        Sequence { tokens, cache }
    }

    fn held(s: &Sequence) -> usize {
        for (i, &token) in s.tokens.iter().enumerate() {
            assert_eq!(s.cache.layer(0).position(0, i).0, [token as f32]);
        }
        assert_eq!(s.tokens.len(), s.cache.len());
        s.tokens.len()
    }

    #[test]
    fn the_longest_common_prefix_wins_but_never_the_whole_prompt() {
        let mut pool = Pool::new(1000, 1);
        pool.put(sequence(vec![1, 2, 3]));
        pool.put(sequence(vec![1, 2, 3, 4, 5]));
        pool.put(sequence(vec![9]));
        assert_eq!(
            held(&pool.take(&[1, 2, 3, 4, 5], false, NONE.iter(), fresh)),
            0
        );
        let taken = pool.take(&[1, 2, 3, 4, 5], true, NONE.iter(), fresh);
        assert_eq!(held(&taken), 4);
        assert_eq!(held(&pool.take(&[7, 7], true, NONE.iter(), fresh)), 0);
        assert_eq!(held(&pool.take(&[1, 2, 8], true, NONE.iter(), fresh)), 2);
        assert_eq!(held(&pool.take(&[9], true, NONE.iter(), fresh)), 0);
    }

    #[test]
    fn a_long_tail_is_not_thrown_away() {
        let mut pool = Pool::new(1000, 1);
        pool.put(sequence((0..200).collect()));
        assert_eq!(held(&pool.take(&[0, 1, 2, 9], true, NONE.iter(), fresh)), 3);
        assert_eq!(
            held(&pool.take(&(0..201).collect::<Vec<_>>(), true, NONE.iter(), fresh)),
            200
        );
    }

    #[test]
    fn the_least_recently_used_go_first() {
        let mut pool = Pool::new(1000, 1);
        for first in 1..=5 {
            pool.put(sequence(vec![first, 0]));
            pool.keep_within(1);
        }
        assert_eq!(held(&pool.take(&[1, 0, 0], true, NONE.iter(), fresh)), 0);
        assert_eq!(held(&pool.take(&[2, 0, 0], true, NONE.iter(), fresh)), 2);
    }

    #[test]
    fn a_copy_is_a_use() {
        let mut pool = Pool::new(300, 1);
        pool.put(sequence((0..200).collect()));
        pool.put(sequence(vec![900; 300]));
        assert_eq!(held(&pool.take(&[0, 1, 2, 9], true, NONE.iter(), fresh)), 3);
        pool.put(sequence(vec![901; 200]));
        pool.keep_within(1);
        let kept: Vec<u32> = pool.sequences.iter().map(|s| s.tokens[0]).collect();
        assert_eq!(kept, [0, 901]);
    }

    #[test]
    fn running_and_kept_sequences_have_room_together() {
        let mut pool = Pool::new(10, 2);
        for first in 1..=4 {
            pool.put(sequence(vec![first; 10]));
        }
        let kept = |pool: &mut Pool, running| {
            pool.keep_within(running);
            pool.sequences.len()
        };
        assert_eq!(kept(&mut pool, 0), 3);
        assert_eq!(kept(&mut pool, 1), 2);
        assert_eq!(kept(&mut pool, 2), 2);
        assert_eq!(pool.sequences[0].tokens[0], 3);
    }

    #[test]
    fn a_running_sequence_lends_a_copy() {
        let mut pool = Pool::new(1000, 2);
        pool.put(sequence(vec![1, 2, 3]));
        let running = [sequence(vec![1, 2, 3, 4, 5]), sequence(vec![1, 9])];
        let taken = pool.take(&[1, 2, 3, 4, 6], true, running.iter(), fresh);
        assert_eq!((held(&taken), held(&running[0])), (4, 5));
        assert_eq!(pool.sequences.len(), 1);
        let taken = pool.take(&[1, 2, 3, 4, 6], false, running.iter(), fresh);
        assert_eq!(held(&taken), 0);
        // As much lies in the pool: that one is taken.
        let taken = pool.take(&[1, 2, 3, 7], true, running.iter(), fresh);
        assert_eq!((held(&taken), pool.sequences.len()), (3, 0));
    }

    #[test]
    fn a_window_that_is_gone_makes_for_a_shorter_prefix() {
        let shape = KvShape {
            layers: 1,
            kv_heads: 1,
            head_dim: 1,
            ctx: 3000,
        };
        let mut cache = KvCache::windowed(shape, KvType::F32, &[Some(10)]);
        let tokens: Vec<u32> = (0..2000).collect();
        for token in &tokens {
            cache.write(0, &[*token as f32], &[0.0]).unwrap();
            cache.advance(1);
        }
        let long = Sequence { tokens, cache };
        let prompt = |n: u32| (0..n).chain([9000]).collect::<Vec<u32>>();
        let mut pool = Pool::new(3000, 1);
        let lent = pool.take(&prompt(1400), true, [&long].into_iter(), fresh);
        assert_eq!((lent.tokens.len(), lent.cache.len()), (1280, 1280));
        pool.put(long);
        let copied = pool.take(&prompt(1100), true, NONE.iter(), fresh);
        assert_eq!((copied.tokens.len(), copied.cache.len()), (1024, 1024));
        assert_eq!(copied.cache.layer(0).position(0, 1023).0, [1023.0]);
        let none = pool.take(&prompt(150), true, NONE.iter(), fresh);
        assert_eq!((none.tokens.len(), none.cache.len()), (0, 0));
        let taken = pool.take(&prompt(1995), true, NONE.iter(), fresh);
        assert_eq!((taken.tokens.len(), taken.cache.len()), (1995, 1995));
        assert_eq!(pool.sequences.len(), 0);
    }
}
