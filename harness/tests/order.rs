//! The order of sessions: mirrored, seeded, known before anything starts.

use palindrome_harness::study::{Role, coins, order};
use proptest::prelude::*;

fn names(n: usize) -> Vec<String> {
    ["A", "B", "C", "D", "E"][..n]
        .iter()
        .map(|s| (*s).to_owned())
        .collect()
}

fn letters(arms: &[String], coins: &[bool], burn_in: bool) -> String {
    order(arms, coins, burn_in)
        .iter()
        .map(|s| s.arm.as_str())
        .collect()
}

#[test]
fn quartets_read_the_same_from_both_ends() {
    assert_eq!(letters(&names(2), &[true, false], true), "AABBABAAB");
    assert_eq!(letters(&names(3), &[true], false), "ABCCBA");
    assert_eq!(letters(&names(3), &[false], false), "CBAABC");
}

#[test]
fn coins_are_recorded_by_seed() {
    // Tossed again by hand from the published SplitMix64.
    assert_eq!(coins(7, 8), coins(7, 8));
    assert_eq!(coins(7, 8)[..3], coins(7, 3)[..]);
    assert_ne!(coins(1, 64), coins(2, 64));
    let heads = coins(3, 10_000).iter().filter(|c| **c).count();
    assert!((4_800..5_200).contains(&heads), "{heads} heads of 10000");
}

proptest! {
    #[test]
    fn every_plan_is_mirrored_and_balanced(n in 2_usize..=5, seed: u64, quartets in 1_u32..12, burn_in: bool) {
        let arms = names(n);
        let sessions = order(&arms, &coins(seed, quartets), burn_in);
        let scored: Vec<_> = sessions.iter().filter(|s| s.role == Role::Scored).collect();
        prop_assert_eq!(sessions.len() - scored.len(), usize::from(burn_in));
        prop_assert!(sessions.iter().enumerate().all(|(i, s)| s.index as usize == i));
        for block in scored.chunks(2 * n) {
            let there: Vec<_> = block.iter().map(|s| &s.arm).collect();
            let back: Vec<_> = block.iter().rev().map(|s| &s.arm).collect();
            prop_assert_eq!(&there, &back);
            prop_assert!(block.iter().all(|s| s.quartet == block[0].quartet));
        }
        for pair in scored.chunks(n) {
            prop_assert!(pair.iter().all(|s| s.pair == pair[0].pair));
            let mut in_pair: Vec<_> = pair.iter().map(|s| s.arm.clone()).collect();
            in_pair.sort();
            prop_assert_eq!(&in_pair, &arms);
        }
        for arm in &arms {
            // Linear drift cancels: positions of every arm have the same sum.
            let sum: u32 = scored.iter().filter(|s| s.arm == *arm).map(|s| s.index).sum();
            let first: u32 = scored.iter().filter(|s| s.arm == arms[0]).map(|s| s.index).sum();
            prop_assert_eq!(sum, first);
        }
    }
}
