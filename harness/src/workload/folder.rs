//! A workload's folder: numbered bodies, `index.jsonl` beside them, and `answers.jsonl` where the
//! bodies were recorded.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::archive::sha256_hex;

/// Version of `index.jsonl` and `answers.jsonl`, `major.minor`.
pub const SCHEMA: &str = "1.0";
/// One line a body, after a head.
pub(super) const INDEX: &str = "index.jsonl";
/// One line an answer, in the order in which they ended.
pub(super) const ANSWERS: &str = "answers.jsonl";
/// A study over the folder, to be filled in.
pub(super) const STARTER: &str = "study.toml";

/// A workload that cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// The folder holds something already.
    #[error(
        "{0} is not empty, and nothing in it is overwritten: name a folder that is new or empty"
    )]
    NotEmpty(PathBuf),
    /// The system refused.
    #[error("cannot {what} {path}: {source}")]
    Io {
        /// A verb.
        what: &'static str,
        /// What it was about.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{path}:{line}: {message}")]
    Line {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong and what would be right.
        message: String,
    },
    /// Something else that the user can put right.
    #[error("{0}")]
    Wrong(String),
}

impl WorkloadError {
    /// An error of the system about a file.
    pub(super) fn io<'a>(
        what: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(io::Error) -> Self + use<'a> {
        move |source| Self::Io {
            what,
            path: path.to_path_buf(),
            source,
        }
    }
}

/// First line of `index.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexHead {
    /// `major.minor`.
    pub schema: String,
    /// `record`, or `import sharegpt` and so on.
    pub made_by: String,
    /// When, in UTC.
    pub utc: String,
    /// The server or file that it comes from.
    pub from: String,
    /// What was not known and is taken to be so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumed: Vec<String>,
}

/// A further line of `index.jsonl`: one body, or one that was not kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IndexLine {
    /// Number of the request, from 1, in the order of arrival.
    pub number: u32,
    /// File name; absent where the body was not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Seconds since the first one arrived; absent where the source has no times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_s: Option<f64>,
    /// Where it was posted.
    pub path: String,
    /// Size as it came, before anything was redacted.
    pub bytes: u64,
    /// sha256 of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// What was replaced in it; absent where the file is byte for byte what came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redacted: Vec<String>,
    /// Why it was not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
    /// Line of the imported file on which it begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_line: Option<usize>,
}

/// A line of `answers.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnswerLine {
    /// Number of the request.
    pub number: u32,
    /// HTTP status; absent where none came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Bytes of the answer's body that were passed on.
    pub bytes: u64,
    /// From the request's first byte to the answer's last.
    pub wall_s: f64,
    /// `whole`, or what cut it off.
    pub ended: String,
}

/// A body as it is in a folder.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    /// File name.
    pub file: String,
    /// What the index says; absent where it says nothing.
    pub line: Option<IndexLine>,
}

/// A folder as read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Folder {
    /// Where it is.
    pub path: PathBuf,
    /// The index's head; absent in a folder of plain files.
    pub head: Option<IndexHead>,
    /// Bodies, in the order of their names (which the numbers make the order of arrival).
    pub bodies: Vec<Saved>,
    /// Requests of which no body was kept.
    pub left_out: Vec<IndexLine>,
    /// What is odd about the folder, in words.
    pub notes: Vec<String>,
}

/// Name of the body with a number, from 1.
pub(super) fn body_name(number: u32) -> String {
    format!("{number:05}.json")
}

/// Makes the folder, which must be new or empty.
pub(super) fn claim(path: &Path) -> Result<(), WorkloadError> {
    fs::create_dir_all(path).map_err(WorkloadError::io("make the folder", path))?;
    refuse_full(path)
}

/// Refuses a folder that holds something; one that is not there is fine.
pub(super) fn refuse_full(path: &Path) -> Result<(), WorkloadError> {
    match fs::read_dir(path).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(WorkloadError::NotEmpty(path.to_path_buf())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(WorkloadError::io("list", path)(e)),
    }
}

/// Writes a file under a hidden name, makes it durable and renames it into place.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), WorkloadError> {
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("file");
    let partial = path.with_file_name(format!(".{name}.partial"));
    let written = File::create(&partial).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    let renamed = written.and_then(|()| fs::rename(&partial, path));
    renamed.map_err(|e| {
        // The write's error is the one that matters.
        let _ = fs::remove_file(&partial);
        WorkloadError::io("write", path)(e)
    })
}

/// A file of JSON lines that grows, each line made durable before the next.
#[derive(Debug)]
pub(super) struct Lines {
    path: PathBuf,
    file: File,
}

impl Lines {
    pub(super) fn create(path: PathBuf) -> Result<Self, WorkloadError> {
        let opened = OpenOptions::new().create_new(true).append(true).open(&path);
        let file = opened.map_err(WorkloadError::io("create", &path))?;
        Ok(Self { path, file })
    }

    pub(super) fn add<T: Serialize>(&mut self, line: &T) -> Result<(), WorkloadError> {
        let written = serde_json::to_string(line)
            .map_err(io::Error::other)
            .and_then(|text| {
                self.file.write_all(format!("{text}\n").as_bytes())?;
                self.file.sync_data()
            });
        written.map_err(WorkloadError::io("write", &self.path))
    }
}

