//! Sizes that every decoder has, read from metadata and checked against each other.

use std::fmt::Display;
use std::ops::RangeInclusive;

use super::ModelError;
use crate::formats::gguf::{GgufError, Metadata};
use crate::kv::KvShape;

/// Metadata under one architecture's prefix.
#[derive(Clone, Copy)]
pub(super) struct Keys<'a> {
    pub meta: &'a Metadata,
    pub arch: &'a str,
}

impl Keys<'_> {
    /// The full name of a key.
    pub fn key(&self, key: &str) -> String {
        format!("{}.{key}", self.arch)
    }

    /// An error about a key's value.
    pub fn wrong(&self, key: &str, found: impl Display, expected: impl Into<String>) -> ModelError {
        ModelError::Config {
            key: self.key(key),
            found: found.to_string(),
            expected: expected.into(),
        }
    }

    /// An integer that may be absent, within `range`.
    pub fn opt_count(
        &self,
        key: &str,
        range: RangeInclusive<usize>,
    ) -> Result<Option<usize>, ModelError> {
        let Some(value) = self.meta.opt_u32(&self.key(key))? else {
            return Ok(None);
        };
        let value = value as usize;
        if range.contains(&value) {
            return Ok(Some(value));
        }
        let expected = format!("{} to {}", range.start(), range.end());
        Err(self.wrong(key, value, expected))
    }

    /// An integer within `range`.
    pub fn count(&self, key: &str, range: RangeInclusive<usize>) -> Result<usize, ModelError> {
        let missing = || GgufError::MissingKey {
            key: self.key(key),
            expected: "an integer",
        };
        Ok(self.opt_count(key, range)?.ok_or_else(missing)?)
    }

    /// A finite number above 0 that may be absent.
    pub fn opt_positive(&self, key: &str) -> Result<Option<f64>, ModelError> {
        match self.meta.opt_f32(&self.key(key))? {
            Some(v) if !(v.is_finite() && v > 0.0) => {
                Err(self.wrong(key, v, "a finite number above 0"))
            }
            v => Ok(v.map(f64::from)),
        }
    }
}

/// Sizes of a decoder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Dims {
    pub layers: usize,
    pub hidden: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
    /// The context that the model was made for.
    pub context: usize,
    pub eps: f32,
}

impl Dims {
    /// Reads and checks the sizes.
    pub fn read(keys: Keys<'_>) -> Result<Self, ModelError> {
        let layers = keys.count("block_count", 1..=1024)?;
        let context = keys.count("context_length", 1..=1 << 24)?;
        let hidden = keys.count("embedding_length", 1..=1 << 20)?;
        let heads = keys.count("attention.head_count", 1..=4096)?;
        let kv_heads = keys
            .opt_count("attention.head_count_kv", 1..=4096)?
            .unwrap_or(heads);
        if !heads.is_multiple_of(kv_heads) {
            let expected = format!("a divisor of attention.head_count = {heads}");
            return Err(keys.wrong("attention.head_count_kv", kv_heads, expected));
        }
        let head_dim = match keys.opt_count("attention.key_length", 1..=4096)? {
            Some(dim) => dim,
            None if hidden.is_multiple_of(heads) => hidden / heads,
            None => {
                let expected = format!("a divisor of embedding_length = {hidden}");
                return Err(keys.wrong("attention.head_count", heads, expected));
            }
        };
        let value_dim = keys
            .opt_count("attention.value_length", 1..=4096)?
            .unwrap_or(head_dim);
        if value_dim != head_dim {
            let expected = format!("the key length, {head_dim}");
            return Err(keys.wrong("attention.value_length", value_dim, expected));
        }
        if !head_dim.is_multiple_of(2) {
            return Err(keys.wrong("attention.key_length", head_dim, "an even number"));
        }
        let eps_key = "attention.layer_norm_rms_epsilon";
        let eps = keys.meta.f32(&keys.key(eps_key))?;
        if !(eps > 0.0 && eps < 1.0) {
            return Err(keys.wrong(eps_key, eps, "a number between 0 and 1"));
        }
        Ok(Self {
            layers,
            hidden,
            heads,
            kv_heads,
            head_dim,
            context,
            eps,
        })
    }

    /// The cache of one sequence of at most `ctx` tokens.
    pub fn kv_shape(&self, ctx: usize) -> KvShape {
        KvShape {
            layers: self.layers,
            kv_heads: self.kv_heads,
            head_dim: self.head_dim,
            ctx,
        }
    }
}
