//! Seeded random numbers with the same bits on every machine.

use crate::study::SplitMix64;

/// Uniform and normal numbers from one seed.
#[derive(Clone, Debug)]
pub struct Random {
    bits: SplitMix64,
    spare: Option<f64>,
}

impl Random {
    /// Starts from a seed.
    pub fn new(seed: u64) -> Self {
        Self {
            bits: SplitMix64::new(seed),
            spare: None,
        }
    }

    /// A seed for something of its own, such as a plan's coins.
    pub fn seed(&mut self) -> u64 {
        self.bits.next_u64()
    }

    /// Uniform in (0, 1].
    pub fn uniform(&mut self) -> f64 {
        ((self.bits.next_u64() >> 11) as f64 + 1.0) / (1_u64 << 53) as f64
    }

    /// Whether something of this probability happens.
    pub fn happens(&mut self, probability: f64) -> bool {
        self.uniform() <= probability
    }

    /// Standard normal (Box and Muller, "A note on the generation of random normal deviates", 1958).
    pub fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let radius = (-2.0 * libm::log(self.uniform())).sqrt();
        let angle = std::f64::consts::TAU * self.uniform();
        self.spare = Some(radius * libm::sin(angle));
        radius * libm::cos(angle)
    }

    /// Student's t with 3 degrees of freedom, scaled to a variance of 1.
    pub fn heavy(&mut self) -> f64 {
        let z = self.normal();
        let chi: f64 = (0..3).map(|_| self.normal().powi(2)).sum();
        // The variance of t with 3 degrees of freedom is 3.
        z / (chi / 3.0).sqrt() / 3.0_f64.sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normals_have_mean_0_and_variance_1() {
        let mut random = Random::new(5);
        let n = 20_000;
        let drawn: Vec<f64> = (0..n).map(|_| random.normal()).collect();
        let mean = drawn.iter().sum::<f64>() / f64::from(n);
        let variance = drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(n);
        assert!(
            mean.abs() < 0.03 && (variance - 1.0).abs() < 0.04,
            "{mean} {variance}"
        );
        assert_eq!(drawn[7].to_bits(), {
            let mut again = Random::new(5);
            (0..8).map(|_| again.normal()).last().unwrap().to_bits()
        });
    }
}
