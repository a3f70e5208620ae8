//! Random numbers by counter: the n-th draw depends on the seed and n alone.

use std::hash::{BuildHasher, RandomState};

/// A number in [0, 1), of 53 bits, for draw `n` under `seed` (two rounds of SplitMix64's
/// finaliser, by Steele, Lea and Flood, 2014).
pub fn draw(seed: u64, n: u64) -> f64 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = mix(mix(seed.wrapping_add(GOLDEN)) ^ n.wrapping_mul(GOLDEN).wrapping_add(GOLDEN));
    (mixed >> 11) as f64 / (1u64 << 53) as f64
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A seed that nobody chose, from the system's randomness; 32 bits, so that every client can
/// send it back.
pub fn fresh_seed() -> u64 {
    RandomState::new().hash_one(std::process::id()) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_even_and_independent_of_order() {
        let n = 20_000;
        let draws: Vec<f64> = (0..n).map(|i| draw(7, i)).collect();
        assert!(draws.iter().all(|d| (0.0..1.0).contains(d)));
        let mean = draws.iter().sum::<f64>() / n as f64;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
        let tenth = draws.iter().filter(|&&d| d < 0.1).count() as f64 / n as f64;
        assert!((tenth - 0.1).abs() < 0.01, "{tenth}");
        assert_eq!(draw(7, 123), draws[123]);
        assert_ne!(draw(8, 123), draws[123]);
    }
}
