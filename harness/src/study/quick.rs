//! A study of commands, without a file: the file that it amounts to.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

/// What stands between two commands.
const BETWEEN: &str = "---";
/// Names of arms, in order.
const NAMES: [&str; 8] = ["A", "B", "C", "D", "E", "F", "G", "H"];

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QuickStudy {
    /// Words of all commands, with `---` between commands.
    pub words: Vec<String>,
    /// Request bodies, as absolute paths.
    pub bodies: Vec<PathBuf>,
    /// Mirrored blocks; 3 if absent.
    pub quartets: Option<u32>,
    /// Largest slowdown that passes; no gate if absent.
    pub margin: Option<f64>,
    /// Health route; `/health` if absent.
    pub health: Option<String>,
    /// Whether other inference servers may run.
    pub allow_other_servers: bool,
}

/// What is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuickError {
    /// Only one command.
    #[error(
        "one command is no comparison: put --- between two, as in `palindrome run -- a-server --port {{port}} --- b-server \
         --port {{port}}`"
    )]
    One,
    /// Too many.
    #[error("{0} commands are given; a study takes up to {max}", max = NAMES.len())]
    Many(usize),
    /// Nothing between two separators, or at an end.
    #[error("command {arm} is empty: give the server's program and arguments {}", place(.arm))]
    Empty {
        /// Arm name.
        arm: &'static str,
    },
    /// The server would not know where to listen.
    #[error(
        "command {arm} has no {{port}}: each launch has a free port of its own, put in there, as in `--port {{port}}`; \
         given was: {command}"
    )]
    NoPort {
        /// Arm name.
        arm: &'static str,
        /// As given.
        command: String,
    },
    /// A path cannot be written into a study file.
    #[error("the body {0} cannot be named in a study file: its name is no UTF-8 text")]
    NotText(PathBuf),
}

fn place(arm: &str) -> &'static str {
    if arm == NAMES[0] {
        "before ---"
    } else {
        "after ---"
    }
}

impl QuickStudy {
    /// The study file, and the place that its relative paths start from: the folder that all bodies
    /// lie in.
    pub fn file(&self) -> Result<(PathBuf, String), QuickError> {
        let commands: Vec<&[String]> = self.words.split(|word| word == BETWEEN).collect();
        match commands.len() {
            0 | 1 => return Err(QuickError::One),
            n if n > NAMES.len() => return Err(QuickError::Many(n)),
            _ => {}
        }
        let mut arms = Vec::new();
        for (arm, command) in NAMES.into_iter().zip(&commands) {
            if command.is_empty() {
                return Err(QuickError::Empty { arm });
            }
            if !command.iter().any(|word| word.contains("{port}")) {
                return Err(QuickError::NoPort {
                    arm,
                    command: command.join(" "),
                });
            }
            let mut table = Table::new();
            table.insert("name".into(), arm.into());
            let words = command.iter().map(|word| Value::String(word.clone()));
            table.insert("command".into(), Value::Array(words.collect()));
            arms.push(Value::Table(table));
        }
        let folder = common_folder(&self.bodies);
        let named = |path: &PathBuf| {
            let name = path.strip_prefix(&folder).unwrap_or(path).to_str();
            let name = name.ok_or_else(|| QuickError::NotText(path.clone()))?;
            Ok(Value::String(name.to_owned()))
        };
        let bodies = self
            .bodies
            .iter()
            .map(named)
            .collect::<Result<Vec<_>, _>>()?;
        let mut base = Table::new();
        base.insert("kind".into(), "openai".into());
        if let Some(health) = &self.health {
            base.insert("health".into(), health.clone().into());
        }
        let mut workload = Table::new();
        workload.insert("bodies".into(), Value::Array(bodies));
        // Chats share the words that a template puts first.
        workload.insert("expect_cached".into(), "prefix".into());
        let mut file = Table::new();
        file.insert("name".into(), "quick".into());
        let quoted: Vec<String> = commands.iter().map(|words| words.join(" ")).collect();
        file.insert("question".into(), quoted.join(" --- ").into());
        file.insert(
            "quartets".into(),
            i64::from(self.quartets.unwrap_or(3)).into(),
        );
        if let Some(margin) = self.margin {
            file.insert("margin".into(), margin.into());
        }
        file.insert("base".into(), base.into());
        file.insert("arm".into(), Value::Array(arms));
        file.insert("workload".into(), workload.into());
        if self.allow_other_servers {
            let guards = Table::from_iter([("allow_other_servers".to_owned(), true.into())]);
            file.insert("guards".into(), guards.into());
        }
        let text = toml::to_string(&file)
            .unwrap_or_else(|e| unreachable!("a table of strings and numbers is always TOML: {e}"));
        Ok((folder.join("quick.toml"), text))
    }
}

/// The deepest folder that holds all files.
fn common_folder(files: &[PathBuf]) -> PathBuf {
    let mut folders = files
        .iter()
        .map(|file| file.parent().unwrap_or(Path::new("/")));
    let first = folders.next().unwrap_or(Path::new("/"));
    folders.fold(first.to_path_buf(), |common, folder| {
        let above = common.ancestors().find(|above| folder.starts_with(above));
        above.unwrap_or(Path::new("/")).to_path_buf()
    })
}

#[cfg(test)]
mod tests {
    use super::super::StudyFile;
    use super::*;

    fn quick(words: &str) -> QuickStudy {
        QuickStudy {
            words: words
                .split(' ')
                .filter(|w| !w.is_empty())
                .map(str::to_owned)
                .collect(),
            bodies: ["/x/y/a.json", "/x/y/b.json"].map(PathBuf::from).to_vec(),
            ..QuickStudy::default()
        }
    }

    #[test]
    fn two_commands_are_a_study_file() {
        let mut study = quick("serve --port {port} --- serve --port={port} -fa");
        study.margin = Some(0.05);
        let (path, text) = study.file().unwrap();
        assert_eq!(path, Path::new("/x/y/quick.toml"));
        let file = StudyFile::parse(&path, &text).unwrap();
        let names: Vec<&str> = file.arms.iter().map(|a| a.name.as_ref().as_str()).collect();
        assert_eq!(names, ["A", "B"]);
        assert_eq!(*file.quartets.as_ref(), 3);
        assert_eq!(file.workload.bodies.as_ref()[1].as_ref(), "b.json");
        let command = file.arms[1].command.as_ref().unwrap().as_ref();
        assert_eq!(command[1].as_ref(), "--port={port}");
        study.bodies.push("/x/z/c.json".into());
        assert_eq!(study.file().unwrap().0, Path::new("/x/quick.toml"));
    }

    #[test]
    fn what_is_no_comparison_is_refused_in_words() {
        for (words, says) in [
            (
                "serve --port {port}",
                "one command is no comparison: put --- between two",
            ),
            (
                "--- serve {port}",
                "command A is empty: give the server's program and arguments before ---",
            ),
            (
                "serve {port} ---",
                "command B is empty: give the server's program and arguments after ---",
            ),
            (
                "serve {port} --- other -p 80",
                "command B has no {port}: each launch has a free port of its own",
            ),
        ] {
            let message = quick(words).file().unwrap_err().to_string();
            assert!(message.starts_with(says), "{message}");
        }
    }
}
