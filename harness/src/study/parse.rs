//! From a study file's text to its checked form; opens no other file.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use super::check::check;
use super::error::StudyError;
use super::file::StudyFile;
use super::protocol::Protocol;
use crate::derive::Metric;

/// What is wrong, and where.
type Wrong = (Range<usize>, String);

impl StudyFile {
    /// Parses a study file's text; `path` is for messages only. Opens no other file, so an archived
    /// study can be read anywhere.
    pub fn parse(path: &Path, text: &str) -> Result<Self, StudyError> {
        check(path, text)?;
        let mut file: Self =
            toml::from_str(text).map_err(|e| StudyError::from_toml(path, text, &e))?;
        file.resolve()
            .map_err(|(span, what)| StudyError::at(path, text, span, what))?;
        Ok(file)
    }

    /// Checks what keys mean together, and fills in what follows from them.
    fn resolve(&mut self) -> Result<(), Wrong> {
        if self.name.as_ref().trim().is_empty() {
            let what = "the name is empty; it names the archive's folder";
            return Err((self.name.span(), what.to_owned()));
        }
        let quartets = *self.quartets.as_ref();
        let looks = self.written_looks.as_ref();
        self.looks = looks.map(|looks| looks.resolve(quartets)).transpose()?;
        self.arm_names()?;
        self.target()?;
        let limits = self.limits.as_ref();
        self.protocol = match (&self.written_protocol, limits) {
            (Some(protocol), _) => protocol.resolve(&self.workload, limits, &self.arms)?,
            (None, None) => Protocol::Fresh,
            (None, Some(limits)) => {
                let what = "`[limits]` is for protocols of kind open-loop or arrivals; this study has no `[protocol]`";
                return Err((limits.span(), what.to_owned()));
            }
        };
        let switched = self.arms.iter().find_map(|arm| arm.switch.as_ref());
        if let Some(switch) = switched
            && !matches!(self.protocol, Protocol::Paired { .. })
        {
            let what = "`switch` is for protocols of kind paired";
            return Err((switch.span(), what.to_owned()));
        }
        self.primary = self.metric()?;
        self.rules = self.resolve_rules()?;
        if let Some(wrong) = self.bad_expectation() {
            return Err(wrong);
        }
        Ok(())
    }

    fn arm_names(&self) -> Result<(), Wrong> {
        let mut seen = BTreeSet::new();
        for arm in &self.arms {
            let name = arm.name.as_ref();
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if name.is_empty() || !name.chars().all(plain) {
                let what = format!(
                    "arm name {name:?} is used in folder names: letters, digits, `-` and `_` only"
                );
                return Err((arm.name.span(), what));
            }
            if !seen.insert(name) {
                let what = format!("two arms are named {name:?}; names tell their sessions apart");
                return Err((arm.name.span(), what));
            }
            if arm.kind(&self.base).is_none() {
                let what = format!(
                    "arm {name:?} has no kind: give `kind`, here or in [base], one of llama-cpp, palindrome-engine, \
                     openai, mock"
                );
                return Err((arm.name.span(), what));
            }
        }
        Ok(())
    }

    fn target(&self) -> Result<(), Wrong> {
        let target = self.workload.path.as_ref();
        let span = self.workload.path.span();
        if target.starts_with("https:") {
            let what = "https is not supported: servers are launched on loopback; give a path such as \
                        /v1/chat/completions";
            return Err((span, what.to_owned()));
        }
        let blank = |c: char| c.is_whitespace() || c.is_control();
        if !target.starts_with('/') || target.contains(blank) {
            let what = format!("path {target:?} must start with `/`, as in /v1/chat/completions");
            return Err((span, what));
        }
        Ok(())
    }

    fn metric(&self) -> Result<Metric, Wrong> {
        let metrics = Metric::of(&self.protocol);
        let Some(written) = &self.written_primary else {
            return Ok(metrics[0]);
        };
        let primary = *written.as_ref();
        if metrics.contains(&primary) {
            return Ok(primary);
        }
        let known: Vec<&str> = metrics.iter().map(|m| m.key()).collect();
        let what = format!(
            "primary = {:?} is not a metric of this protocol; give one of {}",
            primary.key(),
            known.join(", ")
        );
        Err((written.span(), what))
    }
}
