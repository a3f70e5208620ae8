//! Names and bookkeeping of split files (llama.cpp's `gguf-split`).

use std::path::{Path, PathBuf};

use super::{GgufError, Metadata};

/// `NAME-00002-of-00003.gguf` taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SplitName {
    prefix: String,
    pub(super) count: usize,
}

impl SplitName {
    pub(super) fn parse(path: &Path) -> Option<Self> {
        let stem = path.file_name()?.to_str()?.strip_suffix(".gguf")?;
        let (rest, count) = stem.rsplit_once("-of-")?;
        let (prefix, part) = rest.rsplit_once('-')?;
        let number = |s: &str| -> Option<usize> {
            (s.len() == 5 && s.bytes().all(|b| b.is_ascii_digit())).then(|| s.parse().ok())?
        };
        let (part, count) = (number(part)?, number(count)?);
        (1..=count).contains(&part).then(|| Self {
            prefix: prefix.to_owned(),
            count,
        })
    }

    /// The path of part `i`, counted from 0, beside `path`.
    pub(super) fn part(&self, path: &Path, i: usize) -> PathBuf {
        path.with_file_name(format!(
            "{}-{:05}-of-{:05}.gguf",
            self.prefix,
            i + 1,
            self.count
        ))
    }
}

/// Checks `split.no` and `split.count` of part `i` of `count`.
pub(super) fn check_part(
    path: &Path,
    metadata: &Metadata,
    i: usize,
    count: usize,
) -> Result<(), GgufError> {
    check_key(path, metadata, "split.no", i as u64)?;
    check_key(path, metadata, "split.count", count as u64)
}

/// Checks one integer key against what it must be; absent is as wrong as different.
pub(super) fn check_key(
    path: &Path,
    metadata: &Metadata,
    key: &'static str,
    expected: u64,
) -> Result<(), GgufError> {
    let value = metadata.get(key);
    if value.and_then(super::Value::integer) == Some(i128::from(expected)) {
        return Ok(());
    }
    let found = value.map_or_else(|| "missing".to_owned(), super::Value::describe);
    Err(GgufError::SplitMismatch {
        path: path.to_owned(),
        key,
        found,
        expected,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_parts() {
        let path = Path::new("/m/big-00002-of-00003.gguf");
        let name = SplitName::parse(path).expect("a split name");
        assert_eq!(name.count, 3);
        assert_eq!(name.part(path, 0), Path::new("/m/big-00001-of-00003.gguf"));
        for other in [
            "x.gguf",
            "x-1-of-3.gguf",
            "x-00004-of-00003.gguf",
            "x-00000-of-00001.gguf",
        ] {
            assert_eq!(SplitName::parse(Path::new(other)), None, "{other}");
        }
    }
}
