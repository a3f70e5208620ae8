//! The hash of a file.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::progress::progress;
use crate::cli::failure::Failure;
use crate::hex::hex;

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
    fn a_known_hash() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"a").unwrap();
        assert_eq!(
            sha256(file.path()).unwrap(),
            "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
        );
    }
}