impl Folder {
    /// Reads a folder: with an index, what it says of each body; without, every `.json` file.
    pub fn read(path: &Path) -> Result<Self, WorkloadError> {
        let mut folder = Self {
            path: path.to_path_buf(),
            ..Self::default()
        };
        let mut files = BTreeMap::new();
        let entries = fs::read_dir(path).map_err(WorkloadError::io("list", path))?;
        for entry in entries {
            let entry = entry.map_err(WorkloadError::io("list", path))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_json = Path::new(&name).extension().is_some_and(|e| e == "json");
            if is_json && !name.starts_with('.') && entry.path().is_file() {
                files.insert(name, None);
            }
        }
        let index = path.join(INDEX);
        if index.is_file() {
            folder.read_index(&index, &mut files)?;
        }
        folder.bodies = files
            .into_iter()
            .map(|(file, line)| Saved { file, line })
            .collect();
        if folder.head.is_some() {
            for body in &folder.bodies {
                if body.line.is_none() {
                    let note = format!("{} is not in {INDEX}", body.file);
                    folder.notes.push(note);
                }
            }
        }
        Ok(folder)
    }

    fn read_index(
        &mut self,
        index: &Path,
        files: &mut BTreeMap<String, Option<IndexLine>>,
    ) -> Result<(), WorkloadError> {
        let text = fs::read_to_string(index).map_err(WorkloadError::io("read", index))?;
        let wrong = |line: usize, message: String| WorkloadError::Line {
            path: index.to_path_buf(),
            line,
            message,
        };
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        if whole < text.len() {
            let note = format!("{INDEX} ends in the middle of a line: the recording was cut there");
            self.notes.push(note);
        }
        for (number, line) in (1..).zip(text[..whole].lines()) {
            if number == 1 {
                let head: IndexHead = serde_json::from_str(line)
                    .map_err(|e| wrong(1, format!("not the head of an index: {e}")))?;
                if head.schema.split('.').next() != SCHEMA.split('.').next() {
                    let message = format!(
                        "schema {} is newer than {SCHEMA}, which this program reads",
                        head.schema
                    );
                    return Err(wrong(1, message));
                }
                self.head = Some(head);
                continue;
            }
            let line: IndexLine = serde_json::from_str(line)
                .map_err(|e| wrong(number, format!("not a line of an index: {e}")))?;
            let Some(file) = line.file.clone() else {
                self.left_out.push(line);
                continue;
            };
            let Some(place) = files.get_mut(&file) else {
                let note = format!("{file} is in {INDEX} and is not there");
                self.notes.push(note);
                continue;
            };
            let path = self.path.join(&file);
            let bytes = fs::read(&path).map_err(WorkloadError::io("read", &path))?;
            let said = line.sha256.as_deref();
            if said.is_some_and(|said| said != sha256_hex(&bytes)) {
                let note = format!("{file} was changed since {INDEX} was written");
                self.notes.push(note);
            }
            *place = Some(line);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: u32, body: &[u8]) -> IndexLine {
        IndexLine {
            number,
            file: Some(body_name(number)),
            at_s: Some(f64::from(number)),
            path: "/v1/completions".into(),
            bytes: body.len() as u64,
            sha256: Some(sha256_hex(body)),
            ..IndexLine::default()
        }
    }

    #[test]
    fn a_folder_cut_anywhere_is_read_with_what_it_lost() {
        let dir = tempfile::tempdir().unwrap();
        let mut lines = Lines::create(dir.path().join(INDEX)).unwrap();
        let head = IndexHead {
            schema: SCHEMA.into(),
            ..IndexHead::default()
        };
        lines.add(&head).unwrap();
        lines.add(&line(1, b"{}")).unwrap();
        lines.add(&line(2, b"[]")).unwrap();
        for n in [1, 2, 3] {
            write_whole(&dir.path().join(body_name(n)), b"{}").unwrap();
        }
        let text = fs::read_to_string(dir.path().join(INDEX)).unwrap();
        fs::write(dir.path().join(INDEX), format!("{text}{{\"number\":")).unwrap();
        let folder = Folder::read(dir.path()).unwrap();
        assert_eq!(folder.bodies.len(), 3);
        assert_eq!(folder.bodies[0].line, Some(line(1, b"{}")));
        assert_eq!(
            folder.notes,
            [
                "index.jsonl ends in the middle of a line: the recording was cut there",
                "00002.json was changed since index.jsonl was written",
                "00003.json is not in index.jsonl",
            ]
        );
        fs::write(
            dir.path().join(INDEX),
            "{\"schema\":\"2.0\",\"made_by\":\"\",\"utc\":\"\",\"from\":\"\"}\n",
        )
        .unwrap();
        let error = Folder::read(dir.path()).unwrap_err().to_string();
        assert!(error.contains(":1: schema 2.0 is newer"), "{error}");
    }

    #[test]
    fn nothing_is_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        claim(&dir.path().join("new/er")).unwrap();
        claim(&dir.path().join("new/er")).unwrap();
        let error = claim(dir.path()).unwrap_err().to_string();
        assert!(error.contains("is not empty"), "{error}");
    }
}
