//! Where an arm is built, and what is known of it before it is.

use std::env;
use std::path::{Path, PathBuf};

use super::BuildError;
use super::git::{self, Dirt};
use crate::archive::{sha256_hex, short, slug};
use crate::study::{Arm, Recipe};

/// Variables that change what common builds make: a build is found again only under the same ones.
const BUILD_VARIABLES: [&str; 12] = [
    "AR",
    "CC",
    "CFLAGS",
    "CMAKE_ARGS",
    "CMAKE_GENERATOR",
    "CPPFLAGS",
    "CXX",
    "CXXFLAGS",
    "LDFLAGS",
    "RUSTC_WRAPPER",
    "RUSTFLAGS",
    "RUSTUP_TOOLCHAIN",
];

/// Where an arm is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Arm name.
    pub arm: String,
    /// The build's command; none where a revision is only checked out.
    pub command: Vec<String>,
    /// The root of the repository, or a folder that is in none.
    pub repo: PathBuf,
    /// As written; absent where the repository is built as it lies.
    pub rev: Option<String>,
    /// The commit; absent where there is no repository.
    pub commit: Option<String>,
    /// The folder that is built in.
    pub tree: PathBuf,
    /// What the build prints.
    pub log: PathBuf,
    /// The program that is launched; absent for a command.
    pub program: Option<PathBuf>,
    /// State of files that are built as they lie.
    pub(super) dirt: Option<Dirt>,
    /// Where lock and record lie, less their extension.
    pub(super) stem: PathBuf,
}

impl Site {
    /// The place of an arm's build below `builds`; asks git, and changes nothing.
    pub(super) fn of(arm: &Arm, recipe: &Recipe, builds: &Path) -> Result<Self, BuildError> {
        let root = git::root(&recipe.repo);
        let command = recipe.command.clone();
        let (repo, commit, dirt) = match (&recipe.rev, root) {
            (Some(rev), Ok(repo)) => {
                let commit = git::commit(&repo, rev).map_err(|said| BuildError::NoCommit {
                    arm: arm.name.clone(),
                    rev: rev.clone(),
                    repo: repo.clone(),
                    said,
                })?;
                (repo, Some(commit), None)
            }
            (Some(_), Err(said)) => {
                return Err(BuildError::NoRepository {
                    arm: arm.name.clone(),
                    folder: recipe.repo.clone(),
                    said,
                });
            }
            // A repository without a commit, or none at all, is built as a folder.
            (None, Ok(repo)) => {
                let commit = git::commit(&repo, "HEAD").ok();
                let dirt = git::dirt(&repo).ok();
                (repo, commit, dirt)
            }
            (None, Err(_)) => (recipe.repo.clone(), None, None),
        };
        let key = key(
            &repo,
            commit.as_deref().filter(|_| recipe.rev.is_some()),
            &command,
        );
        let name = repo.file_name().map(|n| slug(&n.to_string_lossy()));
        // Without dots, so that extensions can be put behind it.
        let name = name.map_or_else(|| "repository".to_owned(), |name| name.replace('.', "-"));
        let at = match &commit {
            Some(commit) if recipe.rev.is_some() => short(commit),
            _ => "here",
        };
        let stem = builds.join(format!("{name}-{at}-{}", &key[..8]));
        let tree = match &recipe.rev {
            Some(_) => stem.join("tree"),
            None => repo.clone(),
        };
        Ok(Self {
            arm: arm.name.clone(),
            command,
            rev: recipe.rev.clone(),
            commit,
            log: stem.with_extension("log"),
            program: recipe.program.as_ref().map(|program| tree.join(program)),
            tree,
            repo,
            dirt,
            stem,
        })
    }

    /// The command as one line.
    pub fn command_line(&self) -> String {
        self.command.join(" ")
    }

    /// `HEAD~3 (commit 0123456789ab)`, or how the repository lies there.
    pub fn what(&self) -> String {
        let commit = self.commit.as_deref().map(short);
        match (&self.rev, commit) {
            (Some(rev), Some(commit)) => format!("{rev} (commit {commit})"),
            (_, Some(commit)) => {
                let dirty = self.dirt.as_ref().is_some_and(|d| d.dirty);
                let changed = if dirty { ", with changes" } else { "" };
                format!("the repository as it lies (commit {commit}{changed})")
            }
            (_, None) => "the folder as it lies".to_owned(),
        }
    }
}

/// What a build is found again by.
fn key(repo: &Path, commit: Option<&str>, command: &[String]) -> String {
    let mut all = vec![
        repo.display().to_string(),
        commit.unwrap_or_default().to_owned(),
    ];
    all.extend(command.iter().cloned());
    for name in BUILD_VARIABLES {
        if let Some(value) = env::var_os(name) {
            all.push(format!("{name}={}", value.to_string_lossy()));
        }
    }
    sha256_hex(all.join("\0").as_bytes())
}
