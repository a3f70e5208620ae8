//! What can be said and what cannot, in words.

use serde::{Deserialize, Serialize};

use super::{Comparison, Figures, HashKind, Metric, Unit, noise, settings};
use crate::archive::{Facts, short};
use crate::replay::{RequestRecord, TokenSource};
use crate::server::{LaunchFacts, ServerKind, StopMode};
use crate::stats::{Difference, Interval, difference};
use crate::study::{ExpectCached, Level, Protocol, Role, Way, level_title};

/// The words of a study's outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The outcome in one sentence.
    pub sentence: String,
    /// What a reader must know before believing it: first lines of every report.
    pub warnings: Vec<String>,
    /// What does not follow from this study.
    pub does_not_follow: Vec<String>,
}

/// A number with three significant digits, no exponent: `71.3`, `0.527`, `1240`.
pub fn three_digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let magnitude = libm::log10(value.abs()).floor() as i32;
    let decimals = (2 - magnitude).clamp(0, 9) as usize;
    format!("{value:.decimals$}")
}

/// `apart` are the facts by arm (see [`super::by_arm`]): whose requests are whose.
pub(super) fn verdict(
    facts: &Facts,
    apart: &Facts,
    figures: &Figures,
    expect_cached: Option<ExpectCached>,
) -> Verdict {
    let mut warnings = warnings(facts, apart, figures);
    warnings.extend(expect_cached.into_iter().flat_map(|e| unshown(apart, e)));
    Verdict {
        sentence: sentence(figures),
        warnings,
        does_not_follow: does_not_follow(facts, figures),
    }
}

fn sentence(figures: &Figures) -> String {
    let metric = figures.primary();
    let primary = figures.primary_comparisons();
    let said: Vec<String> = primary.map(|c| compared(figures, c)).collect();
    if !said.is_empty() {
        return said
            .into_iter()
            .chain(looked(figures))
            .collect::<Vec<_>>()
            .join(" ");
    }
    let alone = figures.arms().first().and_then(|arm| {
        let value = figures.value(&format!("arm/{arm}/{}", metric.key()))?;
        Some((arm, value))
    });
    match alone {
        Some((arm, value)) => format!(
            "{arm} {} {} {}; nothing was compared.",
            verb(metric),
            three_digits(value),
            unit(metric)
        ),
        None => "Nothing was measured.".into(),
    }
}

/// Which planned look this is, and that it ended the study if it did.
fn looked(figures: &Figures) -> Option<String> {
    let look = figures.look()?;
    let end = match figures.ended_early() {
        Some(_) => ", which settled it: the study ended there, as planned",
        None if look.number == look.of => ", the last one",
        None => "",
    };
    Some(format!(
        "This is look {} of {}, after {} quartets{end}.",
        look.number, look.of, look.quartets
    ))
}

/// What an arm did, before an amount.
fn verb(metric: Metric) -> &'static str {
    match metric {
        Metric::DecodeRate => "generated",
        Metric::PromptRate => "read its prompts at",
        Metric::Ttft => "gave its first token after",
        Metric::ClientWall => "answered in",
        Metric::CohortRate | Metric::Throughput => "generated in all",
        Metric::Tpot => "gave a token every",
        Metric::Goodput => "answered within the limits",
        Metric::CohortWall => "answered everything in",
    }
}

fn unit(metric: Metric) -> &'static str {
    match metric.unit() {
        Unit::RequestsPerSecond => "requests a second",
        Unit::TokensPerSecond => "tokens a second",
        _ => "seconds",
    }
}

