//! What git says of a repository.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::archive::sha256_hex;

/// Variables that would point git, or a build, at another repository or folder than its own.
pub(super) const MISLEADING: [&str; 6] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "CARGO_TARGET_DIR",
    "CARGO_BUILD_TARGET_DIR",
];

/// What git prints, or its complaint on one line.
pub(super) fn git(folder: &Path, args: &[&OsStr]) -> Result<Vec<u8>, String> {
    let mut command = Command::new("git");
    for name in MISLEADING {
        command.env_remove(name);
    }
    let out = command
        .arg("-C")
        .arg(folder)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("git does not start: {e}"))?;
    if out.status.success() {
        return Ok(out.stdout);
    }
    let said = String::from_utf8_lossy(&out.stderr);
    Err(said.trim().replace('\n', "; "))
}

fn line(folder: &Path, args: &[&str]) -> Result<String, String> {
    let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
    let out = git(folder, &args)?;
    Ok(String::from_utf8_lossy(&out).trim().to_owned())
}

/// The root of the repository that a folder is in.
pub(super) fn root(folder: &Path) -> Result<PathBuf, String> {
    line(folder, &["rev-parse", "--show-toplevel"]).map(PathBuf::from)
}

/// The commit that a revision names.
pub(super) fn commit(repo: &Path, rev: &str) -> Result<String, String> {
    let commit = format!("{rev}^{{commit}}");
    line(
        repo,
        &["rev-parse", "--verify", "--end-of-options", &commit],
    )
}

/// How a repository's files differ from its commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dirt {
    /// Whether they do, or untracked ones lie beside them.
    pub(super) dirty: bool,
    /// sha256 of the difference of tracked files; absent where there is none.
    pub(super) diff_sha256: Option<String>,
}

/// The state of a repository.
pub(super) fn dirt(repo: &Path) -> Result<Dirt, String> {
    let diff = ["diff", "HEAD", "--binary", "--no-ext-diff"].map(OsStr::new);
    let diff = git(repo, &diff)?;
    Ok(Dirt {
        dirty: !line(repo, &["status", "--porcelain"])?.is_empty(),
        diff_sha256: (!diff.is_empty()).then(|| sha256_hex(&diff)),
    })
}

/// Whether a folder is the root of a worktree that is at a commit.
pub(super) fn is_at(tree: &Path, commit: &str) -> bool {
    line(tree, &["rev-parse", "HEAD"]).is_ok_and(|head| head == commit)
        && root(tree).is_ok_and(|root| root.canonicalize().ok() == tree.canonicalize().ok())
}

/// Makes a worktree of a commit in a folder that is not there.
pub(super) fn add_worktree(repo: &Path, tree: &Path, commit: &str) -> Result<(), String> {
    // One that was removed by hand is still listed, and would be in the way.
    let args = ["worktree", "add", "--force", "--detach"].map(OsStr::new);
    let args: Vec<&OsStr> = args
        .into_iter()
        .chain([tree.as_os_str(), OsStr::new(commit)])
        .collect();
    git(repo, &args).map(|_| ())
}
