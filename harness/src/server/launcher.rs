//! What an adapter is asked: how its server is started and where it says that it is ready.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{LaunchError, ServerKind};
use crate::setup::LlamaCpp;
use crate::study::Arm;

/// What adapters may need beyond the arm itself.
#[derive(Clone, Debug, Default)]
pub struct Programs {
    /// The bundled engine's binary.
    pub engine: Option<PathBuf>,
    /// A llama.cpp server that was set up.
    pub llama_cpp: Option<LlamaCpp>,
    /// This program's own binary: runs the mock, and ties servers' lives to ours.
    pub palindrome: Option<PathBuf>,
}

/// A launch about to happen.
#[derive(Clone, Copy, Debug)]
pub struct LaunchContext<'a> {
    /// Which arm.
    pub arm: &'a Arm,
    /// A free loopback port.
    pub port: u16,
    /// Where programs are.
    pub programs: &'a Programs,
}

/// What to execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandSpec {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// The file that holds the server's code, where the program is only an interpreter.
    pub binary: PathBuf,
    /// What is known of the build.
    pub build: BTreeMap<String, String>,
    /// The route that answers 200 once ready.
    pub health: String,
}

/// An adapter.
pub trait Launcher: Sync {
    /// The command for this arm on this port. Errors say what is missing and how to get it.
    fn command(&self, context: &LaunchContext<'_>) -> Result<CommandSpec, LaunchError>;
}

/// The adapter of a kind.
pub fn launcher(kind: ServerKind) -> &'static dyn Launcher {
    match kind {
        ServerKind::LlamaCpp => &super::adapters::LlamaCppServer,
        ServerKind::PalindromeEngine => &super::adapters::PalindromeEngine,
        ServerKind::Openai => &super::adapters::OpenAiServer,
        ServerKind::Mock => &super::adapters::MockServer,
    }
}

/// A program by path, or by name through `PATH`.
pub(super) fn find_program(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_path_buf());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|f| f.join(program))
        .find(|p| p.is_file())
}