fn compared(figures: &Figures, c: &Comparison) -> String {
    let (base, other) = (&c.base, &c.other);
    let amount = |arm: &str| figures.value(&c.arm_figure(arm));
    let at = |end: &str| figures.value(&format!("{}/ratio{end}", c.prefix));
    let Some(ratio) = at("") else {
        let why = c
            .no_interval
            .clone()
            .unwrap_or_else(|| "there are no pairs".into());
        let by = c.metric.title().to_lowercase();
        return format!("{other} and {base} could not be compared by {by}: {why}.");
    };
    let totals = match (
        amount(other),
        amount(base),
        figures.value(&c.quotient_of_totals()),
    ) {
        (Some(b), Some(a), Some(quotient)) => totals(c.metric, (b, a), quotient, ratio),
        _ => String::new(),
    };
    let times = three_digits(ratio);
    let head = match c.metric {
        Metric::DecodeRate | Metric::Throughput => {
            format!("generated tokens at {times} times the rate of {base}")
        }
        Metric::PromptRate => format!("read prompts at {times} times the rate of {base}"),
        Metric::Ttft => format!("took {times} times as long as {base} to the first token"),
        Metric::ClientWall => format!("took {times} times as long as {base} to a whole answer"),
        Metric::CohortRate => format!(
            "generated tokens at {times} times the rate of {base}, all requests of a cohort together"
        ),
        Metric::CohortWall => format!("took {times} times as long as {base} to answer a cohort"),
        Metric::Tpot => format!("took {times} times as long as {base} for a token after the first"),
        Metric::Goodput => {
            format!("answered requests within the limits at {times} times the rate of {base}")
        }
    };
    let paired = matches!(figures.protocol(), Protocol::Paired { .. });
    let by = if paired {
        "by the median request of a session that served both"
    } else if c.metric.of_session() {
        "by neighbouring sessions"
    } else {
        "by the median request of neighbouring sessions"
    };
    let level = c.level.as_deref().map(level_title);
    let level = level.map_or_else(String::new, |level| format!(" at {level}"));
    let head = format!("On this host and workload{level} {other} {head}, {by}");
    let claim = match (at("_low"), at("_high"), &c.no_interval) {
        (Some(low), Some(high), None) => {
            let reach = match difference(Interval { low, high }) {
                Difference::Above => "the interval lies above 1",
                Difference::Below => "the interval lies below 1",
                Difference::NotShown => "the interval holds 1, so no difference is shown",
            };
            format!(
                "{head}; {} {} to {} over {} {}: {reach}.",
                figures.interval_title(),
                three_digits(low),
                three_digits(high),
                c.pairs,
                if paired {
                    "sessions"
                } else {
                    "pairs of sessions"
                }
            )
        }
        (_, _, why) => {
            let why = why.as_deref().unwrap_or("it is not defined here");
            format!("{head}. There is no interval: {why}.")
        }
    };
    claim + &totals
}

/// The arms' own figures, whose quotient is not the ratio that the claim is about: a sentence of
/// their own, and a word on it where the two point opposite ways.
fn totals(metric: Metric, (other, base): (f64, f64), quotient: f64, ratio: f64) -> String {
    let over = match metric {
        Metric::CohortWall => "The medians over all cohorts",
        Metric::Goodput => "Over all requests together",
        _ if metric.higher_is_better() => "Over all tokens together",
        _ => "The medians over all requests",
    };
    let mut said = format!(
        " {over}: {} against {} {}, {} times.",
        three_digits(other),
        three_digits(base),
        unit(metric),
        three_digits(quotient)
    );
    if (ratio - 1.0) * (quotient - 1.0) < 0.0 {
        said.push_str(
            " The two point opposite ways: which arm is ahead depends on how requests are weighed, so look at each.",
        );
    }
    said
}

