//! All arms of a study that are built, before anything is measured.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::make::Ears;
use super::{BuildError, Site};
use crate::study::{Arm, Study};

/// What the run's log says of a built arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BuildRecord {
    /// Arm name.
    pub arm: String,
    /// What was built, by which command, and the hash of its log: as in `launch.json`.
    pub build: std::collections::BTreeMap<String, String>,
    /// Whether it was there from an earlier run.
    pub found: bool,
    /// How long it took, when it was made.
    pub seconds: f64,
}

impl BuildRecord {
    /// What must not change between the sessions of a study: the first difference, in words.
    pub fn differs(&self, other: &Self) -> Option<String> {
        let names = ["commit", "diff_sha256", "dirty", "build_command"];
        let differing = names
            .iter()
            .find(|n| self.build.get(**n) != other.build.get(**n))?;
        let said = |record: &Self| {
            let value = record.build.get(*differing);
            value.map_or_else(|| "none".to_owned(), Clone::clone)
        };
        Some(format!(
            "arm {} was built from another state ({differing} was {}, here it is {})",
            self.arm,
            said(self),
            said(other)
        ))
    }
}

/// Where builds are, and who is told of them.
pub struct Workshop<'a> {
    /// The folder that builds are kept in.
    pub builds: &'a Path,
    /// Hears each step.
    pub say: &'a dyn Fn(&str),
    /// Says that the user wants to stop.
    pub cancelled: &'a dyn Fn() -> bool,
}

/// Where the arms of a study are built; those that are not built have no site.
pub fn sites(study: &Study, builds: &Path) -> Result<Vec<Site>, BuildError> {
    let mut sites = Vec::new();
    for arm in &study.arms {
        if let Some(recipe) = &arm.recipe {
            sites.push((arm, Site::of(arm, recipe, builds)?));
        }
    }
    for (i, (first, a)) in sites.iter().enumerate() {
        for (second, b) in &sites[i + 1..] {
            let launched = |arm: &Arm| arm.command.clone();
            let same =
                a.tree == b.tree && a.program == b.program && launched(first) == launched(second);
            if same && a.command != b.command {
                return Err(BuildError::SameFolder {
                    first: a.arm.clone(),
                    second: b.arm.clone(),
                });
            }
        }
    }
    Ok(sites.into_iter().map(|(_, site)| site).collect())
}

/// Builds every arm that is to be built: the study with what is launched filled in, and what the
/// run's log says of each build.
pub fn build_arms(
    study: &Study,
    workshop: &Workshop<'_>,
) -> Result<(Study, Vec<BuildRecord>), BuildError> {
    let mut study = study.clone();
    let mut records = Vec::new();
    let ears = Ears {
        say: workshop.say,
        cancelled: workshop.cancelled,
    };
    for site in sites(&study, workshop.builds)? {
        let made = site.make(&ears)?;
        records.push(BuildRecord {
            arm: site.arm.clone(),
            build: made.built.facts.clone(),
            found: made.found,
            seconds: made.seconds,
        });
        for arm in study.arms.iter_mut().filter(|arm| arm.name == site.arm) {
            arm.program.clone_from(&site.program);
            arm.built = Some(made.built.clone());
        }
    }
    Ok((study, records))
}
