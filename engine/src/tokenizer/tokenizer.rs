//! Encoding and decoding.

use std::collections::HashMap;

use aho_corasick::{AhoCorasick, MatchKind};

use super::bpe::{Merge, Merges, Scratch};
use super::pre::{Pre, SUPPORTED};
use super::{TokenizerError, Vocabulary, byte_text};
use crate::formats::gguf::Metadata;

/// What to do with the text of special tokens inside a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Specials {
    /// `<|start|>` becomes the token (rendered templates).
    Parse,
    /// It is ordinary text (user input). User-defined tokens, which are text, are still found.
    AsText,
}

/// What a token is, by its GGUF type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Text in the byte alphabet, made by merging.
    Normal,
    /// Markup that only templates may write (control, unknown).
    Control,
    /// Text that is a token wherever it stands.
    UserDefined,
    /// Neither encoded nor expected.
    Unused,
}

/// Texts of control tokens that end a generation in the models that have them.
const END_TEXTS: [&str; 14] = [
    "<|return|>",
    "<|call|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|end|>",
    "<end_of_turn>",
    "<EOT>",
    "</s>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
];

/// Finds special tokens in text, leftmost and longest first.
#[derive(Debug)]
struct Finder {
    automaton: AhoCorasick,
    ids: Vec<u32>,
}

/// A tokenizer built from a model file.
#[derive(Debug)]
pub struct Tokenizer {
    pre: Pre,
    /// All tokens' bytes in a row; token `i` ends at `ends[i]`.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    kinds: Vec<Kind>,
    /// Normal tokens by their bytes.
    normal: HashMap<Box<[u8]>, u32>,
    /// All other tokens by their text.
    special: HashMap<Box<str>, u32>,
    byte_tokens: Box<[Option<u32>; 256]>,
    merges: Merges,
    /// For [`Specials::Parse`]: control and user-defined tokens.
    all_specials: Option<Finder>,
    /// For [`Specials::AsText`]: user-defined tokens alone.
    text_specials: Option<Finder>,
    bos_to_add: Option<u32>,
    end_of_generation: Vec<u32>,
}

impl Tokenizer {
    /// Reads `tokenizer.ggml.*`.
    pub fn from_metadata(meta: &Metadata) -> Result<Self, TokenizerError> {
        Self::new(&Vocabulary::from_metadata(meta)?)
    }

    /// Checks a vocabulary and builds the tokenizer. Where two merges join the same pair, the
    /// first counts.
    pub fn new(vocabulary: &Vocabulary) -> Result<Self, TokenizerError> {
        let pre = Pre::from_name(&vocabulary.pre).ok_or_else(|| TokenizerError::UnknownPre {
            name: vocabulary.pre.clone(),
            supported: SUPPORTED,
        })?;
        let size = vocabulary.tokens.len();
        if size == 0 || i32::try_from(size).is_err() {
            return Err(TokenizerError::Size(size));
        }
        let kinds = kinds(vocabulary)?;
        let mut this = Self {
            pre,
            bytes: Vec::new(),
            ends: Vec::with_capacity(size),
            kinds,
            normal: HashMap::with_capacity(size),
            special: HashMap::new(),
            byte_tokens: Box::new([None; 256]),
            merges: HashMap::new(),
            all_specials: None,
            text_specials: None,
            bos_to_add: None,
            end_of_generation: Vec::new(),
        };
        for (id, text) in vocabulary.tokens.iter().enumerate() {
            this.add_token(id, text)?;
        }
        for byte in std::iter::once(b'\n').chain(b' '..=b'~') {
            if this.byte_tokens[usize::from(byte)].is_none() {
                return Err(TokenizerError::MissingByte { byte });
            }
        }
        this.merges = merges(vocabulary, &this.normal)?;
        this.all_specials = this.finder(|kind| matches!(kind, Kind::Control | Kind::UserDefined));
        this.text_specials = this.finder(|kind| kind == Kind::UserDefined);
        this.set_ends(vocabulary)?;
        Ok(this)
    }

