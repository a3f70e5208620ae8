//! Tensor descriptions: where each tensor's data lies, checked against the file's length.

use super::cursor::Cursor;
use super::{GgufError, Metadata, TensorInfo, Value};
use crate::formats::blocks::{GgmlType, ggml_type_name};

const MAX_DIMS: u32 = 4;
const DEFAULT_ALIGNMENT: u64 = 32;

/// `general.alignment`, or the format's default of 32.
pub(super) fn alignment(metadata: &Metadata) -> Result<u64, GgufError> {
    let Some(value) = metadata.get("general.alignment") else {
        return Ok(DEFAULT_ALIGNMENT);
    };
    let found = value.integer().filter(|_| !matches!(value, Value::Bool(_)));
    match found.and_then(|a| u64::try_from(a).ok()) {
        Some(a) if a.is_power_of_two() && a <= 1 << 30 => Ok(a),
        _ => Err(GgufError::BadAlignment {
            found: value.describe(),
        }),
    }
}

/// Reads `count` descriptions; offsets become relative to the part's first byte.
pub(super) fn read(
    cursor: &mut Cursor<'_>,
    count: usize,
    alignment: u64,
    part: usize,
    file_len: u64,
) -> Result<Vec<TensorInfo>, GgufError> {
    let mut tensors = Vec::with_capacity(count);
    let mut relative = Vec::with_capacity(count);
    for i in 0..count {
        let (info, offset) = read_one(cursor, i, alignment, part)?;
        tensors.push(info);
        relative.push(offset);
    }
    let data_start = (cursor.offset() as u64).next_multiple_of(alignment);
    for (info, offset) in tensors.iter_mut().zip(relative) {
        let start = data_start.checked_add(offset);
        let end = start.and_then(|s| s.checked_add(info.len as u64));
        match (start, end) {
            (Some(start), Some(end)) if end <= file_len => info.offset = start as usize,
            _ => {
                return Err(GgufError::TensorPastEnd {
                    name: info.name.clone(),
                    offset: data_start.saturating_add(offset),
                    len: info.len as u64,
                    file_len,
                });
            }
        }
    }
    refuse_overlap(&tensors)?;
    Ok(tensors)
}

/// One description, with its offset still relative to the data section.
fn read_one(
    cursor: &mut Cursor<'_>,
    i: usize,
    alignment: u64,
    part: usize,
) -> Result<(TensorInfo, u64), GgufError> {
    let name = cursor.string(&format!("the name of tensor {i}"))?;
    let what = format!("the description of tensor `{name}`");
    let count = cursor.u32(&what)?;
    if !(1..=MAX_DIMS).contains(&count) {
        return Err(GgufError::BadDimCount { name, count });
    }
    let mut dims = Vec::with_capacity(count as usize);
    for _ in 0..count {
        dims.push(cursor.u64(&what)?);
    }
    let number = cursor.u32(&what)?;
    let offset = cursor.u64(&what)?;
    if dims.contains(&0) {
        return Err(GgufError::ZeroDim { name, dims });
    }
    let Some(ty) = GgmlType::from_number(number) else {
        let ty = match ggml_type_name(number) {
            Some(known) => format!("of type {known}"),
            None => format!("of the unknown type {number}"),
        };
        return Err(GgufError::UnsupportedType { name, ty });
    };
    let block = ty.block_len();
    let cols = dims[0];
    if cols % block as u64 != 0 {
        return Err(GgufError::PartialBlock {
            name,
            cols,
            ty: ty.name(),
            block,
        });
    }
    let bytes = byte_len(ty, &dims);
    let Some(len) = bytes else {
        return Err(GgufError::TooManyElements { name, dims });
    };
    if offset % alignment != 0 {
        return Err(GgufError::Unaligned {
            name,
            offset,
            alignment,
        });
    }
    Ok((
        TensorInfo {
            name,
            ty,
            dims,
            part,
            offset: 0,
            len,
        },
        offset,
    ))
}

/// Bytes of a whole tensor; `None` on overflow.
fn byte_len(ty: GgmlType, dims: &[u64]) -> Option<usize> {
    let row = ty.row_bytes(usize::try_from(dims[0]).ok()?)?;
    dims[1..]
        .iter()
        .try_fold(row, |len, d| len.checked_mul(usize::try_from(*d).ok()?))
}

fn refuse_overlap(tensors: &[TensorInfo]) -> Result<(), GgufError> {
    let mut order: Vec<&TensorInfo> = tensors.iter().collect();
    order.sort_by_key(|t| t.offset);
    for pair in order.windows(2) {
        if pair[0].offset + pair[0].len > pair[1].offset {
            return Err(GgufError::Overlap {
                first: pair[0].name.clone(),
                second: pair[1].name.clone(),
            });
        }
    }
    Ok(())
}
