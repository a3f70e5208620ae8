//! The prompts that ways are compared on.

use crate::sampling::draw;

/// `n` tokens drawn evenly from a vocabulary of `vocab`: the same for the same seed, and a longer
/// prompt begins as a shorter one does. Even draws meet every expert and every part of the
/// vocabulary; what they say does not matter to the bits.
pub fn prompt(seed: u64, n: usize, vocab: usize) -> Vec<u32> {
    (0..n as u64)
        .map(|i| (draw(seed, i) * vocab as f64) as u32)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_depends_on_the_seed_alone_and_stays_in_the_vocabulary() {
        let long = prompt(1, 1000, 300);
        assert_eq!(long[..10], prompt(1, 10, 300));
        assert_ne!(long, prompt(2, 1000, 300));
        assert!(long.iter().all(|id| *id < 300));
        assert!(long.iter().any(|id| *id > 250) && long.iter().any(|id| *id < 50));
    }
}