    fn add_token(&mut self, id: usize, text: &str) -> Result<(), TokenizerError> {
        if text.is_empty() {
            return Err(TokenizerError::EmptyToken { id });
        }
        // A normal token written outside the byte alphabet cannot be merged; it decodes as it is.
        let decoded = if self.kinds[id] == Kind::Normal {
            byte_text::to_bytes(text)
        } else {
            None
        };
        let number = id as u32;
        let earlier = if let Some(bytes) = &decoded {
            if let [byte] = bytes[..] {
                self.byte_tokens[usize::from(byte)].get_or_insert(number);
            }
            self.normal.insert(bytes.clone().into_boxed_slice(), number)
        } else {
            self.special.insert(text.into(), number)
        };
        if let Some(first) = earlier {
            let text = text.to_owned();
            return Err(TokenizerError::DuplicateToken {
                first,
                second: id,
                text,
            });
        }
        self.bytes
            .extend_from_slice(decoded.as_deref().unwrap_or(text.as_bytes()));
        self.ends.push(self.bytes.len());
        Ok(())
    }

    fn finder(&self, wanted: impl Fn(Kind) -> bool) -> Option<Finder> {
        let ids: Vec<u32> = (0..self.vocab_size() as u32)
            .filter(|&id| wanted(self.kinds[id as usize]))
            .collect();
        if ids.is_empty() {
            return None;
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(ids.iter().map(|&id| self.token_bytes(id)))
            .expect("the automaton of a vocabulary below 2^31 tokens fits its state ids");
        Some(Finder { automaton, ids })
    }

    /// Settles BOS and the tokens that end a generation.
    fn set_ends(&mut self, vocabulary: &Vocabulary) -> Result<(), TokenizerError> {
        let keys = [
            ("tokenizer.ggml.bos_token_id", vocabulary.bos),
            ("tokenizer.ggml.eos_token_id", vocabulary.eos),
            ("tokenizer.ggml.eot_token_id", vocabulary.eot),
            ("tokenizer.ggml.eom_token_id", vocabulary.eom),
        ];
        let vocab_size = self.vocab_size();
        for (key, id) in keys {
            if let Some(id) = id.filter(|&id| id as usize >= vocab_size) {
                return Err(TokenizerError::IdOutOfRange {
                    key,
                    id,
                    vocab_size,
                });
            }
        }
        if vocabulary.add_bos.unwrap_or(self.pre.adds_bos()) {
            self.bos_to_add = vocabulary.bos;
        }
        let named = END_TEXTS
            .iter()
            .filter_map(|text| self.special.get(*text).copied());
        let mut ends: Vec<u32> = keys[1..]
            .iter()
            .filter_map(|(_, id)| *id)
            .chain(named)
            .collect();
        ends.sort_unstable();
        ends.dedup();
        // In harmony a turn goes on after `<|end|>`; in other formats that token ends it.
        let harmony = ["<|return|>", "<|call|>"]
            .iter()
            .all(|t| self.special.contains_key(*t));
        if harmony && let Some(&end) = self.special.get("<|end|>") {
            ends.retain(|&id| id != end);
        }
        self.end_of_generation = ends;
        Ok(())
    }

    /// Text to token ids; no BOS is added. Bytes for which the vocabulary has no token (SmolLM2
    /// lacks some control characters) are left out, as Hugging Face `tokenizers` does.
    pub fn encode(&self, text: &str, specials: Specials) -> Vec<u32> {
        let mut out = Vec::with_capacity(text.len() / 3);
        let mut scratch = Scratch::default();
        let finder = match specials {
            Specials::Parse => &self.all_specials,
            Specials::AsText => &self.text_specials,
        };
        let mut done = 0;
        if let Some(finder) = finder {
            for found in finder.automaton.find_iter(text) {
                self.encode_text(&text[done..found.start()], &mut scratch, &mut out);
                out.push(finder.ids[found.pattern().as_usize()]);
                done = found.end();
            }
        }
        self.encode_text(&text[done..], &mut scratch, &mut out);
        out
    }

    fn encode_text(&self, text: &str, scratch: &mut Scratch, out: &mut Vec<u32>) {
        self.pre.split(text, &mut |piece| {
            if self.pre.whole_pieces_first()
                && let Some(&token) = self.normal.get(piece.as_bytes())
            {
                out.push(token);
                return;
            }
            let tokens = piece
                .bytes()
                .filter_map(|byte| self.byte_tokens[usize::from(byte)]);
            scratch.merge(tokens, &self.merges, out);
        });
    }

    /// The token's bytes; empty for an id outside the vocabulary. Control tokens give their text.
    pub fn token_bytes(&self, id: u32) -> &[u8] {
        let id = id as usize;
        let Some(&end) = self.ends.get(id) else {
            return &[];
        };
        let start = id.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..end]
    }

