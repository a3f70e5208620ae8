//! Fingerprints of token sequences.

use sha2::{Digest, Sha256};

use crate::hex::hex;

/// sha256 over ids as little-endian u32, lowercase hex.
pub fn token_hash(ids: &[u32]) -> String {
    let mut hasher = Sha256::new();
    for id in ids {
        hasher.update(id.to_le_bytes());
    }
    hex(&hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(token_hash(&[]), empty);
        // sha256 of the bytes 61 62 63 64.
        let abcd = "88d4266fd4e6338d13b845fcf289579d209c897823b9217da3e161936f031589";
        assert_eq!(token_hash(&[0x6463_6261]), abcd);
    }
}
