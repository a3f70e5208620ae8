//! What a model file says about its tokenizer, before anything is checked.

use super::TokenizerError;
use crate::formats::gguf::Metadata;

/// The contents of `tokenizer.ggml.*` that byte-level BPE needs.
#[derive(Clone, Debug, Default)]
pub struct Vocabulary {
    /// `pre`: name of the pre-tokenizer.
    pub pre: String,
    /// `tokens`: texts in the printable byte alphabet (special ones as they are); the index is
    /// the id.
    pub tokens: Vec<String>,
    /// `token_type`: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte. `None`:
    /// all normal.
    pub token_types: Option<Vec<i64>>,
    /// `merges`: `left right`, most urgent first.
    pub merges: Vec<String>,
    /// `bos_token_id`.
    pub bos: Option<u32>,
    /// `eos_token_id`.
    pub eos: Option<u32>,
    /// `eot_token_id`: end of a turn.
    pub eot: Option<u32>,
    /// `eom_token_id`: end of a message that calls a tool.
    pub eom: Option<u32>,
    /// `add_bos_token`. `None`: as the pre-tokenizer's models do.
    pub add_bos: Option<bool>,
}

impl Vocabulary {
    /// Reads `tokenizer.ggml.*`. `add_space_prefix` has no meaning in byte-level BPE and is not
    /// read.
    pub fn from_metadata(meta: &Metadata) -> Result<Self, TokenizerError> {
        let model = meta.str("tokenizer.ggml.model")?;
        if model != "gpt2" {
            return Err(TokenizerError::UnknownModel {
                name: model.to_owned(),
            });
        }
        let strings = |key: &'static str| -> Result<Vec<String>, TokenizerError> {
            let list = meta.opt_strings(key)?.ok_or_else(|| {
                crate::formats::gguf::GgufError::MissingKey {
                    key: key.to_owned(),
                    expected: "an array of strings",
                }
            })?;
            Ok(list.into_iter().map(str::to_owned).collect())
        };
        Ok(Self {
            pre: meta.str("tokenizer.ggml.pre")?.to_owned(),
            tokens: strings("tokenizer.ggml.tokens")?,
            token_types: meta.opt_ints("tokenizer.ggml.token_type")?,
            merges: strings("tokenizer.ggml.merges")?,
            bos: meta.opt_u32("tokenizer.ggml.bos_token_id")?,
            eos: meta.opt_u32("tokenizer.ggml.eos_token_id")?,
            eot: meta.opt_u32("tokenizer.ggml.eot_token_id")?,
            eom: meta.opt_u32("tokenizer.ggml.eom_token_id")?,
            add_bos: meta.opt_bool("tokenizer.ggml.add_bos_token")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::gguf::Value;

    fn strings(items: &[&str]) -> Value {
        Value::Array(
            items
                .iter()
                .map(|s| Value::String((*s).to_owned()))
                .collect(),
        )
    }

    fn entries() -> Vec<(String, Value)> {
        let text = |s: &str| Value::String(s.to_owned());
        [
            ("model", text("gpt2")),
            ("pre", text("qwen2")),
            ("tokens", strings(&["a", "b", "ab"])),
            (
                "token_type",
                Value::Array(vec![Value::I32(1), Value::I32(1), Value::I32(4)]),
            ),
            ("merges", strings(&["a b"])),
            ("eos_token_id", Value::U32(2)),
            ("add_bos_token", Value::Bool(false)),
        ]
        .map(|(key, value)| (format!("tokenizer.ggml.{key}"), value))
        .to_vec()
    }

    fn read(entries: Vec<(String, Value)>) -> Result<Vocabulary, TokenizerError> {
        Vocabulary::from_metadata(&Metadata::from_entries(entries)?)
    }

    #[test]
    fn the_keys_are_read() {
        let vocabulary = read(entries()).expect("the metadata is valid");
        assert_eq!(vocabulary.pre, "qwen2");
        assert_eq!(vocabulary.tokens, ["a", "b", "ab"]);
        assert_eq!(vocabulary.token_types, Some(vec![1, 1, 4]));
        assert_eq!(vocabulary.merges, ["a b"]);
        assert_eq!(
            (vocabulary.bos, vocabulary.eos, vocabulary.eot),
            (None, Some(2), None)
        );
        assert_eq!(vocabulary.add_bos, Some(false));
    }

    #[test]
    fn missing_keys_and_other_models_are_named() {
        for key in ["model", "pre", "tokens", "merges"] {
            let mut rest = entries();
            rest.retain(|(k, _)| k != &format!("tokenizer.ggml.{key}"));
            let error = read(rest).expect_err("a key is missing");
            assert!(error.to_string().contains(key), "{error}");
        }
        let mut other = entries();
        other[0].1 = Value::String("llama".to_owned());
        let error = read(other.clone()).expect_err("SentencePiece is not read");
        assert!(error.to_string().contains("`llama`"), "{error}");
        other[0].1 = Value::U8(1);
        assert!(read(other).is_err());
    }
}