    /// All bytes of `ids` in a row.
    pub fn decode(&self, ids: &[u32]) -> Vec<u8> {
        ids.iter()
            .flat_map(|&id| self.token_bytes(id))
            .copied()
            .collect()
    }

    /// Number of tokens.
    pub fn vocab_size(&self) -> usize {
        self.ends.len()
    }

    /// The id of a token by its exact text (`<|channel|>`).
    pub fn id_of(&self, text: &str) -> Option<u32> {
        self.special
            .get(text)
            .or_else(|| self.normal.get(text.as_bytes()))
            .copied()
    }

    /// Control token: markup that is not shown. User-defined tokens (`<tool_call>`) are text.
    pub fn is_special(&self, id: u32) -> bool {
        self.kinds.get(id as usize) == Some(&Kind::Control)
    }

    /// Beginning-of-sequence token, if the file asks for it to be added (`add_bos_token`).
    pub fn bos_to_add(&self) -> Option<u32> {
        self.bos_to_add
    }

    /// Tokens that end a generation (eos, `<|return|>`, `<|call|>`, `<|im_end|>` ...; never
    /// harmony's `<|end|>`), sorted.
    pub fn end_of_generation(&self) -> &[u32] {
        &self.end_of_generation
    }
}

fn kinds(vocabulary: &Vocabulary) -> Result<Vec<Kind>, TokenizerError> {
    let tokens = vocabulary.tokens.len();
    let Some(types) = &vocabulary.token_types else {
        return Ok(vec![Kind::Normal; tokens]);
    };
    if types.len() != tokens {
        return Err(TokenizerError::TypeCount {
            tokens,
            types: types.len(),
        });
    }
    let kind = |(id, &ty): (usize, &i64)| match ty {
        1 => Ok(Kind::Normal),
        2 | 3 => Ok(Kind::Control),
        4 => Ok(Kind::UserDefined),
        5 | 6 => Ok(Kind::Unused),
        _ => Err(TokenizerError::TokenType { id, ty }),
    };
    types.iter().enumerate().map(kind).collect()
}

fn merges(
    vocabulary: &Vocabulary,
    normal: &HashMap<Box<[u8]>, u32>,
) -> Result<Merges, TokenizerError> {
    let mut merges = Merges::with_capacity(vocabulary.merges.len());
    for (index, merge) in vocabulary.merges.iter().enumerate() {
        let bad = |problem: String| TokenizerError::Merge {
            index,
            merge: merge.clone(),
            problem,
        };
        let (left, right) = merge
            .split_once(' ')
            .filter(|(left, right)| !left.is_empty() && !right.is_empty() && !right.contains(' '))
            .ok_or_else(|| bad("expected two tokens with one space between them".to_owned()))?;
        let find = |text: &str| {
            byte_text::to_bytes(text)
                .and_then(|bytes| normal.get(bytes.as_slice()).copied())
                .ok_or_else(|| bad(format!("expected `{text}` to be a normal token")))
        };
        let pair = (find(left)?, find(right)?);
        let token = find(&format!("{left}{right}"))?;
        merges.entry(pair).or_insert(Merge {
            rank: index as u32,
            token,
        });
    }
    Ok(merges)
}
