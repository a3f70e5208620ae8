//! The key-value part of a GGUF file.

use super::GgufError;

/// A metadata value. Arrays are homogeneous in GGUF; nested arrays are refused.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Value {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    U64(u64),
    I64(i64),
    F32(f32),
    F64(f64),
    Bool(bool),
    String(String),
    Array(Vec<Value>),
}

/// Metadata in file order.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    pub(crate) entries: Vec<(String, Value)>,
}

impl Metadata {
    /// The value under `key`.
    pub fn get(&self, _key: &str) -> Option<&Value> {
        todo!()
    }
    /// A string; an error that names the key when absent or of another type.
    pub fn str(&self, _key: &str) -> Result<&str, GgufError> {
        todo!()
    }
    /// Any integer type that fits a u32.
    pub fn u32(&self, _key: &str) -> Result<u32, GgufError> {
        todo!()
    }
    /// A float of either width.
    pub fn f32(&self, _key: &str) -> Result<f32, GgufError> {
        todo!()
    }
    /// `Ok(None)` when absent; an error when present with another type.
    pub fn opt_str(&self, _key: &str) -> Result<Option<&str>, GgufError> {
        todo!()
    }
    /// See [`Metadata::u32`].
    pub fn opt_u32(&self, _key: &str) -> Result<Option<u32>, GgufError> {
        todo!()
    }
    /// See [`Metadata::f32`].
    pub fn opt_f32(&self, _key: &str) -> Result<Option<f32>, GgufError> {
        todo!()
    }
    /// See [`Metadata::opt_str`].
    pub fn opt_bool(&self, _key: &str) -> Result<Option<bool>, GgufError> {
        todo!()
    }
    /// An array of strings.
    pub fn opt_strings(&self, _key: &str) -> Result<Option<Vec<&str>>, GgufError> {
        todo!()
    }
    /// An array of integers that fit i64.
    pub fn opt_ints(&self, _key: &str) -> Result<Option<Vec<i64>>, GgufError> {
        todo!()
    }
    /// All entries in file order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(k, v)| (k.as_str(), v))
    }
}
