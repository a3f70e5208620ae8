//! One setting of one session.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::check::{Asked, settings};
use crate::archive::Facts;
use crate::study::StudyFile;

/// What became of an expectation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdicted {
    /// As expected.
    Ok,
    /// Otherwise.
    Differs,
    /// Nothing of the server shows it.
    NotShown,
}

/// Where an expectation comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// The study's `expect` table.
    Expect,
    /// What the study asks for in other keys: `threads`, `ctx`, `model`.
    Study,
}

/// A setting as expected and as found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// Its name in an `expect` table.
    pub name: String,
    /// What is expected; absent where nothing is.
    pub expected: Option<Value>,
    /// Who expects it.
    pub by: Option<By>,
    /// What was found; absent where nothing shows it, never guessed.
    pub found: Option<Value>,
    /// What shows it: a file of the session and the place or words in it.
    pub source: Option<String>,
    /// Absent where nothing is expected.
    pub verdict: Option<Verdicted>,
}

/// The settings of one session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionSettings {
    /// The session's folder.
    pub session: String,
    /// Its arm.
    pub arm: String,
    /// In the order of tables.
    pub settings: Vec<Setting>,
}

impl SessionSettings {
    /// A setting by name.
    pub fn get(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().find(|s| s.name == name)
    }
}

/// Settings of every session that was read back; none of archives before that.
pub(in crate::derive) fn session_settings(
    facts: &Facts,
    study: Option<&StudyFile>,
) -> Vec<SessionSettings> {
    let read_back = facts.sessions.iter().filter_map(|s| {
        let readback = s.readback.as_ref()?;
        let asked = study.and_then(|file| Asked::of_file(file, &s.planned.arm));
        Some(SessionSettings {
            session: s.name(),
            arm: s.planned.arm.clone(),
            settings: settings(&asked.unwrap_or_default(), &s.launch, readback),
        })
    });
    read_back.collect()
}
