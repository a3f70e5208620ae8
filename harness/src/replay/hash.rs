//! Hashes that two runs are compared by.

use sha2::{Digest, Sha256};

/// sha256 over token ids as little-endian u32, lower-case hex.
pub fn token_hash(ids: &[u32]) -> String {
    let mut hasher = Sha256::new();
    for id in ids {
        hasher.update(id.to_le_bytes());
    }
    hex(&hasher.finalize())
}

/// sha256 over reasoning, content and tool calls' text, each ended by a zero byte.
pub fn text_hash(reasoning: &str, content: &str, tool_text: &str) -> String {
    let mut hasher = Sha256::new();
    for part in [reasoning, content, tool_text] {
        hasher.update(part.as_bytes());
        hasher.update([0]);
    }
    hex(&hasher.finalize())
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|b| [DIGITS[usize::from(b >> 4)], DIGITS[usize::from(b & 15)]])
        .map(char::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(token_hash(&[]), empty);
        // Python: hashlib.sha256(struct.pack("<3I", 1, 2, 65536)).hexdigest()
        assert_eq!(
            token_hash(&[1, 2, 65536]),
            "b9f5fe6ff037564f7628f61b720ece17b215389c80de1c7c9dc538029eaf63e3"
        );
        assert_ne!(text_hash("a", "", ""), text_hash("", "a", ""));
    }
}
