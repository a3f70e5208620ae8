//! Real archives in memory, mutated on disk and put back.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use palindrome_harness::archive::{Archive, PublicKey, list_files};
use palindrome_harness::audit::{Mismatch, audit_with};
use palindrome_harness::derive::derive;

use super::common::Bench;

/// An archive's files by path.
pub type Files = BTreeMap<String, Vec<u8>>;

/// SplitMix64 (Steele, Lea, Flood 2014): seeded, so a failure repeats.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// A changed archive: what was done, the files after it, and what a mismatch must say (one of these,
/// in `file field: what`).
pub struct Mutation {
    pub what: String,
    pub files: Files,
    pub says: Vec<String>,
}

/// A copy of a real archive that mutations are tried on, one after the other.
pub struct Sample {
    pub name: String,
    pub files: Files,
    pub path: PathBuf,
    _root: tempfile::TempDir,
}

impl Sample {
    pub fn of(archive: &Path) -> Self {
        let root = tempfile::tempdir().unwrap();
        let name = archive.file_name().unwrap().to_string_lossy().into_owned();
        let path = root.path().join(&name);
        let files: Files = list_files(archive)
            .unwrap()
            .into_iter()
            .map(|file| (file.clone(), fs::read(archive.join(file)).unwrap()))
            .collect();
        fs::create_dir(&path).unwrap();
        put(&path, &Files::new(), &files);
        Self {
            name,
            files,
            path,
            _root: root,
        }
    }

    /// The archives that are kept in the repository, of formats 1.0 and 1.1, and a study of this
    /// program's newest format, run here and now over real processes and sockets.
    pub fn all() -> Vec<Self> {
        let mut all = vec![fresh()];
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../archives");
        let mut kept: Vec<PathBuf> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.join("SEAL").is_file())
            .collect();
        kept.sort();
        all.extend(kept.iter().map(|path| Self::of(path)));
        all
    }

    /// Looks at the sample as mutated; it is put back as it was.
    pub fn with<T>(&self, mutated: &Files, look: impl FnOnce() -> T) -> T {
        put(&self.path, &self.files, mutated);
        let seen = look();
        put(&self.path, mutated, &self.files);
        seen
    }

    /// What an audit finds after a mutation.
    pub fn audit(&self, mutated: &Files, key: Option<&PublicKey>) -> Vec<Mismatch> {
        self.with(mutated, || match audit_with(&self.path, key) {
            Ok(audit) => audit.mismatches,
            // Without a plan there is no archive: the refusal says so.
            Err(error) => vec![Mismatch {
                file: "plan.json".into(),
                field: String::new(),
                what: error.to_string(),
            }],
        })
    }

    /// Tries mutations: each must change something and be caught, by a mismatch that says what is
    /// expected of it. Returns how many there were.
    pub fn try_all(&self, mutations: impl IntoIterator<Item = Mutation>) -> usize {
        let mut tried = 0;
        for mutation in mutations {
            let what = format!("{}: {}", self.name, mutation.what);
            assert_ne!(mutation.files, self.files, "{what}: nothing was changed");
            let found = self.audit(&mutation.files, None);
            assert!(!found.is_empty(), "{what}: not caught");
            let said: Vec<String> = found.iter().map(ToString::to_string).collect();
            let names = |expected: &String| said.iter().any(|s| s.contains(expected.as_str()));
            assert!(
                mutation.says.iter().any(names),
                "{what}: nothing says {:?}:\n{}",
                mutation.says,
                said.join("\n")
            );
            tried += 1;
        }
        // The sample was put back.
        assert_eq!(self.audit(&self.files, None), []);
        tried
    }

    pub fn archive(&self) -> Archive {
        Archive::open(&self.path).unwrap()
    }

    /// Files whose names end so.
    pub fn ending(&self, end: &str) -> Vec<String> {
        let ends = |file: &&String| file.ends_with(end);
        self.files.keys().filter(ends).cloned().collect()
    }

    /// Names of the sessions' folders, in order.
    pub fn sessions(&self) -> Vec<String> {
        let parts = self.ending("/session.json").into_iter();
        parts
            .map(|f| f.split('/').nth(1).unwrap().to_owned())
            .collect()
    }
}

/// Makes a folder that holds `before` hold `after`.
fn put(folder: &Path, before: &Files, after: &Files) {
    for file in before.keys().filter(|file| !after.contains_key(*file)) {
        let path = folder.join(file);
        fs::remove_file(&path).unwrap();
        // Folders that are empty now; one that is not stays.
        let mut up = path.parent();
        while let Some(parent) = up.filter(|p| *p != folder) {
            if fs::remove_dir(parent).is_err() {
                break;
            }
            up = parent.parent();
        }
    }
    for (file, bytes) in after {
        if before.get(file) != Some(bytes) {
            let path = folder.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
    }
}

/// One quartet over the scripted server: five sessions of two requests.
pub fn fresh() -> Sample {
    let bench = Bench::new(
        "seed = 7\nidentity = \"exact\"",
        "",
        &[
            "[[reply]]\nprompt_ms = 2\ntokens = 6\ngap_ms = 2\n",
            "[[reply]]\nprompt_ms = 2\ntokens = 6\ngap_ms = 3\n",
        ],
    );
    let writer = bench.run().unwrap();
    let figures = derive(&Archive::open(writer.path()).unwrap().facts().unwrap());
    Sample::of(&writer.seal(&figures).unwrap())
}

#[test]
fn an_untouched_archive_says_nothing_whatever_is_put_back() {
    for sample in Sample::all() {
        assert_eq!(sample.audit(&sample.files, None), [], "{}", sample.name);
        let mut again = sample.files.clone();
        super::forge::reseal(&mut again);
        for (file, bytes) in &sample.files {
            assert_eq!(again.get(file), Some(bytes), "resealing changed {file}");
        }
        assert_eq!(again.len(), sample.files.len());
    }
}
