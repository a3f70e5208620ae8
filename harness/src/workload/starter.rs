//! A study over a folder of bodies, to be filled in: which bodies, where they go, and when they came.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::folder::{STARTER, Saved, write_whole};
use super::{Folder, IndexLine, WorkloadError};

/// Where bodies go of which nothing is known.
const CHAT: &str = "/v1/chat/completions";

/// The text of a study file that lies in the folder. Bodies that were posted elsewhere than most
/// are left out, and said to be.
pub fn starter(folder: &Folder) -> String {
    let path_of = |body: &Saved| {
        body.line
            .as_ref()
            .map_or(CHAT.to_owned(), |line| plain(&line.path))
    };
    let mut paths: BTreeMap<String, usize> = BTreeMap::new();
    for body in &folder.bodies {
        *paths.entry(path_of(body)).or_default() += 1;
    }
    let most = paths.iter().max_by_key(|(_, n)| **n);
    let path = most.map_or(CHAT.to_owned(), |(path, _)| path.clone());
    let (here, elsewhere): (Vec<&Saved>, Vec<&Saved>) =
        folder.bodies.iter().partition(|b| path_of(b) == path);
    let times: Option<Vec<f64>> = here
        .iter()
        .map(|body| body.line.as_ref().and_then(|line| line.at_s))
        .collect();
    let mut out = String::from(
        "# A study over the bodies of this folder: say what is compared, then `palindrome run` this file.\n\
         # Paths are relative to it.\n",
    );
    let head = folder.head.as_ref();
    if let Some(head) = head {
        let _ = writeln!(
            out,
            "# Made by `{}` from {} at {}.",
            head.made_by, head.from, head.utc
        );
    }
    for assumed in head.iter().flat_map(|head| &head.assumed) {
        let _ = writeln!(out, "# {assumed}");
    }
    for body in &here {
        if let Some(IndexLine { redacted, .. }) =
            body.line.as_ref().filter(|line| !line.redacted.is_empty())
        {
            let _ = writeln!(
                out,
                "# {}: no longer byte for byte, {} secret(s) redacted",
                body.file,
                redacted.len()
            );
        }
    }
    for body in &elsewhere {
        let _ = writeln!(
            out,
            "# Left out, posted to {}: {}",
            path_of(body),
            body.file
        );
    }
    out.push_str(
        "name = \"recorded\"\nquartets = 3\n\n\
         [[arm]]\nname = \"A\"\nkind = \"openai\"\ncommand = [\"PROGRAM\", \"--port\", \"{port}\"]\n\n\
         [[arm]]\nname = \"B\"\nkind = \"openai\"\ncommand = [\"ANOTHER\", \"--port\", \"{port}\"]\n\n",
    );
    if let Some(times) = times.filter(|times| !times.is_empty() && times.is_sorted()) {
        // Without this table: one body after the other.
        let first = times[0];
        let times: Vec<String> = times
            .iter()
            .map(|at| format!("{:.3}", at - first))
            .collect();
        out.push_str("[protocol] # each body when it came; without this table one after the other\nkind = \"arrivals\"\n");
        let _ = write!(out, "arrivals_s = [{}]\n\n", wrapped(&times));
    }
    let names: Vec<String> = here
        .iter()
        .map(|body| format!("\"{}\"", body.file))
        .collect();
    let _ = write!(
        out,
        "[workload]\npath = \"{path}\"\nexpect_cached = \"any\" # bodies may begin alike\nbodies = [{}]\n",
        wrapped(&names)
    );
    out
}

/// Writes the study of a folder into it; where.
pub fn write_starter(folder: &Path) -> Result<PathBuf, WorkloadError> {
    let path = folder.join(STARTER);
    write_whole(&path, starter(&Folder::read(folder)?).as_bytes())?;
    Ok(path)
}

/// A path without its query, which may hold secrets.
fn plain(path: &str) -> String {
    path.split('?').next().unwrap_or(path).to_owned()
}

/// Items in lines of ten.
fn wrapped(items: &[String]) -> String {
    let lines: Vec<String> = items.chunks(10).map(|line| line.join(", ")).collect();
    if lines.len() > 1 {
        format!("\n  {},\n", lines.join(",\n  "))
    } else {
        lines.concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::StudyFile;

    fn body(number: u32, path: &str, at_s: Option<f64>) -> Saved {
        let file = format!("{number:05}.json");
        let line = IndexLine {
            number,
            file: Some(file.clone()),
            at_s,
            path: path.into(),
            ..IndexLine::default()
        };
        Saved {
            file,
            line: Some(line),
        }
    }

    #[test]
    fn a_starter_is_a_study_with_the_bodies_of_the_commonest_path() {
        let mut folder = Folder {
            bodies: vec![
                body(1, "/v1/completions", Some(0.0)),
                body(2, "/v1/chat/completions?x=1", Some(0.5)),
                body(3, CHAT, Some(2.25)),
            ],
            ..Folder::default()
        };
        let text = starter(&folder);
        assert!(
            text.contains("# Left out, posted to /v1/completions: 00001.json\n"),
            "{text}"
        );
        assert!(text.contains("arrivals_s = [0.000, 1.750]\n"), "{text}");
        let study = StudyFile::parse(Path::new("study.toml"), &text).unwrap();
        assert_eq!(study.workload.path.as_ref(), CHAT);
        let names: Vec<&str> = study
            .workload
            .bodies
            .as_ref()
            .iter()
            .map(|b| b.as_ref().as_str())
            .collect();
        assert_eq!(names, ["00002.json", "00003.json"]);
        folder.bodies = (1..=23).map(|n| body(n, CHAT, None)).collect();
        let text = starter(&folder);
        assert!(!text.contains("[protocol]"));
        let study = StudyFile::parse(Path::new("study.toml"), &text).unwrap();
        assert_eq!(study.workload.bodies.as_ref().len(), 23);
    }
}
