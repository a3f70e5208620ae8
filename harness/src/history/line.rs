//! A metric in one archive: the arms' own figures, and the ratio between them.

use std::fs;
use std::path::Path;

use serde::Serialize;

use super::Conditions;
use crate::archive::{Archive, ArchiveError, check_seal, hash_file};
use crate::derive::{Figures, Metric, Published};
use crate::stats::Interval;
use crate::study::StudyFile;

/// One arm over another, in one archive.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// The archive's folder name.
    pub archive: String,
    /// When the study started, UTC.
    pub utc: String,
    /// The study's name.
    pub study: String,
    /// Level of load; absent where there are none.
    pub level: Option<String>,
    /// The denominator, and its own figure.
    pub base: (String, Option<Published>),
    /// The numerator, and its own figure.
    pub other: (String, Option<Published>),
    /// The ratio; absent where it is not formed.
    pub ratio: Option<Published>,
    /// Why not.
    pub no_ratio: Option<String>,
    /// Ends of its interval, where there is one.
    #[serde(skip)]
    pub interval: Option<Interval>,
    /// What the interval is called.
    pub interval_title: String,
    /// What must be the same elsewhere.
    pub conditions: Conditions,
}

/// A folder that gives no line, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Its name.
    pub folder: String,
    /// Why.
    pub why: String,
}

/// Every line of the archives in a folder, in time order.
pub fn lines(folder: &Path, metric: &str) -> std::io::Result<(Vec<Line>, Vec<Skipped>)> {
    let (mut found, mut skipped) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if !path.is_dir() {
            continue;
        }
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        match of_archive(&path, metric) {
            Ok(Ok(lines)) => found.extend(lines),
            Ok(Err(why)) => skipped.push(Skipped { folder: name, why }),
            Err(error) => skipped.push(Skipped {
                folder: name,
                why: error.to_string(),
            }),
        }
    }
    found.sort_by(|a: &Line, b: &Line| (&a.utc, &a.archive).cmp(&(&b.utc, &b.archive)));
    skipped.sort_by(|a: &Skipped, b: &Skipped| a.folder.cmp(&b.folder));
    Ok((found, skipped))
}

