//! The hash of a model's files.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::progress::progress;
use crate::cli::failure::Failure;
use crate::hex::hex;

/// All parts of `NAME-00001-of-0000N.gguf`, or the file alone.
pub(super) fn parts(path: &Path) -> Vec<PathBuf> {
    let split = || {
        let stem = path.file_name()?.to_str()?.strip_suffix(".gguf")?;
        let (head, count) = stem.rsplit_once("-of-")?;
        let (name, _) = head.rsplit_once('-')?;
        let total: u32 = count.parse().ok()?;
        Some(
            (1..=total)
                .map(|part| path.with_file_name(format!("{name}-{part:05}-of-{count}.gguf")))
                .collect::<Vec<_>>(),
        )
    };
    match split() {
        Some(parts) if parts.iter().all(|part| part.exists()) => parts,
        _ => vec![path.to_owned()],
    }
}

/// Of one file, in lowercase hex.
pub(super) fn sha256(path: &Path) -> Result<String, Failure> {
    let mut file = File::open(path)?;
    let bar = progress(file.metadata()?.len(), "sha256");
    let mut hasher = Sha256::new();
    let mut buffer = vec![0u8; 1 << 20];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        hasher.update(&buffer[..read]);
        bar.inc(read as u64);
    }
    bar.finish_and_clear();
    Ok(hex(&hasher.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_split_file_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let name = |part: u32| folder.path().join(format!("m-{part:05}-of-00002.gguf"));
        std::fs::write(name(1), b"a").unwrap();
        assert_eq!(parts(&name(1)), vec![name(1)]);
        std::fs::write(name(2), b"b").unwrap();
        assert_eq!(parts(&name(1)), vec![name(1), name(2)]);
        assert_eq!(
            sha256(&name(1)).unwrap(),
            "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
        );
    }
}
