//! How long a study will take, before its first session, and what that is known from.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Label, three_digits};
use crate::stats::median;
use crate::study::Plan;

/// How long sessions of a study took in an earlier archive.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenSessions {
    /// The archive, for people.
    pub archive: String,
    /// Whether it is of this very study file.
    pub same_file: bool,
    /// Seconds of each session, by arm.
    pub seconds: BTreeMap<String, Vec<f64>>,
}

/// How long a study will take.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExpectedDuration {
    /// All sessions together; absent where it is not known.
    pub seconds: Option<f64>,
    /// Calculated from sessions that were measured, or assumed; absent where it is not known.
    pub label: Option<Label>,
    /// In words, with what it does not hold.
    pub sentence: String,
}

/// What no duration of sessions holds.
const NOT_IN_IT: &str = "Waiting until the machine is fit, and building arms, come on top.";

/// The duration of a plan: by the sessions of an earlier archive, else by the seconds a session that
/// the study file assumes.
pub fn expected_duration(
    plan: &Plan,
    seen: Option<&SeenSessions>,
    assumed_session_s: Option<f64>,
) -> ExpectedDuration {
    let sessions = plan.sessions.len();
    let at_most = if plan.looks.is_some() {
        "up to"
    } else {
        "about"
    };
    let mut unseen = Vec::new();
    if let Some(seen) = seen {
        let known = plan.arms.iter().filter_map(|arm| {
            let seconds = median(seen.seconds.get(arm)?)?;
            Some((arm.as_str(), seconds))
        });
        let medians: BTreeMap<&str, f64> = known.collect();
        let total: Option<f64> = plan
            .sessions
            .iter()
            .map(|session| medians.get(session.arm.as_str()))
            .sum();
        if let Some(seconds) = total {
            let each: Vec<String> = plan
                .arms
                .iter()
                .map(|arm| format!("{arm} {} s", three_digits(medians[arm.as_str()])))
                .collect();
            let version = if seen.same_file {
                ""
            } else {
                ", of another version of the study file"
            };
            let sentence = format!(
                "{at_most} {} for {sessions} sessions (CALCULATED from sessions MEASURED in {}{version}: {}). {NOT_IN_IT}",
                in_words(seconds),
                seen.archive,
                each.join(", ")
            );
            return ExpectedDuration {
                seconds: Some(seconds),
                label: Some(Label::Calculated),
                sentence,
            };
        }
        unseen = plan
            .arms
            .iter()
            .filter(|arm| !medians.contains_key(arm.as_str()))
            .collect();
    }
    if let Some(each) = assumed_session_s {
        let seconds = each * sessions as f64;
        let sentence = format!(
            "{at_most} {} for {sessions} sessions of {} s (ASSUMED by the study file). {NOT_IN_IT}",
            in_words(seconds),
            three_digits(each)
        );
        return ExpectedDuration {
            seconds: Some(seconds),
            label: Some(Label::Assumed),
            sentence,
        };
    }
    let why = if unseen.is_empty() {
        "no earlier archive of this study with the same requests is there".to_owned()
    } else {
        let unseen: Vec<&str> = unseen.into_iter().map(String::as_str).collect();
        format!("no session of {} has been seen", unseen.join(", "))
    };
    ExpectedDuration {
        seconds: None,
        label: None,
        sentence: format!(
            "not known for {sessions} sessions: {why}, and the study file gives no `assumed_session_s`. {NOT_IN_IT}"
        ),
    }
}

/// `42 s`, `4 min 10 s`, `2 h 5 min`.
pub fn in_words(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{} s", three_digits(seconds)),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::{Protocol, coins, order};

    fn plan() -> Plan {
        let arms = vec!["A".to_owned(), "B".to_owned()];
        let coins = coins(1, 3);
        Plan {
            schema: "1.1".into(),
            study: "x".into(),
            study_sha256: String::new(),
            seed: 1,
            sessions: order(&arms, &coins, true),
            coins,
            arms,
            warmups: vec![],
            bodies: vec![],
            protocol: Protocol::Fresh,
            phases: vec![],
            looks: None,
        }
    }

    #[test]
    fn sessions_seen_come_before_what_is_assumed_and_nothing_is_made_up() {
        let seen = |arms: &[(&str, f64)]| SeenSessions {
            archive: "archives/old".into(),
            same_file: false,
            seconds: arms
                .iter()
                .map(|(a, s)| ((*a).to_owned(), vec![*s, *s, 1e6]))
                .collect(),
        };
        // 7 sessions of A, one of them the burn-in, and 6 of B.
        let known = expected_duration(&plan(), Some(&seen(&[("A", 20.0), ("B", 10.5)])), Some(1.0));
        assert_eq!(
            (known.seconds, known.label),
            (Some(203.0), Some(Label::Calculated))
        );
        assert!(
            known.sentence.starts_with(
                "about 3 min 23 s for 13 sessions (CALCULATED from sessions MEASURED in archives/old, of another version of \
                 the study file: A 20.0 s, B 10.5 s)."
            ),
            "{}",
            known.sentence
        );
        let part = expected_duration(&plan(), Some(&seen(&[("A", 20.0)])), None);
        assert_eq!((part.seconds, part.label), (None, None));
        assert!(
            part.sentence.contains("no session of B has been seen"),
            "{}",
            part.sentence
        );
        let assumed = expected_duration(&plan(), Some(&seen(&[("A", 20.0)])), Some(300.0));
        assert_eq!(
            (assumed.seconds, assumed.label),
            (Some(3900.0), Some(Label::Assumed))
        );
        assert!(
            assumed
                .sentence
                .starts_with("about 1 h 5 min for 13 sessions of 300 s (ASSUMED")
        );
        let nothing = expected_duration(&plan(), None, None);
        assert!(
            nothing
                .sentence
                .starts_with("not known for 13 sessions: no earlier archive")
        );
    }
}
