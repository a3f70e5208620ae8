//! Magic, version, counts and key-value pairs.

use super::cursor::Cursor;
use super::{GgufError, Metadata, Value};

/// Array elements in one file's metadata, over all keys: a bound on what a hostile file can
/// make us allocate (the largest real vocabularies use about a million).
const MAX_ARRAY_ELEMENTS: u64 = 1 << 24;

/// The fewest bytes of a key-value pair: an empty key, a type, one byte of value.
const LEAST_PAIR: usize = 8 + 4 + 1;
/// The fewest bytes of a tensor description: an empty name, a count, no dimensions, a type, an
/// offset.
const LEAST_TENSOR: usize = 8 + 4 + 4 + 8;

pub(super) struct Header {
    pub(super) version: u32,
    pub(super) tensor_count: usize,
    pub(super) metadata: Metadata,
}

pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Header, GgufError> {
    let found = cursor.array::<4>("the header")?;
    if &found != b"GGUF" {
        return Err(GgufError::BadMagic { found });
    }
    let version = cursor.u32("the header")?;
    match version {
        2 | 3 => {}
        v if matches!(v.swap_bytes(), 1..=0xffff) => return Err(GgufError::BigEndian),
        version => return Err(GgufError::UnsupportedVersion { version }),
    }
    let tensor_count = cursor.count(LEAST_TENSOR, "the tensor count")?;
    let pair_count = cursor.count(LEAST_PAIR, "the metadata count")?;
    let mut metadata = Metadata::default();
    let mut budget = MAX_ARRAY_ELEMENTS;
    for i in 0..pair_count {
        let key = cursor.string(&format!("metadata key {i}"))?;
        let number = cursor.u32(&format!("the type of metadata key `{key}`"))?;
        let value = match number {
            ARRAY => read_array(cursor, &key, &mut budget)?,
            number => read_scalar(cursor, &key, number)?,
        };
        metadata.push(key, value)?;
    }
    Ok(Header {
        version,
        tensor_count,
        metadata,
    })
}

const ARRAY: u32 = 9;

fn read_array(cursor: &mut Cursor<'_>, key: &str, budget: &mut u64) -> Result<Value, GgufError> {
    let what = format!("metadata key `{key}`");
    let number = cursor.u32(&what)?;
    if number == ARRAY {
        return Err(GgufError::NestedArray {
            key: key.to_owned(),
        });
    }
    let Some(least) = least_bytes(number) else {
        return Err(GgufError::UnknownValueType {
            key: key.to_owned(),
            number,
        });
    };
    let count = cursor.count(least, &what)?;
    if count as u64 > *budget {
        return Err(GgufError::AbsurdCount {
            what,
            count: count as u64,
            most: *budget,
        });
    }
    *budget -= count as u64;
    let mut values = Vec::with_capacity(count);
    for _ in 0..count {
        values.push(read_scalar(cursor, key, number)?);
    }
    Ok(Value::Array(values))
}

/// The fewest bytes that a value of this type takes; `None` for a type that does not exist.
fn least_bytes(number: u32) -> Option<usize> {
    Some(match number {
        0 | 1 | 7 => 1,
        2 | 3 => 2,
        4..=6 => 4,
        8 | 10..=12 => 8,
        _ => return None,
    })
}

fn read_scalar(cursor: &mut Cursor<'_>, key: &str, number: u32) -> Result<Value, GgufError> {
    let what = "a metadata value";
    Ok(match number {
        0 => Value::U8(cursor.u8(what)?),
        1 => Value::I8(cursor.u8(what)? as i8),
        2 => Value::U16(u16::from_le_bytes(cursor.array(what)?)),
        3 => Value::I16(i16::from_le_bytes(cursor.array(what)?)),
        4 => Value::U32(cursor.u32(what)?),
        5 => Value::I32(cursor.u32(what)? as i32),
        6 => Value::F32(f32::from_le_bytes(cursor.array(what)?)),
        7 => match cursor.u8(what)? {
            0 => Value::Bool(false),
            1 => Value::Bool(true),
            found => {
                return Err(GgufError::BadBool {
                    key: key.to_owned(),
                    found,
                });
            }
        },
        8 => Value::String(cursor.string(what)?),
        10 => Value::U64(cursor.u64(what)?),
        11 => Value::I64(cursor.u64(what)? as i64),
        12 => Value::F64(f64::from_le_bytes(cursor.array(what)?)),
        number => {
            return Err(GgufError::UnknownValueType {
                key: key.to_owned(),
                number,
            });
        }
    })
}
