//! Ratios of different archives set against each other, or why they may not be.

use serde::Serialize;

use super::Line;
use crate::derive::Published;

/// How a line stands to the lines before it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Link {
    /// The first of its kind.
    #[serde(rename = "first")]
    First,
    /// Its ratio over that of the line before it, and over that of the chain's first line.
    #[serde(rename = "chained")]
    Chained {
        /// Over the one before.
        since_before: Published,
        /// Over the first of the chain.
        since_first: Published,
    },
    /// Not chained: which field differs, or what is missing. A new chain begins here.
    #[serde(rename = "refused")]
    Refused(String),
}

/// For each line its link to the earlier lines of the same arms and level, in the same order.
pub fn chain(lines: &[Line]) -> Vec<Link> {
    let mut firsts: Vec<usize> = (0..lines.len()).collect();
    let mut links = Vec::with_capacity(lines.len());
    for (at, line) in lines.iter().enumerate() {
        let same = |before: &&usize| kind(&lines[**before]) == kind(line);
        let earlier: Vec<usize> = (0..at).collect();
        let Some(&before) = earlier.iter().rev().find(same) else {
            links.push(Link::First);
            continue;
        };
        let refused = line.conditions.differs(&lines[before].conditions);
        let link = refused.map_or_else(
            || linked(line, &lines[before], &lines[firsts[before]]),
            Link::Refused,
        );
        if matches!(link, Link::Chained { .. }) {
            firsts[at] = firsts[before];
        }
        links.push(link);
    }
    links
}

fn kind(line: &Line) -> (&str, &str, Option<&str>) {
    (&line.other.0, &line.base.0, line.level.as_deref())
}

fn linked(line: &Line, before: &Line, first: &Line) -> Link {
    let over = |earlier: &Line| {
        let (now, then) = (line.ratio.as_ref()?, earlier.ratio.as_ref()?);
        let id = format!("chain/{}/over/{}", line.archive, earlier.archive);
        let quotient = now.over(then, [&line.archive, &earlier.archive], id);
        quotient.value().is_some().then_some(quotient)
    };
    match (over(before), over(first)) {
        (Some(since_before), Some(since_first)) => Link::Chained {
            since_before,
            since_first,
        },
        _ => Link::Refused(format!(
            "a ratio is missing: {}",
            line.no_ratio
                .as_ref()
                .or(before.no_ratio.as_ref())
                .map_or("not formed", String::as_str)
        )),
    }
}
