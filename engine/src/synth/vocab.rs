//! Vocabularies: the real o200k, or bytes and a few merges.

use super::SynthError;
use super::shape::Family;
use crate::tokenizer::byte_text::byte_to_char;
use crate::tokenizer::o200k_harmony;

/// Which vocabulary a file carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VocabKind {
    /// o200k with harmony's special tokens, 201088 entries.
    O200k,
    /// 256 bytes, merges of letters, the family's special tokens: this many entries in all.
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

/// Special tokens of a bytes vocabulary.
const SPECIALS: usize = 10;

/// Harmony's, in the order of their ids in o200k.
const HARMONY: [&str; SPECIALS] = [
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

/// Qwen's first ones, in the order of their ids.
const QWEN: [&str; SPECIALS] = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|object_ref_start|>",
    "<|object_ref_end|>",
    "<|box_start|>",
    "<|box_end|>",
    "<|quad_start|>",
    "<|quad_end|>",
    "<|vision_start|>",
];

/// Two-letter merges first, then three- and four-letter ones.
const MOST_MERGES: u32 = 26 * 26 + 26 * 26 * 26 + 26 * 26 * 26 * 26;

impl VocabKind {
    /// The least a byte vocabulary can be.
    pub const LEAST: u32 = 256 + SPECIALS as u32;

    /// As many as Qwen3's.
    pub const QWEN3: Self = Self::Bytes(151_936);

    /// Refuses sizes that cannot be filled, and o200k where its special tokens mean nothing.
    pub(super) fn check(self, family: Family) -> Result<(), SynthError> {
        let most = Self::LEAST + MOST_MERGES;
        match self {
            Self::O200k if family != Family::GptOss => Err(SynthError::ForeignVocab),
            Self::Bytes(n) if !(Self::LEAST..=most).contains(&n) => Err(SynthError::BadShape {
                flag: "--vocab",
                found: n.into(),
                expected: format!("{} to {most} (o200k has its own flag)", Self::LEAST),
            }),
            _ => Ok(()),
        }
    }

    pub(super) fn build(self, family: Family) -> Vocab {
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
            Self::Bytes(n) => bytes(n - Self::LEAST, family),
        }
    }
}

/// Letters by frequency, so that small vocabularies merge what text has.
const LETTERS: &[u8; 26] = b"etaoinshrdlucmfwypvbgkjqxz";

fn bytes(merge_count: u32, family: Family) -> Vocab {
    let mut tokens: Vec<String> = (0..=255).map(|b| byte_to_char(b).to_string()).collect();
    let mut merges = Vec::new();
    for i in 0..merge_count {
        let letter = |n: u32| char::from(LETTERS[n as usize % 26]);
        // How many of the merges before were shorter, and how many letters come before the last.
        let (first, len) = [(26 * 26 + 26 * 26 * 26, 3), (26 * 26, 2), (0, 1)]
            .into_iter()
            .find(|(first, _)| i >= *first)
            .unwrap_or_default();
        let j = i - first;
        let left: String = (1..=len).rev().map(|n| letter(j / 26u32.pow(n))).collect();
        let right = letter(j);
        tokens.push(format!("{left}{right}"));
        merges.push(format!("{left} {right}"));
    }
    let first = tokens.len() as u32;
    let mut types = vec![NORMAL; tokens.len()];
    let (specials, pad) = match family {
        Family::GptOss => (HARMONY, first + 1),
        Family::Qwen3Moe => (QWEN, first),
    };
    tokens.extend(specials.map(str::to_owned));
    types.resize(tokens.len(), CONTROL);
    Vocab {
        tokens,
        types,
        merges,
        bos: first,
        eos: first + 2,
        pad,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn byte_vocabularies_are_distinct_and_of_the_size_asked() {
        for n in [VocabKind::LEAST, 300, 1000, 5000, 20_000] {
            let v = VocabKind::Bytes(n).build(Family::GptOss);
            assert_eq!((v.tokens.len(), v.types.len()), (n as usize, n as usize));
            assert_eq!(v.tokens.iter().collect::<HashSet<_>>().len(), n as usize);
            assert_eq!(v.tokens[v.eos as usize], "<|return|>");
            assert_eq!(v.merges.len() as u32, n - VocabKind::LEAST);
        }
        let v = VocabKind::Bytes(20_000).build(Family::Qwen3Moe);
        assert_eq!(v.merges[26 * 26 + 1], "ee t");
        assert_eq!(v.merges[26 * 26 + 26 * 26 * 26 + 27], "eet t");
        assert_eq!(v.tokens[v.eos as usize], "<|im_end|>");
        assert!(VocabKind::Bytes(10).check(Family::GptOss).is_err());
        assert!(VocabKind::O200k.check(Family::Qwen3Moe).is_err());
    }
}
