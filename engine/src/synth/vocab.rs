//! Vocabularies: the real o200k, or bytes and a few merges.

use super::SynthError;
use crate::tokenizer::byte_text::byte_to_char;
use crate::tokenizer::o200k_harmony;

/// Which vocabulary a file carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VocabKind {
    /// o200k with harmony's special tokens, 201088 entries.
    O200k,
    /// 256 bytes, merges of letters, harmony's special tokens: this many entries in all.
    Bytes(u32),
}

/// What goes under `tokenizer.ggml.*`.
pub(super) struct Vocab {
    pub(super) tokens: Vec<String>,
    pub(super) types: Vec<i32>,
    pub(super) merges: Vec<String>,
    pub(super) bos: u32,
    pub(super) eos: u32,
    pub(super) pad: u32,
}

const NORMAL: i32 = 1;
const CONTROL: i32 = 3;

/// Harmony's special tokens, in the order of their ids in o200k.
const SPECIALS: [&str; 10] = [
    "<|startoftext|>",
    "<|endoftext|>",
    "<|return|>",
    "<|constrain|>",
    "<|channel|>",
    "<|start|>",
    "<|end|>",
    "<|message|>",
    "<|call|>",
    "<|endofprompt|>",
];

/// Two-letter merges first, then three-letter ones.
const MOST_MERGES: u32 = 26 * 26 + 26 * 26 * 26;

impl VocabKind {
    /// The least a byte vocabulary can be.
    pub const LEAST: u32 = 256 + SPECIALS.len() as u32;

    /// Refuses sizes that cannot be filled.
    pub(super) fn check(self) -> Result<(), SynthError> {
        let most = Self::LEAST + MOST_MERGES;
        match self {
            Self::Bytes(n) if !(Self::LEAST..=most).contains(&n) => Err(SynthError::BadShape {
                flag: "--vocab",
                found: n.into(),
                expected: format!("{} to {most} (o200k has its own flag)", Self::LEAST),
            }),
            _ => Ok(()),
        }
    }

    pub(super) fn build(self) -> Vocab {
        match self {
            Self::O200k => {
                let o200k = o200k_harmony();
                Vocab {
                    tokens: o200k.tokens,
                    types: o200k.token_types,
                    merges: o200k.merges,
                    bos: 199_998,
                    eos: 200_002,
                    pad: 199_999,
                }
            }
            Self::Bytes(n) => bytes(n - Self::LEAST),
        }
    }
}

/// Letters by frequency, so that small vocabularies merge what text has.
const LETTERS: &[u8; 26] = b"etaoinshrdlucmfwypvbgkjqxz";

fn bytes(merge_count: u32) -> Vocab {
    let mut tokens: Vec<String> = (0..=255).map(|b| byte_to_char(b).to_string()).collect();
    let mut merges = Vec::new();
    for i in 0..merge_count {
        let letter = |n: u32| char::from(LETTERS[n as usize % 26]);
        let (left, right) = match i.checked_sub(26 * 26) {
            None => (letter(i / 26).to_string(), letter(i)),
            Some(j) => (format!("{}{}", letter(j / 676), letter(j / 26)), letter(j)),
        };
        tokens.push(format!("{left}{right}"));
        merges.push(format!("{left} {right}"));
    }
    let first = tokens.len() as u32;
    let mut types = vec![NORMAL; tokens.len()];
    tokens.extend(SPECIALS.map(str::to_owned));
    types.resize(tokens.len(), CONTROL);
    Vocab {
        tokens,
        types,
        merges,
        bos: first,
        eos: first + 2,
        pad: first + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn byte_vocabularies_are_distinct_and_of_the_size_asked() {
        for n in [VocabKind::LEAST, 300, 1000, 5000] {
            let v = VocabKind::Bytes(n).build();
            assert_eq!((v.tokens.len(), v.types.len()), (n as usize, n as usize));
            assert_eq!(v.tokens.iter().collect::<HashSet<_>>().len(), n as usize);
            assert_eq!(v.tokens[v.eos as usize], "<|return|>");
            assert_eq!(v.merges.len() as u32, n - VocabKind::LEAST);
        }
        assert!(VocabKind::Bytes(10).check().is_err());
    }
}