fn warnings(facts: &Facts, halves: &Facts, figures: &Figures) -> Vec<String> {
    let mut out = settings::warnings(facts, figures.settings());
    for arm in &facts.plan.arms {
        if let Some(session) = facts.sessions.iter().find(|s| s.planned.arm == *arm) {
            out.extend(build_warning(arm, &session.launch));
        }
    }
    match &facts.host.checkout {
        Some(checkout) if checkout.dirty => {
            out.push(format!(
                "The checkout had uncommitted changes over commit {}.",
                short(&checkout.commit)
            ));
        }
        _ => {}
    }
    let planned = facts.plan.sessions.len();
    if facts.sessions.len() < planned && figures.ended_early().is_none() {
        out.push(format!(
            "Only {} of {planned} planned sessions are recorded.",
            facts.sessions.len()
        ));
    }
    let resumed = facts.events.iter().filter(|e| e.kind == "resumed").count();
    if resumed > 0 {
        out.push(format!(
            "The study was interrupted and resumed {resumed} time(s)."
        ));
    }
    for session in &facts.sessions {
        let name = session.name();
        if let Some(error) = &session.end.error {
            out.push(format!("Session {name} failed: {error}."));
        }
        if session.end.stop.mode == StopMode::Died {
            out.push(format!(
                "The server of session {name} died before it was stopped."
            ));
        }
        for r in session.requests.iter().filter(|r| r.scored) {
            if let Some(error) = &r.error {
                out.push(format!(
                    "Request {} ({}) of session {name} failed: {error}.",
                    r.index, r.body
                ));
            }
        }
    }
    out.extend(noise::warning(figures.noise()));
    out.extend(apart(facts));
    out.extend(late(facts, figures));
    out.extend(crowded(facts, figures));
    out.extend(costly(facts, figures));
    out.extend(miscounted(facts));
    out.extend(assumed_first_events(halves));
    let guessed = facts
        .sessions
        .iter()
        .filter(|s| {
            s.requests
                .iter()
                .any(|r| r.scored && r.token_source == Some(TokenSource::Events))
        })
        .count();
    if guessed > 0 {
        out.push(format!(
            "In {guessed} session(s) the server states no token count: one token a streamed event is assumed."
        ));
    }
    for identity in figures
        .identity()
        .iter()
        .filter(|i| (i.arms.len() == 1 || i.required) && i.equal() == Some(false))
    {
        if identity.kind == HashKind::Text && has_ids(figures, &identity.arms) {
            continue;
        }
        if identity.arms.len() > 1 {
            out.push(format!(
                "{} serve one model and were given different {} in {} of {} requests.",
                identity.arms.join(", "),
                identity.kind.title(),
                identity.differing.len(),
                identity.compared
            ));
            continue;
        }
        out.push(format!(
            "{} did not repeat itself: {} of {} requests have different {} across its sessions.",
            identity.arms.join(", "),
            identity.differing.len(),
            identity.compared,
            identity.kind.title()
        ));
    }
    out
}

/// Cohorts of which a request was answered in full before the last one was written: too short for
/// what a cohort is about.
fn apart(facts: &Facts) -> Option<String> {
    let steps = facts.plan.steps();
    let together = |r: &&RequestRecord| {
        let step = steps.get(r.index as usize);
        step.is_some_and(|s| s.way == Way::Together)
    };
    let apart = facts.sessions.iter().filter(|session| {
        let cohort = || session.requests.iter().filter(together);
        let sent = cohort().map(|r| r.sent_ns).max();
        sent > cohort().map(|r| r.done_ns).min()
    });
    let count = apart.count();
    (count > 0).then(|| {
        format!(
            "In {count} session(s) a request of the cohort was answered in full before the last one was written: its \
             answers are too short to be in flight together."
        )
    })
}

/// Levels in which the client was late by more than a tenth of the median time to the first token:
/// its own lateness is then a part of what is shown.
fn late(facts: &Facts, figures: &Figures) -> Vec<String> {
    let said = |level: &Level| {
        let name = level.name.as_deref()?;
        let scored = facts
            .sessions
            .iter()
            .filter(|s| s.planned.role == Role::Scored);
        let late: Vec<f64> = scored
            .filter_map(|s| {
                let at =
                    |metric: &str| figures.value(&format!("session/{}/{name}/{metric}", s.name()));
                let (most, ttft) = (at("late_most")?, at("ttft")?);
                (most > ttft / 10.0).then_some(most)
            })
            .collect();
        let most = late.iter().copied().reduce(f64::max)?;
        Some(format!(
            "At {} the client sent a request up to {} s after its time in {} scored session(s), more than a tenth of the \
             median time to the first token: latencies, counted from the scheduled time, hold it.",
            level_title(name),
            three_digits(most),
            late.len()
        ))
    };
    facts.plan.levels().iter().filter_map(said).collect()
}

