//! Running the program as a user does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use palindrome_harness::demo::{Profile, build_engine};
use palindrome_harness::setup::{Choice, LlamaCpp, cache_folder, ensure};

/// The checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the workspace is above")
        .to_path_buf()
}

/// The small model that is kept in the repository.
pub fn model() -> PathBuf {
    root().join("workloads/models/palindrome-small.gguf")
}

/// The bundled engine, built once a test run.
pub fn engine() -> &'static Path {
    static ENGINE: OnceLock<PathBuf> = OnceLock::new();
    ENGINE.get_or_init(|| build_engine(&root(), Profile::Dev).expect("the engine compiles"))
}

/// A real llama.cpp server, set up once a machine.
pub fn llama_cpp() -> &'static LlamaCpp {
    static SERVER: OnceLock<LlamaCpp> = OnceLock::new();
    SERVER.get_or_init(|| {
        ensure(&cache_folder(), &Choice::Default, &|step| {
            eprintln!("{step}");
        })
        .expect("a llama.cpp server can be set up here")
    })
}

/// A folder for one test: studies, archives, reports, and a lock that only it takes.
pub struct Room {
    folder: tempfile::TempDir,
}

impl Room {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("temporary folder"),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("inside the room")).expect("writable");
        fs::write(&path, text).expect("writable");
        path
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_palindrome"));
        command
            .args(args)
            .current_dir(self.folder.path())
            .env("PALINDROME_LOCK", self.path("lock"))
            .env("PALINDROME_CACHE", cache_folder())
            .env("NO_COLOR", "1")
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::of(&self.command(args).output().expect("the program starts"))
    }

    /// The only archive in `archives/`.
    pub fn archive(&self) -> PathBuf {
        self.archive_in("archives")
    }

    /// The only archive in a folder.
    pub fn archive_in(&self, folder: &str) -> PathBuf {
        let mut found: Vec<PathBuf> = fs::read_dir(self.path(folder))
            .expect("archives were made")
            .map(|entry| entry.expect("readable").path())
            .collect();
        assert_eq!(found.len(), 1, "one archive: {found:?}");
        found.remove(0)
    }
}

/// How a command went.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn of(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(
            self.code,
            Some(code),
            "stdout:\n{}\nstderr:\n{}",
            self.out,
            self.err
        );
        self
    }
}
