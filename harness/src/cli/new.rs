//! `palindrome new`: a study file to start from.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::args::NewArgs;
use super::{Exit, Failure};
use crate::study::{SAMPLE_BODIES, study_schema};

/// The starter; `NAME` stands for its name.
const STUDY: &str = include_str!("starter/study.toml");
/// The timeline of its scripted server.
const MOCK: &str = include_str!("starter/mock.toml");

/// Writes the starter and what it needs; nothing that is there is touched.
pub fn new_study(args: &NewArgs) -> Result<Exit, Failure> {
    let refuse = |what: String| Failure::new(Exit::Usage, what);
    let path = if args.name.extension().is_some_and(|e| e == "toml") {
        args.name.clone()
    } else {
        let mut name = args.name.clone().into_os_string();
        name.push(".toml");
        PathBuf::from(name)
    };
    let name = path.file_stem().map(|n| n.to_string_lossy().into_owned());
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let Some(name) = name.filter(|n| n.chars().all(plain) && !n.starts_with('.')) else {
        return Err(refuse(format!(
            "{} is no name for a study: letters, digits, `.`, `_` and `-`, as in {}",
            path.display(),
            path.with_file_name("flash-attention.toml").display()
        )));
    };
    let beside = path.with_file_name(&name);
    let study = STUDY.replace("NAME", &name);
    let schema = study_schema();
    let mut files = vec![(path.clone(), study.as_str())];
    files.push((beside.join("mock.toml"), MOCK));
    files.push((beside.join("study.schema.json"), &schema));
    for (name, body) in SAMPLE_BODIES {
        files.push((beside.join(name), body));
    }
    if let Some((there, _)) = files.iter().find(|(file, _)| file.exists()) {
        return Err(refuse(format!(
            "{} is there already and stays as it is; give another name, or remove it",
            there.display()
        )));
    }
    // The study last: where it is, the rest is too.
    for (file, text) in files.iter().rev() {
        write_new(file, text)
            .map_err(|e| refuse(format!("cannot write {}: {e}", file.display())))?;
    }
    println!("{}", path.display());
    eprintln!(
        "with its requests in {}/; see what it would do: palindrome run --dry-run {}",
        beside.display(),
        path.display()
    );
    Ok(Exit::Done)
}

fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    File::create_new(path)?.write_all(text.as_bytes())
}