/// How the warning begins that the machine was not quiet.
const OTHER_WORK: &str = "The machine had other work";

impl Verdict {
    /// Whether the machine had other work during scored sessions.
    pub fn other_work(&self) -> bool {
        self.warnings.iter().any(|w| w.starts_with(OTHER_WORK))
    }
}

/// Scored sessions in which more was waiting to run than a study of one server can account for: a
/// mean load above the processors and one, the one for this program itself.
fn crowded(facts: &Facts, figures: &Figures) -> Option<String> {
    let cpus = facts.host.logical_cpus?;
    let scored = facts
        .sessions
        .iter()
        .filter(|s| s.planned.role == Role::Scored);
    let loads: Vec<f64> = scored
        .filter_map(|s| figures.value(&format!("session/{}/host_load1", s.name())))
        .filter(|load| *load > f64::from(cpus) + 1.0)
        .collect();
    let worst = loads.iter().copied().reduce(f64::max)?;
    Some(format!(
        "{OTHER_WORK}: the mean load was above {} in {} scored session(s), at most {worst:.1} on {cpus} \
         processors. Both arms were slowed, and not alike: measure again on a quiet machine.",
        cpus + 1,
        loads.len()
    ))
}

/// Arms whose token gaps hold more than a twentieth of the client's own work, at the level where
/// they hold most of it.
fn costly<'a>(facts: &'a Facts, figures: &'a Figures) -> impl Iterator<Item = String> + 'a {
    facts.plan.arms.iter().filter_map(|arm| {
        let levels = facts.plan.levels().into_iter();
        let shares = levels.filter_map(|level| {
            let scope = level.scope(&format!("arm/{arm}"));
            figures.value(&format!("{scope}/client_cost_share"))
        });
        let most = shares.reduce(f64::max).filter(|share| *share > 0.05)?;
        Some(format!(
            "The client's own work (CPU time of its threads) was {}% of the time between tokens of {arm}: the tokens came \
             so fast that times hold some of it.",
            three_digits(most * 100.0)
        ))
    })
}

/// Prompts whose ids, asked for afterwards, are not as many as the answer's own count: the hash is
/// then of another prompt than the one that was answered.
fn miscounted(facts: &Facts) -> Option<String> {
    let asked = facts
        .sessions
        .iter()
        .flat_map(|s| s.prompts.iter().map(move |p| (s, p)));
    let wrong = asked
        .filter(|(s, p)| {
            let answer = s.requests.iter().find(|r| r.index == p.index);
            let stated = answer.and_then(|r| r.prompt_tokens);
            matches!((stated, p.prompt_tokens), (Some(a), Some(b)) if a != b)
        })
        .count();
    (wrong > 0).then(|| {
        format!(
            "The prompt tokens that the server gave when asked afterwards are not as many as its answer counted in \
             {wrong} request(s): those hashes are not of the prompts that were answered."
        )
    })
}

/// Arms whose streams do not tell how many tokens their first event stands for.
fn assumed_first_events(facts: &Facts) -> impl Iterator<Item = String> {
    facts.plan.arms.iter().filter_map(|arm| {
        let sessions = facts.sessions.iter().filter(|s| s.planned.arm == *arm);
        let assumed = sessions
            .filter(|s| s.planned.role == Role::Scored)
            .flat_map(|s| &s.requests)
            .filter(|r| r.scored && r.first_event_source == Some(TokenSource::Events))
            .count();
        (assumed > 0).then(|| {
            format!(
                "{arm} does not say how many tokens the first event of its stream stands for in {assumed} request(s): \
                 one is assumed, so its decode rate is too high if tokens were held back before it. \
                 (llama.cpp says it where a body asks for timings_per_token.)"
            )
        })
    })
}

