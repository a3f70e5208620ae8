//! A hash that grows with each step's logits.

use sha2::{Digest, Sha256};

use crate::hex::hex;

/// The hash after a step.
pub type Link = [u8; 32];

/// link(i) = sha256(link(i - 1), the logits of step i as little-endian f32), from 32 zero bytes.
/// All links are kept: two chains first part where their steps did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    links: Vec<Link>,
}

impl Chain {
    /// Takes in the next step's logits.
    pub fn push(&mut self, logits: &[f32]) {
        let mut hash = Sha256::new();
        hash.update(self.links.last().unwrap_or(&[0; 32]));
        // Some logits at a time: the vocabulary may be large.
        let mut bytes = [0; 4096];
        for part in logits.chunks(bytes.len() / 4) {
            for (to, logit) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(part) {
                *to = logit.to_le_bytes();
            }
            hash.update(&bytes[..4 * part.len()]);
        }
        self.links.push(hash.finalize().into());
    }

    /// Steps taken in.
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Whether there was no step.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// The first step that differs from the other chain's, or that only one of them has.
    pub fn first_difference(&self, other: &Self) -> Option<usize> {
        let differs = |(a, b)| a != b;
        match self.links.iter().zip(&other.links).position(differs) {
            None if self.len() != other.len() => Some(self.len().min(other.len())),
            found => found,
        }
    }

    /// The last link in lowercase hex; that of an empty chain is zeros.
    pub fn hex(&self) -> String {
        hex(self.links.last().unwrap_or(&[0; 32]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(steps: &[&[f32]]) -> Chain {
        let mut chain = Chain::default();
        for logits in steps {
            chain.push(logits);
        }
        chain
    }

    #[test]
    fn a_known_value() {
        // sha256 of 32 zero bytes, then 1.0 and -0.0 as they lie in memory.
        let mut bytes = vec![0; 32];
        bytes.extend([0, 0, 0x80, 0x3f, 0, 0, 0, 0x80]);
        let expected: Link = Sha256::digest(&bytes).into();
        assert_eq!(chain(&[&[1.0, -0.0]]).links, [expected]);
        let long: Vec<f32> = (0..5000).map(|i| i as f32).collect();
        let mut bytes = vec![0; 32];
        for x in &long {
            bytes.extend(x.to_le_bytes());
        }
        let expected: Link = Sha256::digest(&bytes).into();
        assert_eq!(chain(&[&long]).links, [expected]);
    }

    #[test]
    fn one_bit_parts_chains_for_good() {
        let next = f32::from_bits(2f32.to_bits() ^ 1);
        let one = chain(&[&[1.0], &[2.0], &[3.0]]);
        let other = chain(&[&[1.0], &[next], &[3.0]]);
        assert_eq!(one.first_difference(&other), Some(1));
        assert_ne!(one.hex(), other.hex());
        assert_eq!(one.first_difference(&one), None);
        assert_eq!(one.first_difference(&chain(&[&[1.0], &[2.0]])), Some(2));
        // Zeros of both signs are different bits.
        assert_eq!(
            chain(&[&[0.0]]).first_difference(&chain(&[&[-0.0]])),
            Some(0)
        );
    }
}
