//! The key-value part of a GGUF file.

use std::collections::HashMap;

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

impl Value {
    /// What the value is, for messages.
    pub fn describe(&self) -> String {
        match self {
            Self::String(s) => format!("the string {:?}", s.chars().take(40).collect::<String>()),
            Self::Array(v) => format!("an array of {}", v.len()),
            Self::Bool(b) => format!("the boolean {b}"),
            Self::F32(x) => format!("the float {x}"),
            Self::F64(x) => format!("the float {x}"),
            _ => match self.integer() {
                Some(i) => format!("the integer {i}"),
                None => "a value".to_owned(),
            },
        }
    }

    /// Any integer type, widened; booleans and floats are none.
    pub fn integer(&self) -> Option<i128> {
        Some(match *self {
            Self::U8(x) => x.into(),
            Self::I8(x) => x.into(),
            Self::U16(x) => x.into(),
            Self::I16(x) => x.into(),
            Self::U32(x) => x.into(),
            Self::I32(x) => x.into(),
            Self::U64(x) => x.into(),
            Self::I64(x) => x.into(),
            _ => return None,
        })
    }
}

/// Metadata in file order.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    pub(crate) entries: Vec<(String, Value)>,
    index: HashMap<String, usize>,
}

impl Metadata {
    /// Adds an entry; an error when the key is there already.
    pub(super) fn push(&mut self, key: String, value: Value) -> Result<(), GgufError> {
        if self.index.contains_key(&key) {
            return Err(GgufError::DuplicateKey { key });
        }
        self.index.insert(key.clone(), self.entries.len());
        self.entries.push((key, value));
        Ok(())
    }

    /// Entries from pairs (for tests and tools that build metadata without a file).
    pub fn from_entries(
        entries: impl IntoIterator<Item = (String, Value)>,
    ) -> Result<Self, GgufError> {
        let mut metadata = Self::default();
        for (key, value) in entries {
            metadata.push(key, value)?;
        }
        Ok(metadata)
    }

    /// The value under `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.index.get(key).map(|i| &self.entries[*i].1)
    }

    /// `Ok(None)` when absent, an error when `read` does not accept the value.
    fn opt<'a, T>(
        &'a self,
        key: &str,
        expected: &'static str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, GgufError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        read(value).map(Some).ok_or_else(|| GgufError::WrongType {
            key: key.to_owned(),
            found: value.describe(),
            expected,
        })
    }

    fn need<T>(
        key: &str,
        expected: &'static str,
        value: Result<Option<T>, GgufError>,
    ) -> Result<T, GgufError> {
        value?.ok_or_else(|| GgufError::MissingKey {
            key: key.to_owned(),
            expected,
        })
    }

    /// A string; an error that names the key when absent or of another type.
    pub fn str(&self, key: &str) -> Result<&str, GgufError> {
        Self::need(key, "a string", self.opt_str(key))
    }
    /// Any integer type that fits a u32.
    pub fn u32(&self, key: &str) -> Result<u32, GgufError> {
        Self::need(key, "an integer of 32 bits", self.opt_u32(key))
    }
    /// A float of either width.
    pub fn f32(&self, key: &str) -> Result<f32, GgufError> {
        Self::need(key, "a float", self.opt_f32(key))
    }
    /// `Ok(None)` when absent; an error when present with another type.
    pub fn opt_str(&self, key: &str) -> Result<Option<&str>, GgufError> {
        self.opt(key, "a string", |v| match v {
            Value::String(s) => Some(s.as_str()),
            _ => None,
        })
    }
    /// See [`Metadata::u32`].
    pub fn opt_u32(&self, key: &str) -> Result<Option<u32>, GgufError> {
        self.opt(key, "an integer of 32 bits", |v| {
            u32::try_from(v.integer()?).ok()
        })
    }
    /// See [`Metadata::f32`].
    pub fn opt_f32(&self, key: &str) -> Result<Option<f32>, GgufError> {
        self.opt(key, "a float", |v| match v {
            Value::F32(x) => Some(*x),
            Value::F64(x) => Some(*x as f32),
            _ => None,
        })
    }
    /// See [`Metadata::opt_str`].
    pub fn opt_bool(&self, key: &str) -> Result<Option<bool>, GgufError> {
        self.opt(key, "a boolean", |v| match v {
            Value::Bool(b) => Some(*b),
            _ => None,
        })
    }
    /// An array of strings.
    pub fn opt_strings(&self, key: &str) -> Result<Option<Vec<&str>>, GgufError> {
        self.opt(key, "an array of strings", |v| {
            array(v)?
                .iter()
                .map(|e| match e {
                    Value::String(s) => Some(s.as_str()),
                    _ => None,
                })
                .collect()
        })
    }
    /// An array of integers that fit i64; booleans count as 0 and 1.
    pub fn opt_ints(&self, key: &str) -> Result<Option<Vec<i64>>, GgufError> {
        self.opt(key, "an array of integers", |v| {
            array(v)?
                .iter()
                .map(|e| match e {
                    Value::Bool(b) => Some(i64::from(*b)),
                    other => i64::try_from(other.integer()?).ok(),
                })
                .collect()
        })
    }
    /// All entries in file order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(k, v)| (k.as_str(), v))
    }
}

fn array(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Array(v) => Some(v),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Metadata {
        let ints = vec![Value::I32(-1), Value::I32(7)];
        let bools = vec![Value::Bool(true), Value::Bool(false)];
        Metadata::from_entries(
            [
                ("name", Value::String("x".into())),
                ("big", Value::U64(1 << 40)),
                ("small", Value::I64(12)),
                ("half", Value::F64(0.5)),
                ("flag", Value::Bool(true)),
                ("ints", Value::Array(ints)),
                ("bools", Value::Array(bools)),
                ("words", Value::Array(vec![Value::String("a".into())])),
            ]
            .map(|(k, v)| (k.to_owned(), v)),
        )
        .expect("keys are distinct")
    }

    #[test]
    fn getters_accept_what_fits() {
        let m = sample();
        assert_eq!(m.str("name").expect("present"), "x");
        assert_eq!(m.u32("small").expect("fits"), 12);
        assert_eq!(m.f32("half").expect("widths mix"), 0.5);
        assert_eq!(m.opt_bool("flag").expect("typed"), Some(true));
        assert_eq!(m.opt_ints("ints").expect("typed"), Some(vec![-1, 7]));
        assert_eq!(m.opt_ints("bools").expect("typed"), Some(vec![1, 0]));
        assert_eq!(m.opt_strings("words").expect("typed"), Some(vec!["a"]));
        assert_eq!(m.opt_u32("nothing").expect("absent is no error"), None);
        assert_eq!(m.iter().count(), 8);
    }

    #[test]
    fn errors_name_the_key_and_what_would_be_right() {
        let m = sample();
        let text = |e: GgufError| e.to_string();
        assert_eq!(
            text(m.u32("big").expect_err("40 bits")),
            "metadata key `big` holds the integer 1099511627776; expected an integer of 32 bits"
        );
        assert_eq!(
            text(m.str("missing").expect_err("absent")),
            "metadata key `missing` is missing; expected a string"
        );
        assert_eq!(
            text(m.opt_ints("words").expect_err("strings")),
            "metadata key `words` holds an array of 1; expected an array of integers"
        );
        assert_eq!(
            text(m.f32("name").expect_err("a string")),
            "metadata key `name` holds the string \"x\"; expected a float"
        );
    }
}