/// Arms that do not state how much of a prompt came from their cache where the study declares that
/// nothing did.
fn unshown(facts: &Facts, expected: ExpectCached) -> Vec<String> {
    let steps = facts.plan.steps();
    let cold = |r: &RequestRecord| {
        let step = steps.get(r.index as usize);
        step.is_some_and(|s| s.declared_cold(expected).is_some())
    };
    let said_of = |arm: &String| {
        let sessions = facts.sessions.iter().filter(|s| s.planned.arm == *arm);
        let silent = sessions
            .flat_map(|s| &s.requests)
            .filter(|r| r.error.is_none() && r.cached_tokens.is_none())
            .filter(|r| cold(r))
            .count();
        (silent > 0).then(|| {
            format!(
                "{arm} does not state its cached prompt tokens in {silent} request(s) that the study declares cold: \
                 that they were is not shown."
            )
        })
    };
    facts.plan.arms.iter().filter_map(said_of).collect()
}

fn has_ids(figures: &Figures, arms: &[String]) -> bool {
    figures
        .identity()
        .iter()
        .any(|i| i.arms == arms && i.kind == HashKind::Generated && i.compared > 0)
}

fn build_warning(arm: &str, launch: &LaunchFacts) -> Option<String> {
    let fact = |key: &str| launch.build.get(key).map(String::as_str);
    let version = fact("version").unwrap_or("version unknown");
    if launch.kind != ServerKind::LlamaCpp {
        return None;
    }
    match fact("build") {
        Some("wheel") => {
            let features = fact("features")
                .map(|f| format!(" It reports: {f}."))
                .unwrap_or_default();
            Some(format!(
                "The baseline was not built for this host: {arm} is llama.cpp {version} from a prebuilt wheel.{features}"
            ))
        }
        Some("native" | "source") => None,
        _ => Some(format!(
            "How the baseline was built is not known: {arm} is llama.cpp {version} as found on this host."
        )),
    }
}

fn does_not_follow(facts: &Facts, figures: &Figures) -> Vec<String> {
    let mut out = vec![
        format!(
            "Anything about another host, another model, or another workload than these {} saved requests.",
            facts.plan.bodies.len()
        ),
        "Anything about answer quality: only times, counts and token equality were recorded."
            .into(),
    ];
    if figures
        .comparisons()
        .iter()
        .any(|c| c.no_interval.is_some())
    {
        out.push(
            "That a ratio without an interval would hold on a second run: its noise is not known."
                .into(),
        );
    }
    for found in figures.alone().iter().filter(|a| !a.differing.is_empty()) {
        out.push(format!(
            "That {} gives a request the same answer alone and in company: {} of {} answers of its cohorts have other \
             {} than the same request alone.",
            found.arm,
            found.compared - found.identical,
            found.compared,
            found.kind.title()
        ));
    }
    if figures.ended_early().is_some() {
        out.push(
            "That the ratio is as far from 1 as it looks: a study that ends at an early look ends, more often than not, \
             on a large value of it."
                .into(),
        );
    }
    let across = figures
        .identity()
        .iter()
        .find(|i| i.arms.len() > 1 && i.kind == HashKind::Text);
    if across.is_some_and(|i| i.equal() == Some(false)) {
        out.push(
            "That the arms did the same work token for token: their texts differ in at least one request, so \
             times of whole answers compare different answers."
                .into(),
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_carry_three_digits() {
        for (value, text) in [
            (71.34, "71.3"),
            (0.5273, "0.527"),
            (1240.4, "1240"),
            (0.00123, "0.00123"),
            (0.0, "0"),
        ] {
            assert_eq!(three_digits(value), text);
        }
    }
}
