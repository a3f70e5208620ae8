//! Writing GGUF version 3: the header first, then each tensor's data in the declared order.

use std::io::{self, Write};

use super::Value;
use crate::formats::blocks::GgmlType;

/// A tensor to be written.
#[derive(Clone, Debug)]
pub struct TensorSpec {
    /// Name.
    pub name: String,
    /// Element type.
    pub ty: GgmlType,
    /// Dimensions in GGUF order, the row length first.
    pub dims: Vec<u64>,
}

impl TensorSpec {
    /// Bytes of the tensor's data.
    ///
    /// # Panics
    /// When the row length is no multiple of the type's block length.
    pub fn byte_len(&self) -> u64 {
        let cols = self.dims[0] as usize;
        let row = self.ty.row_bytes(cols).unwrap_or_else(|| {
            panic!(
                "{}: rows of {cols} are not whole {} blocks",
                self.name,
                self.ty.name()
            )
        });
        row as u64 * self.dims[1..].iter().product::<u64>()
    }
}

/// Collects metadata and tensor descriptions, then writes the header.
#[derive(Clone, Debug)]
pub struct GgufWriter {
    /// Version number in the header.
    pub version: u32,
    /// Alignment of tensor data; written as `general.alignment` unless it is 32.
    pub alignment: u64,
    entries: Vec<(String, Value)>,
    tensors: Vec<TensorSpec>,
}

impl Default for GgufWriter {
    fn default() -> Self {
        Self {
            version: 3,
            alignment: 32,
            entries: Vec::new(),
            tensors: Vec::new(),
        }
    }
}

impl GgufWriter {
    /// Adds a key-value pair.
    pub fn set(&mut self, key: &str, value: Value) -> &mut Self {
        self.entries.push((key.to_owned(), value));
        self
    }
    /// Declares the next tensor.
    pub fn tensor(&mut self, name: &str, ty: GgmlType, dims: &[u64]) -> &mut Self {
        self.tensors.push(TensorSpec {
            name: name.to_owned(),
            ty,
            dims: dims.to_vec(),
        });
        self
    }
    /// The declared tensors, in order.
    pub fn tensors(&self) -> &[TensorSpec] {
        &self.tensors
    }
    /// Bytes of zeros after `len` bytes of data, so that the next tensor is aligned.
    pub fn padding(&self, len: u64) -> usize {
        (len.next_multiple_of(self.alignment) - len) as usize
    }
    /// Bytes of the whole file.
    pub fn file_bytes(&self) -> u64 {
        let data = self
            .tensors
            .iter()
            .map(|t| t.byte_len() + self.padding(t.byte_len()) as u64);
        self.header().len() as u64 + data.sum::<u64>()
    }

    /// Everything before the tensor data, padded to the alignment.
    pub fn header(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(b"GGUF");
        out.extend(self.version.to_le_bytes());
        out.extend((self.tensors.len() as u64).to_le_bytes());
        let align = Value::U32(self.alignment as u32);
        let extra = (self.alignment != 32).then_some(("general.alignment", &align));
        let pairs = self
            .entries
            .iter()
            .map(|(k, v)| (k.as_str(), v))
            .chain(extra);
        out.extend((pairs.clone().count() as u64).to_le_bytes());
        for (key, value) in pairs {
            put_string(&mut out, key);
            out.extend(type_number(value).to_le_bytes());
            put_value(&mut out, value);
        }
        let mut offset = 0u64;
        for tensor in &self.tensors {
            put_string(&mut out, &tensor.name);
            out.extend((tensor.dims.len() as u32).to_le_bytes());
            for d in &tensor.dims {
                out.extend(d.to_le_bytes());
            }
            out.extend(tensor.ty.number().to_le_bytes());
            out.extend(offset.to_le_bytes());
            let len = tensor.byte_len();
            offset += len + self.padding(len) as u64;
        }
        let padding = self.padding(out.len() as u64);
        out.resize(out.len() + padding, 0);
        out
    }

    /// Writes a whole small file: the header and each tensor's bytes as `data` gives them.
    pub fn write(&self, out: &mut impl Write, data: &[Vec<u8>]) -> io::Result<()> {
        out.write_all(&self.header())?;
        for bytes in data {
            out.write_all(bytes)?;
            out.write_all(&vec![0; self.padding(bytes.len() as u64)])?;
        }
        Ok(())
    }
}

fn put_string(out: &mut Vec<u8>, s: &str) {
    out.extend((s.len() as u64).to_le_bytes());
    out.extend(s.as_bytes());
}

fn type_number(value: &Value) -> u32 {
    match value {
        Value::U8(_) => 0,
        Value::I8(_) => 1,
        Value::U16(_) => 2,
        Value::I16(_) => 3,
        Value::U32(_) => 4,
        Value::I32(_) => 5,
        Value::F32(_) => 6,
        Value::Bool(_) => 7,
        Value::String(_) => 8,
        Value::Array(_) => 9,
        Value::U64(_) => 10,
        Value::I64(_) => 11,
        Value::F64(_) => 12,
    }
}

fn put_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::U8(x) => out.push(*x),
        Value::I8(x) => out.push(*x as u8),
        Value::U16(x) => out.extend(x.to_le_bytes()),
        Value::I16(x) => out.extend(x.to_le_bytes()),
        Value::U32(x) => out.extend(x.to_le_bytes()),
        Value::I32(x) => out.extend(x.to_le_bytes()),
        Value::F32(x) => out.extend(x.to_le_bytes()),
        Value::Bool(x) => out.push(u8::from(*x)),
        Value::String(s) => put_string(out, s),
        Value::Array(values) => {
            let number = values.first().map_or(4, type_number);
            out.extend(number.to_le_bytes());
            out.extend((values.len() as u64).to_le_bytes());
            for v in values {
                put_value(out, v);
            }
        }
        Value::U64(x) => out.extend(x.to_le_bytes()),
        Value::I64(x) => out.extend(x.to_le_bytes()),
        Value::F64(x) => out.extend(x.to_le_bytes()),
    }
}
