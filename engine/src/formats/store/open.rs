//! Opening a store.

use std::path::Path;

use super::StoreError;
use super::prelude::{is_store, read_prelude};
use crate::formats::gguf::GgufFile;

/// Opens a model: a store, or a GGUF file.
pub fn open_model(path: &Path) -> Result<GgufFile, StoreError> {
    if is_store(path) {
        open(path)
    } else {
        Ok(GgufFile::open(path)?)
    }
}

/// Opens a store by mapping it; its prelude, length and the model's own header are checked, its
/// weights were when it was packed ([`super::verify`] compares them with the source's hash). The
/// file must not change while it is open.
pub fn open(path: &Path) -> Result<GgufFile, StoreError> {
    let prelude = read_prelude(path)?;
    let (starts, _) = prelude.places();
    let parts = starts.iter().zip(&prelude.parts).map(|(start, part)| {
        let start = *start as usize;
        start..start + part.bytes as usize
    });
    let name = Path::new(&prelude.parts[0].name);
    Ok(GgufFile::open_packed(
        path,
        name,
        prelude.planes.clone(),
        prelude.packed_scales.iter().cloned().collect(),
        parts,
    )?)
}
