//! Other inference servers that run.

use std::fs;

/// Programs that would share the machine with a server under test.
const INFERENCE_SERVERS: &[&str] = &[
    "llama-server",
    "llama-cli",
    "palindrome-engine",
    "ollama",
    "vllm",
    "koboldcpp",
    "llamafile",
    "text-generation",
    "sglang",
    "tabbyapi",
];

/// Other processes whose program, or whose script for an interpreter, is a known server.
pub(super) fn running_servers() -> Vec<(String, u32)> {
    let Ok(folder) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in folder.flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|n| n.parse::<u32>().ok())
        else {
            continue;
        };
        if pid == std::process::id() {
            continue;
        }
        let Ok(command) = fs::read(entry.path().join("cmdline")) else {
            continue;
        };
        let args: Vec<String> = command
            .split(|b| *b == 0)
            .map(|a| String::from_utf8_lossy(a).into_owned())
            .collect();
        if let Some(name) = server_name(&args) {
            found.push((name, pid));
        }
    }
    found.sort();
    found
}

/// The server's name in a command line: its program, or an interpreter's first script or module.
fn server_name(args: &[String]) -> Option<String> {
    let base = |arg: &str| arg.rsplit('/').next().unwrap_or(arg).to_owned();
    let program = base(args.first()?);
    let candidate = if program.starts_with("python") {
        let rest = &args[1..];
        match rest.iter().position(|a| a == "-m") {
            Some(at) => rest.get(at + 1).cloned(),
            None => rest.iter().find(|a| !a.starts_with('-')).map(|a| base(a)),
        }?
    } else {
        program
    };
    let stem = candidate.split('.').next().unwrap_or(&candidate).to_owned();
    INFERENCE_SERVERS
        .iter()
        .any(|s| stem == *s || stem.starts_with(&format!("{s}-")))
        .then_some(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn servers_are_known_by_program_or_script() {
        let name = |line: &str| server_name(&args(line));
        assert_eq!(
            name("/opt/llama.cpp/llama-server -m x"),
            Some("llama-server".into())
        );
        assert_eq!(
            name("python3 -m vllm.entrypoints.openai"),
            Some("vllm".into())
        );
        assert_eq!(
            name("/usr/bin/python3 -u /opt/sglang.py"),
            Some("sglang".into())
        );
        assert_eq!(name("ollama serve"), Some("ollama".into()));
        assert_eq!(name("vim llama-server.log"), None);
        assert_eq!(name("grep ollama"), None);
    }
}
