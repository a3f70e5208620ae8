//! The merge loop.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// What a pair of neighbours becomes.
#[derive(Clone, Copy, Debug)]
pub struct Merge {
    /// Position in the merge list; the lowest goes first.
    pub rank: u32,
    /// The token it makes.
    pub token: u32,
}

/// Merges by pair of token ids.
pub type Merges = HashMap<(u32, u32), Merge>;

/// A token in a doubly linked list over the piece.
#[derive(Clone, Copy, Debug)]
struct Symbol {
    token: u32,
    prev: usize,
    next: usize,
    alive: bool,
}

const NONE: usize = usize::MAX;

/// Room that is used again from piece to piece.
#[derive(Debug, Default)]
pub struct Scratch {
    symbols: Vec<Symbol>,
    /// (rank, left symbol, left token, right token); the tokens tell whether it is outdated.
    heap: BinaryHeap<Reverse<(u32, usize, u32, u32)>>,
}

impl Scratch {
    /// Merges `symbols` until no merge applies, lowest rank first and leftmost among equals, and
    /// appends what is left to `out`. O(n log n).
    pub fn merge(
        &mut self,
        tokens: impl Iterator<Item = u32>,
        merges: &Merges,
        out: &mut Vec<u32>,
    ) {
        self.symbols.clear();
        self.heap.clear();
        self.symbols
            .extend(tokens.enumerate().map(|(i, token)| Symbol {
                token,
                prev: i.wrapping_sub(1),
                next: i + 1,
                alive: true,
            }));
        let Some(last) = self.symbols.last_mut() else {
            return;
        };
        last.next = NONE;
        for left in 0..self.symbols.len() - 1 {
            self.offer(left, merges);
        }
        while let Some(Reverse((_, left, left_token, right_token))) = self.heap.pop() {
            let symbol = self.symbols[left];
            if !symbol.alive || symbol.token != left_token || symbol.next == NONE {
                continue;
            }
            let right = self.symbols[symbol.next];
            if right.token != right_token {
                continue;
            }
            let Some(merge) = merges.get(&(left_token, right_token)) else {
                continue;
            };
            self.symbols[symbol.next].alive = false;
            self.symbols[left].token = merge.token;
            self.symbols[left].next = right.next;
            if right.next != NONE {
                self.symbols[right.next].prev = left;
                self.offer(left, merges);
            }
            if symbol.prev != NONE {
                self.offer(symbol.prev, merges);
            }
        }
        out.extend(
            self.symbols
                .iter()
                .filter(|symbol| symbol.alive)
                .map(|symbol| symbol.token),
        );
    }

    /// Queues the pair that starts at `left`, if it can be merged.
    fn offer(&mut self, left: usize, merges: &Merges) {
        let Symbol { token, next, .. } = self.symbols[left];
        let right = self.symbols[next].token;
        if let Some(merge) = merges.get(&(token, right)) {
            self.heap.push(Reverse((merge.rank, left, token, right)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(tokens: &[u32], rules: &[(u32, u32, u32)]) -> Vec<u32> {
        let merges = (0..)
            .zip(rules)
            .map(|(rank, &(left, right, token))| ((left, right), Merge { rank, token }))
            .collect();
        let mut out = Vec::new();
        Scratch::default().merge(tokens.iter().copied(), &merges, &mut out);
        out
    }

    #[test]
    fn the_lowest_rank_goes_first_and_the_leftmost_among_equals() {
        assert_eq!(merged(&[0, 1, 2], &[(1, 2, 3), (0, 1, 4)]), [0, 3]);
        assert_eq!(merged(&[0, 0, 0], &[(0, 0, 1)]), [1, 0]);
        assert_eq!(merged(&[0, 0, 0, 0, 0], &[(0, 0, 1), (1, 1, 2)]), [2, 0]);
        assert!(merged(&[], &[(0, 0, 1)]).is_empty());
    }

    #[test]
    fn a_long_piece_is_merged_in_reasonable_steps() {
        let tokens = vec![0; 200_000];
        assert_eq!(merged(&tokens, &[(0, 0, 1), (1, 1, 2)]).len(), 50_000);
    }
}