fn of_archive(path: &Path, metric: &str) -> Result<Result<Vec<Line>, String>, ArchiveError> {
    let archive = Archive::open(path)?;
    if let Some(why) = changed(&archive)? {
        return Ok(Err(why));
    }
    let facts = archive.facts()?;
    let Some(figures) = archive.figures()? else {
        return Ok(Err("it holds no figures".to_owned()));
    };
    let text = String::from_utf8_lossy(&facts.study_toml);
    let file = match StudyFile::parse(Path::new("study.toml"), &text) {
        Ok(file) => file,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let Some((base, others)) = figures.arms().split_first() else {
        return Ok(Err("it has no arms".to_owned()));
    };
    let compared = Metric::ALL.into_iter().find(|m| m.key() == metric);
    let mut lines = Vec::new();
    for other in others {
        for formed in formed(&figures, compared, metric, base, other) {
            let conditions = Conditions::of(&facts, &file, base, other, &formed.convention);
            lines.push(Line {
                archive: archive.name(),
                utc: facts.host.utc.clone(),
                study: figures.study().to_owned(),
                level: formed.level,
                base: (base.clone(), formed.base),
                other: (other.clone(), formed.other),
                ratio: formed.ratio,
                no_ratio: formed.no_ratio,
                interval: formed.interval,
                interval_title: figures.interval_title(),
                conditions,
            });
        }
    }
    if lines.is_empty() {
        return Ok(Err(format!("it does not show {metric}")));
    }
    Ok(Ok(lines))
}

/// Whether what is read here is what was sealed (raw facts are the audit's business).
fn changed(archive: &Archive) -> Result<Option<String>, ArchiveError> {
    if !archive.is_sealed() {
        return Ok(Some("it is not sealed".to_owned()));
    }
    if let Some(problem) = check_seal(archive.path())? {
        return Ok(Some(problem));
    }
    let manifest = archive.manifest()?;
    for name in ["study.toml", "plan.json", "host.json", "figures.json"] {
        let sealed = manifest
            .iter()
            .flat_map(|m| &m.subject)
            .find(|s| s.name == name);
        let sealed = sealed.and_then(|s| s.digest.get("sha256"));
        let found = hash_file(&archive.path().join(name)).ok();
        if sealed.is_none() || sealed != found.as_ref() {
            return Ok(Some(format!("{name} is not the file that was sealed")));
        }
    }
    Ok(None)
}

/// A ratio and what it is formed from.
struct Formed {
    level: Option<String>,
    base: Option<Published>,
    other: Option<Published>,
    ratio: Option<Published>,
    no_ratio: Option<String>,
    interval: Option<Interval>,
    convention: String,
}

fn formed(
    figures: &Figures,
    compared: Option<Metric>,
    name: &str,
    base: &str,
    other: &str,
) -> Vec<Formed> {
    let Some(metric) = compared else {
        return by_name(figures, name, base, other).into_iter().collect();
    };
    let all = figures.comparisons().iter();
    let about = all.filter(|c| c.metric == metric && c.base == base && c.other == other);
    about
        .map(|c| {
            let ratio = figures.get(&format!("{}/ratio", c.prefix));
            let ratio = ratio.filter(|f| f.value().is_some()).cloned();
            Formed {
                level: c.level.clone(),
                base: figures.get(&c.arm_figure(base)).cloned(),
                other: figures.get(&c.arm_figure(other)).cloned(),
                no_ratio: ratio.is_none().then(|| "there are no pairs".to_owned()),
                ratio,
                interval: figures.interval(c),
                convention: "the client's".to_owned(),
            }
        })
        .collect()
}

/// Figures of the arms that are not compared by pairs: the quotient of the two, where both are
/// counted alike. `engine_decode_rate` stands for each engine's own convention of it.
fn by_name(figures: &Figures, name: &str, base: &str, other: &str) -> Option<Formed> {
    let (base, other) = (own(figures, name, base), own(figures, name, other));
    if base.is_none() && other.is_none() {
        return None;
    }
    let counted = |own: &Option<(Published, String)>| own.as_ref().map(|(_, how)| how.clone());
    let (below, above) = (counted(&base), counted(&other));
    let (ratio, no_ratio) = match (&base, &other) {
        (Some((_, below)), Some((_, above))) if below != above => {
            (None, Some(format!("convention: {above} over {below}")))
        }
        (Some((below, _)), Some((above, _))) => {
            let ratio = above.over(below, ["", ""], format!("{name}/quotient"));
            let missing = ratio.value().is_none();
            (
                Some(ratio).filter(|r| r.value().is_some()),
                missing.then(|| "a figure is missing".to_owned()),
            )
        }
        _ => (None, Some("an arm does not show it".to_owned())),
    };
    Some(Formed {
        level: None,
        base: base.map(|(figure, _)| figure),
        other: other.map(|(figure, _)| figure),
        ratio,
        no_ratio,
        interval: None,
        convention: above.or(below).unwrap_or_default(),
    })
}

/// An arm's figure and how it is counted: the rest of its name, if it has one.
fn own(figures: &Figures, name: &str, arm: &str) -> Option<(Published, String)> {
    let scope = format!("arm/{arm}/");
    let mut of_arm = figures
        .all()
        .iter()
        .filter_map(|f| Some((f, f.id().strip_prefix(&scope)?)));
    let (figure, rest) = of_arm.find_map(|(f, id)| match id.strip_prefix(name)? {
        "" => Some((f, "as named")),
        rest if matches!(rest, "_n" | "_n_minus_1" | "_as_stated") => Some((f, &rest[1..])),
        _ => None,
    })?;
    Some((figure.clone(), rest.to_owned()))
}
