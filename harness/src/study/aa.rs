//! A/A studies: one arm of a study twice, under two names.

use std::path::Path;

use toml::{Table, Value};

use super::{Study, StudyError, StudyFile};

/// How an A/A study differs from the study that it is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AaOptions {
    /// The arm; the first if absent.
    pub arm: Option<String>,
    /// Its quartets; 3 if absent.
    pub quartets: Option<u32>,
    /// Another model file, as an absolute path; the arm's own if absent.
    pub model: Option<String>,
}

/// The A/A study of a study file's text. Relative paths start from `path`'s folder.
pub fn aa_study(path: &Path, text: &str, options: &AaOptions) -> Result<Study, StudyError> {
    let (mut file, chosen) = chosen_arm(path, text, options.arm.as_deref(), <[Table]>::first)?;
    let twice = ["1", "2"].map(|which| {
        let mut arm = chosen.clone();
        let own = name(&chosen);
        let label = chosen.get("label").and_then(Value::as_str);
        let label = format!("{}, run {which} of 2", label.unwrap_or(&own));
        arm.insert("name".into(), format!("{own}-{which}").into());
        arm.insert("label".into(), label.into());
        if let Some(model) = &options.model {
            arm.insert("model".into(), model.clone().into());
        }
        Value::Table(arm)
    });
    let study = file.get("name").and_then(Value::as_str);
    let study = format!("aa-{}", study.unwrap_or_default());
    file.insert("name".into(), study.into());
    let question = "How much does one server differ from itself on this machine?";
    file.insert("question".into(), question.into());
    file.insert("arm".into(), Value::Array(twice.into()));
    file.insert(
        "quartets".into(),
        Value::Integer(i64::from(options.quartets.unwrap_or(3))),
    );
    // What the study asks of two different arms is not asked of one.
    for key in ["margin", "gate", "looks", "assumed_spread"] {
        file.remove(key);
    }
    let made = toml::to_string(&file)
        .map_err(|e| StudyError::at(path, text, 0..0, format!("cannot be written again: {e}")))?;
    Study::of_bytes(path, made.into_bytes())
}

fn name(arm: &Table) -> String {
    let name = arm.get("name").and_then(Value::as_str);
    name.unwrap_or_default().to_owned()
}

/// A study file's text as a table, and the arm of that name, or else the `usual` one.
pub(super) fn chosen_arm(
    path: &Path,
    text: &str,
    wanted: Option<&str>,
    usual: fn(&[Table]) -> Option<&Table>,
) -> Result<(Table, Table), StudyError> {
    let file: Table = toml::from_str(text).map_err(|e| StudyError::from_toml(path, text, &e))?;
    let arms: Vec<Table> = file
        .get("arm")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|arm| arm.as_table().cloned())
        .collect();
    // A mistake in the file itself is named where it stands in it; that a second arm lacks is none.
    if arms.len() > 1 {
        StudyFile::parse(path, text)?;
    }
    let chosen = match wanted {
        Some(wanted) => arms.iter().find(|arm| name(arm) == wanted),
        None => usual(&arms),
    };
    let Some(chosen) = chosen.cloned() else {
        let names: Vec<String> = arms.iter().map(name).collect();
        let message = match wanted {
            Some(wanted) => format!("no arm is named {wanted:?}; there are {}", names.join(", ")),
            None => "there is no `[[arm]]` to run twice".to_owned(),
        };
        return Err(StudyError::at(path, text, 0..0, message));
    };
    Ok((file, chosen))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const FILE: &str = "name = \"x\"\nquartets = 1\nmargin = 0.05\n[[arm]]\nname = \"A\"\nkind = \"mock\"\nscript = \"a.toml\"\n\
                        [[arm]]\nname = \"B\"\nlabel = \"other\"\nkind = \"openai\"\ncommand = [\"serve\", \"{port}\"]\n\
                        [workload]\nbodies = [\"one.json\"]\n";

    #[test]
    fn an_arm_runs_twice_under_two_names() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("one.json"), "{\"stream\": true}").unwrap();
        fs::write(folder.path().join("a.toml"), "").unwrap();
        let path = folder.path().join("study.toml");
        let made = |options: AaOptions| aa_study(&path, FILE, &options);
        let study = made(AaOptions::default()).unwrap();
        let names: Vec<&str> = study.arms.iter().map(|a| a.name.as_str()).collect();
        assert_eq!(names, ["A-1", "A-2"]);
        assert_eq!(
            (study.name.as_str(), study.quartets, study.margin),
            ("aa-x", 3, None)
        );
        let arm = |name: &str| AaOptions {
            arm: Some(name.to_owned()),
            quartets: Some(4),
            model: None,
        };
        let other = made(arm("B")).unwrap();
        assert_eq!(other.arms[1].label, "other, run 2 of 2");
        assert_eq!(other.arms[0].command, other.arms[1].command);
        assert_eq!(other.quartets, 4);
        let error = made(arm("C")).unwrap_err().to_string();
        assert!(
            error.ends_with("no arm is named \"C\"; there are A, B"),
            "{error}"
        );
    }
}
