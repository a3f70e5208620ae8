//! Random numbers by position: a stream is named by seed, tensor and row, so any part of a file
//! can be made on its own and threads change nothing.

/// SplitMix64 (Steele, Lea and Flood, 2014): a counter and a mixing function.
#[derive(Clone, Debug)]
pub(super) struct Stream(u64);

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A number for a name under a seed (FNV-1a, mixed).
pub(super) fn key(seed: u64, name: &str) -> u64 {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |h: u64, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    mix(mix(seed.wrapping_add(STEP)) ^ hash)
}

impl Stream {
    /// The stream of one row of the tensor with this key.
    pub(super) fn of_row(key: u64, row: u64) -> Self {
        Self(mix(key ^ mix(row.wrapping_mul(STEP).wrapping_add(1))))
    }
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }
    /// Uniform in [0, 1), 24 bits.
    pub(super) fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / 16_777_216.0
    }
    /// The sum of four uniforms, scaled to mean 0 and standard deviation 1: close to a normal
    /// without a logarithm, within ±3.5.
    pub(super) fn normal(&mut self) -> f32 {
        let word = self.next();
        let sum: u32 = (0..4).map(|i| (word >> (16 * i)) as u32 & 0xffff).sum();
        // A uniform of 65536 steps has standard deviation 65536 / sqrt(12); four have twice that.
        (sum as f32 - 131_070.0) * (1.732_050_8 / 65_536.0)
    }
    /// +1 or -1.
    pub(super) fn sign(&mut self) -> f32 {
        if self.next() >> 63 == 0 { 1.0 } else { -1.0 }
    }
    /// Uniform below `n`.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_splitmix64() {
        // Reference values for state 1234567 (Vigna's splitmix64.c).
        let mut s = Stream(1234567);
        let got: Vec<u64> = (0..3).map(|_| s.next()).collect();
        assert_eq!(
            got,
            [
                6457827717110365317,
                3203168211198807973,
                9817491932198370423
            ]
        );
    }

    #[test]
    fn moments() {
        let mut s = Stream::of_row(key(1, "x"), 0);
        let x: Vec<f64> = (0..100_000).map(|_| f64::from(s.normal())).collect();
        let mean = x.iter().sum::<f64>() / 1e5;
        let var = x.iter().map(|x| x * x).sum::<f64>() / 1e5;
        assert!(
            mean.abs() < 0.02 && (var - 1.0).abs() < 0.02,
            "mean {mean}, variance {var}"
        );
    }

    #[test]
    fn rows_tensors_and_seeds_differ() {
        let first = |seed, name: &str, row| Stream::of_row(key(seed, name), row).next();
        let all = [
            first(1, "a", 0),
            first(1, "a", 1),
            first(1, "b", 0),
            first(2, "a", 0),
        ];
        for i in 0..4 {
            assert!(!all[..i].contains(&all[i]));
        }
    }
}
