//! A private Python environment, made by the host's own Python.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::SetupError;
use super::cache::write_atomic;

/// Finds an executable by name on `PATH`.
pub fn on_path(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(|candidate| is_executable(candidate))
}

/// Whether a path is a file that may be executed.
pub fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// A Python of 3.10 or later, and what it calls its version.
pub fn find_python() -> Result<(PathBuf, String), SetupError> {
    for name in ["python3", "python"] {
        let Some(program) = on_path(name) else {
            continue;
        };
        let script = "import sys; print('%d.%d.%d' % sys.version_info[:3]); \
                      sys.exit(sys.version_info < (3, 10))";
        let Ok(out) = Command::new(&program).args(["-c", script]).output() else {
            continue;
        };
        if out.status.success() {
            return Ok((
                program,
                String::from_utf8_lossy(&out.stdout).trim().to_owned(),
            ));
        }
    }
    Err(SetupError::NoPython)
}

/// Whether this Python can make environments with pip in them; the error says what is missing.
pub fn check_venv(python: &Path) -> Result<(), SetupError> {
    let out = Command::new(python)
        .args(["-c", "import venv, ensurepip"])
        .output()
        .map_err(SetupError::io("run", python))?;
    if out.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&out.stderr);
    Err(SetupError::NoVenv {
        python: python.to_path_buf(),
        detail: text.lines().last().unwrap_or("no message").to_owned(),
    })
}

/// Makes a virtual environment at `folder` and gives its Python.
pub(super) fn make_venv(python: &Path, folder: &Path) -> Result<PathBuf, SetupError> {
    check_venv(python)?;
    let out = Command::new(python)
        .args(["-m", "venv"])
        .arg(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(SetupError::io("run", python))?;
    if !out.status.success() {
        let mut text = String::from_utf8_lossy(&out.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&out.stderr));
        return Err(SetupError::NoVenv {
            python: python.to_path_buf(),
            detail: text.split_whitespace().collect::<Vec<_>>().join(" "),
        });
    }
    Ok(folder.join("bin/python"))
}

/// Installs what `list` names, with hashes, into an environment of `folder`. The list and pip's
/// output, as `pip-WHAT.log`, are kept in `folder`.
pub(super) fn pip(
    python: &Path,
    folder: &Path,
    what: &str,
    list: &str,
    options: &[&str],
) -> Result<(), SetupError> {
    let requirements = folder.join(format!("pip-{what}.txt"));
    write_atomic(&requirements, list.as_bytes())?;
    let log = &folder.join(format!("pip-{what}.log"));
    let file = File::create(log).map_err(SetupError::io("create", log))?;
    let errors = file.try_clone().map_err(SetupError::io("open", log))?;
    // Programs that an earlier step put into the environment come first.
    let programs = python.parent().unwrap_or(Path::new(""));
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(programs.to_path_buf()).chain(std::env::split_paths(&inherited));
    let path = std::env::join_paths(folders).unwrap_or(inherited);
    let mut command = Command::new(python);
    // The source package asks for as many compilers as it has files; ninja keeps to the cores
    // where make would fill the memory.
    if std::env::var_os("CMAKE_GENERATOR").is_none() && programs.join("ninja").is_file() {
        command.env("CMAKE_GENERATOR", "Ninja");
    }
    let status = command
        .env("PATH", path)
        .args(["-m", "pip", "--disable-pip-version-check", "--no-input"])
        .args(["install", "--no-deps", "--require-hashes"])
        .args(options)
        .arg("-r")
        .arg(&requirements)
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(errors)
        .status()
        .map_err(SetupError::io("run", python))?;
    if status.success() {
        return Ok(());
    }
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let tail = lines[lines.len().saturating_sub(15)..].join("\n");
    Err(SetupError::Pip {
        what: what.to_owned(),
        log: log.clone(),
        tail,
    })
}
