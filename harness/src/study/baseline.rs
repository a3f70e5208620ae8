//! Studies of a change: one arm as it is, beside the same arm with the program from before.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::aa::chosen_arm;
use super::{Study, StudyError};

/// What the arm is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Baseline {
    /// The arm; the last if absent.
    pub arm: Option<String>,
    /// The program from before, as an absolute path.
    pub program: PathBuf,
    /// What it is called, for people.
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
    let label = options.label.as_deref().unwrap_or("baseline");
    let mut baseline = named("baseline", format!("{own}, {label}"));
    // Another program takes the place of whatever the arm would build or find.
    for key in ["build", "rev"] {
        baseline.remove(key);
    }
    let program = options.program.display().to_string();
    baseline.insert("program".into(), program.into());
    let candidate = named("candidate", own);
    let arms = [baseline, candidate].map(Value::Table);
    file.insert("arm".into(), Value::Array(arms.into()));
    let made = toml::to_string(&file)
        .map_err(|e| StudyError::at(path, text, 0..0, format!("cannot be written again: {e}")))?;
    Study::of_bytes(path, made.into_bytes())
}
