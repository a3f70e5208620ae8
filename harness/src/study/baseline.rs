//! Studies of a change: one arm as it is, beside the same arm as it was before.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::aa::chosen_arm;
use super::{Study, StudyError};

/// What an arm was before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Before {
    /// A program, as an absolute path.
    Program(PathBuf),
    /// A git revision, which is built as the arm is.
    Revision(String),
}

/// What the arm is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Baseline {
    /// The arm; the last if absent.
    pub arm: Option<String>,
    /// What it was.
    pub before: Before,
    /// What that is called, for people.
    pub label: Option<String>,
}

/// The study of a study file's text with two arms: `baseline`, and `candidate`, the chosen arm as
/// it is. Relative paths start from `path`'s folder.
pub fn baseline_study(path: &Path, text: &str, options: &Baseline) -> Result<Study, StudyError> {
    let (mut file, chosen) = chosen_arm(path, text, options.arm.as_deref(), <[Table]>::last)?;
    let own = chosen.get("name").and_then(Value::as_str);
    let own = chosen.get("label").and_then(Value::as_str).or(own);
    let own = own.unwrap_or_default().to_owned();
    let named = |name: &str, label: String| {
        let mut arm = chosen.clone();
        arm.insert("name".into(), name.into());
        arm.insert("label".into(), label.into());
        arm
    };
    let before = match &options.before {
        Before::Program(_) => "baseline",
        Before::Revision(rev) => rev,
    };
    let label = options.label.as_deref().unwrap_or(before);
    let mut baseline = named("baseline", format!("{own}, {label}"));
    match &options.before {
        Before::Program(program) => {
            // It takes the place of whatever the arm would build or find.
            for key in ["build", "rev", "repo"] {
                baseline.remove(key);
            }
            baseline.insert("program".into(), program.display().to_string().into());
        }
        Before::Revision(rev) => {
            // Without a build, a program is one that lies there already, of no revision.
            if !baseline.contains_key("build") {
                baseline.remove("program");
            }
            baseline.insert("rev".into(), rev.clone().into());
        }
    }
    let candidate = named("candidate", own);
    let arms = [baseline, candidate].map(Value::Table);
    file.insert("arm".into(), Value::Array(arms.into()));
    let made = toml::to_string(&file)
        .map_err(|e| StudyError::at(path, text, 0..0, format!("cannot be written again: {e}")))?;
    Study::of_bytes(path, made.into_bytes())
}
