//! The page's first half: what a reader needs to believe or doubt the outcome.

use super::chart::drawn_rate;
use super::detail;
use super::format::{bare, range, with_unit};
use super::page::{Block, Page, Table};
use super::terminal::{
    P, PAIRED, TOTALS, about_p, arm_figure, company, comparisons, leveled, metric_title, p,
    primary_in_words, quotient_heads, shows_p,
};
use super::{settings, usage};
use crate::archive::{Facts, SessionFacts, short};
use crate::derive::{Comparison, Figures, Label, detectable, settling};
use crate::stats::{Decision, against_margin};
use crate::study::{Limits, Protocol};

/// What the report is made of.
pub(super) struct Source<'a> {
    pub(super) archive_name: &'a str,
    pub(super) facts: &'a Facts,
    pub(super) figures: &'a Figures,
    /// Why the seal does not hold; absent when it does.
    pub(super) seal_problem: Option<String>,
    /// sha256 of the manifest, and of each file in it.
    pub(super) manifest_sha256: Option<String>,
    pub(super) files: Vec<(String, String)>,
}

impl Source<'_> {
    /// The first recorded session of an arm.
    pub(super) fn first_of(&self, arm: &str) -> Option<&SessionFacts> {
        self.facts.sessions.iter().find(|s| s.planned.arm == arm)
    }

    fn label(&self, arm: &str) -> String {
        match self.first_of(arm) {
            Some(s) if s.launch.label != arm => format!("{arm} ({})", s.launch.label),
            _ => arm.to_string(),
        }
    }
}

/// Builds the page.
pub(super) fn page(source: &Source<'_>) -> Page {
    let figures = source.figures;
    let mut blocks = Vec::new();
    if let Some(problem) = &source.seal_problem {
        blocks.push(Block::Warning(format!(
            "This evidence is not sealed as it stands: {problem}."
        )));
    }
    blocks.extend(
        figures
            .verdict()
            .warnings
            .iter()
            .cloned()
            .map(Block::Warning),
    );
    blocks.push(Block::Verdict(figures.verdict().sentence.clone()));
    blocks.push(Block::Text(format!(
        "Labels: M measured (read off a clock or counter in this study), C calculated (a named formula over other \
         figures), S simulated, A assumed. This study holds {} S and {} A figures. A dash is a missing value.",
        labelled(figures, Label::Simulated),
        labelled(figures, Label::Assumed)
    )));
    blocks.extend(protocol(source).map(Block::Text));
    blocks.push(Block::Heading("Result"));
    blocks.push(Block::Table(totals(source)));
    blocks.push(Block::Text(
        "Each arm's own figures over all its scored requests: tokens over seconds for rates, so a long request weighs \
         more than a short one, and medians for times. The last columns divide the figures that stand before them. They \
         have no interval, because requests are not independent."
            .into(),
    ));
    if !figures.comparisons().is_empty() {
        blocks.push(Block::Table(compared(figures)));
        let cohorts = match figures.protocol() {
            Protocol::Fresh | Protocol::Warm => "",
            Protocol::Paired { .. } => {
                " A pair is one session here, which served both arms' requests in turns."
            }
            Protocol::Cohort { .. } => {
                " Cohort rate and wall are one value a session, compared as they are."
            }
            Protocol::ClosedLoop { .. }
            | Protocol::OpenLoop { limits: None, .. }
            | Protocol::Arrivals { limits: None, .. } => {
                " Throughput is one value a session and level, compared as it is."
            }
            Protocol::OpenLoop { .. } | Protocol::Arrivals { .. } => {
                " Goodput and throughput are one value a session and level, compared as they are."
            }
        };
        blocks.push(Block::Text(format!(
            "The verdict is about these ratios. In each pair of neighbouring sessions every request is compared with \
             itself, and the median request stands for the pair; the ratio is the mean over pairs (in logarithms), \
             adjusted for drift.{cohorts} The study declares {} as its primary metric; the others inform.",
            primary_in_words(figures)
        )));
    }
    if shows_p(figures) {
        blocks.push(Block::Text(format!("{}.", about_p(figures))));
    }
    blocks.extend(reasons(figures));
    blocks.extend(open_margins(figures).map(Block::Text));
    blocks.extend(company(figures).map(|line| Block::Text(format!("{line}."))));
    if !figures.comparisons().is_empty() {
        blocks.push(Block::Text(detectable(source.facts.plan.pairs())));
    }
    blocks.push(Block::Chart(format!(
        "Left: each session's {} in the order the sessions ran, from zero; grey lines join the two sessions of a pair. \
         Right: the ratio of each metric on a logarithmic axis; hollow marks are pairs, the diamond is the estimate, \
         the bar its {} where there is one.",
        drawn_rate(figures).words(),
        figures.interval_title()
    )));
    blocks.push(Block::Heading("What does not follow"));
    blocks.push(Block::List(figures.verdict().does_not_follow.clone()));
    blocks.push(Block::Heading("What was compared"));
    blocks.push(Block::Table(arms(source)));
    blocks.extend(settings::section(figures));
    blocks.push(Block::Heading("Where and when"));
    blocks.push(Block::List(host(source)));
    detail::push(source, &mut blocks);
    Page {
        title: format!("Study: {}", figures.study()),
        question: question(source),
        blocks,
    }
}

/// What a good request is, where limits are declared; with a space before it.
fn good(limits: Option<&Limits>) -> String {
    let Some(limits) = limits else {
        return String::new();
    };
    let limit = |name: &str, limit: Option<f64>| limit.map(|s| format!("{name} of {s} s"));
    let all = [
        limit("time to first token", limits.ttft_s),
        limit("time per output token", limits.tpot_s),
    ];
    let all: Vec<String> = all.into_iter().flatten().collect();
    format!(
        " Goodput is the requests with at most a {} over the level's clock.",
        all.join(" and a ")
    )
}

/// How requests were sent, where it is not one at a time.
fn protocol(source: &Source<'_>) -> Option<String> {
    let bodies = source.facts.plan.bodies.len();
    match source.figures.protocol() {
        Protocol::Fresh => None,
        Protocol::Warm => Some(format!(
            "Protocol: warm. In each session {} warm-ups came first, recorded and discarded; then {bodies} requests, one \
             at a time, each scored only because none of its prompt came from a cache (where the server states it).",
            source.facts.plan.warmups.len()
        )),
        Protocol::Paired { .. } => Some(format!(
            "Protocol: paired in session. Each session's server was switched between the settings of both arms and got \
             each of the {} bodies under both, A B, then B A, in turns; which arm's turn came first alternates between \
             the sessions of a quartet. A session is one observation: the ratio of its two halves.",
            bodies / 2
        )),
        Protocol::ClosedLoop {
            concurrency,
            requests,
            ..
        } => {
            let levels: Vec<String> = concurrency
                .iter()
                .zip(requests)
                .map(|(workers, n)| format!("{n} requests by {workers}"))
                .collect();
            Some(format!(
                "Protocol: a closed loop. In each session, level after level, workers took the {bodies} bodies in order, \
                 over and over, each its next one when its last one was answered: {}. A level's clock runs from its \
                 first request written to its last stream's end, so it holds the end in which fewer are in flight; \
                 throughput is generated tokens over it.",
                levels.join(", ")
            ))
        }
        Protocol::OpenLoop {
            rates_rps,
            requests,
            seed,
            limits,
            ..
        } => {
            let levels: Vec<String> = rates_rps
                .iter()
                .zip(requests)
                .map(|(rate, n)| format!("{n} requests at {rate} a second"))
                .collect();
            Some(format!(
                "Protocol: an open loop. In each session, level after level, the {bodies} bodies were sent in order, over \
                 and over, at times of a Poisson process (seed {seed}), the same in every session and written down \
                 before the first, whether or not earlier requests were answered: {}. Latencies run from the \
                 scheduled time, so a late client or a queue is in them. A level's clock runs from its first scheduled \
                 time to its last stream's end.{}",
                levels.join(", "),
                good(limits.as_ref())
            ))
        }
        Protocol::Arrivals { times_ns, limits } => Some(format!(
            "Protocol: recorded times. In each session the {bodies} bodies were sent in order, each at the time after the \
             start at which it was recorded (over {:.3} s, as the study gives them), whether or not earlier requests \
             were answered. Latencies run from the scheduled time, so a late client or a queue is in them. The clock \
             runs from the first scheduled time to the last stream's end.{}",
            times_ns.last().map_or(0.0, |ns| *ns as f64 / 1e9),
            good(limits.as_ref())
        )),
        Protocol::Cohort {
            copies,
            compare_alone,
        } => {
            let alone = if *compare_alone {
                " Outside that clock and unscored, each body was then replayed alone."
            } else {
                ""
            };
            Some(format!(
                "Protocol: a closed cohort. In each session {} requests ({bodies} bodies, {copies} each) were sent at once, \
                 each to its natural end; the clock runs from the first request written to the last stream's \
                 end. The cohort rate is generated tokens over that time. Prompts and answers overlap in it, so no \
                 prompt rate is shown.{alone}",
                bodies * *copies as usize
            ))
        }
    }
}

/// How many figures carry a label: `no` or a number.
fn labelled(figures: &Figures, label: Label) -> String {
    match figures.all().iter().filter(|f| f.label() == label).count() {
        0 => "no".into(),
        n => n.to_string(),
    }
}

fn question(source: &Source<'_>) -> String {
    if let Some(question) = source.figures.question() {
        return format!("Question: {question}");
    }
    let names: Vec<String> = source
        .figures
        .arms()
        .iter()
        .map(|a| source.label(a))
        .collect();
    let requests = source.facts.plan.bodies.len();
    match names.split_first() {
        Some((base, [])) => {
            format!("Question: how fast does {base} answer {requests} saved requests on this host?")
        }
        Some((base, others)) => format!(
            "Question: how fast do {} and {base} answer the same {requests} saved requests on this host, each session \
             with a fresh server, in mirrored order?",
            others.join(", ")
        ),
        None => String::new(),
    }
}

fn totals(source: &Source<'_>) -> Table {
    let figures = source.figures;
    let mut table = Table::new(&[TOTALS], 1);
    let labels = figures.arms().iter().map(|a| source.label(a));
    table.head.extend(labels);
    table.head.extend(quotient_heads(figures.arms()));
    for (level, metric) in figures.rows() {
        let mut row = vec![leveled(metric_title(metric), level.as_deref())];
        for arm in figures.arms() {
            let id = arm_figure(arm, level.as_deref(), metric);
            row.push(bare(figures.get(&id)));
        }
        for c in comparisons(figures, level.as_deref(), metric) {
            row.push(bare(figures.get(&c.quotient_of_totals())));
        }
        table.rows.push(row);
    }
    table
}

fn compared(figures: &Figures) -> Table {
    let mut table = Table::new(&[PAIRED], 1);
    let with_p = shows_p(figures);
    for quotient in quotient_heads(figures.arms()) {
        table.head.extend([quotient, figures.interval_title()]);
        table.head.extend(with_p.then(|| P.to_owned()));
        table.head.push("better".into());
    }
    for (level, metric) in figures.rows() {
        let mut row = vec![leveled(metric.title(), level.as_deref())];
        for c in comparisons(figures, level.as_deref(), metric) {
            row.push(bare(figures.get(&format!("{}/ratio", c.prefix))));
            row.push(if c.no_interval.is_some() {
                "none".into()
            } else {
                range(figures, &c.prefix)
            });
            row.extend(with_p.then(|| p(figures, c)));
            row.push(if metric.higher_is_better() {
                "above 1".into()
            } else {
                "below 1".into()
            });
        }
        table.rows.push(row);
    }
    table
}

/// How many quartets would settle the margin, where this study's do not.
fn open_margins(figures: &Figures) -> impl Iterator<Item = String> {
    let margin = figures.value("study/margin").unwrap_or_default();
    let metric = figures.primary();
    let open = move |c: &&Comparison| {
        let interval = figures.interval(c);
        let decision = interval.map(|i| against_margin(i, margin, metric.higher_is_better()));
        decision == Some(Decision::Inconclusive)
    };
    let primary = figures.primary_comparisons().filter(open);
    primary.filter_map(move |c| {
        let needed = figures.get(&format!("{}/quartets_to_settle", c.prefix))?;
        Some(format!(
            "The interval of {} / {} does not settle the margin of {margin}: {}.",
            c.other,
            c.base,
            settling(Some(needed))
        ))
    })
}

/// Why there is no interval, each reason once.
fn reasons(figures: &Figures) -> Vec<Block> {
    let mut reasons: Vec<&str> = figures
        .comparisons()
        .iter()
        .filter_map(|c| c.no_interval.as_deref())
        .collect();
    reasons.dedup();
    reasons
        .into_iter()
        .map(|r| Block::Text(format!("Why there is no interval: {r}.")))
        .collect()
}

fn arms(source: &Source<'_>) -> Table {
    let mut table = Table::new(
        &[
            "Arm",
            "Server",
            "Build",
            "Program sha256",
            "Model sha256",
            "Ready, median",
            "Peak RSS",
            "Command",
        ],
        8,
    );
    for arm in source.figures.arms() {
        let Some(session) = source.first_of(arm) else {
            continue;
        };
        let launch = &session.launch;
        let build: Vec<String> = launch
            .build
            .iter()
            .map(|(k, v)| format!("{k}: {v}"))
            .collect();
        let models: Vec<&str> = launch.models.iter().map(|m| short(&m.sha256)).collect();
        let figure = |metric: &str| with_unit(source.figures.get(&format!("arm/{arm}/{metric}")));
        table.rows.push(vec![
            source.label(arm),
            launch.kind.name().into(),
            build.join(", "),
            short(&launch.binary.sha256).into(),
            models.join(", "),
            figure("launch_to_ready"),
            figure("peak_rss"),
            launch.command.join(" "),
        ]);
    }
    table
}

fn host(source: &Source<'_>) -> Vec<String> {
    let host = &source.facts.host;
    let or = |value: &Option<String>| value.clone().unwrap_or_else(|| "not shown".into());
    let gib = |bytes: Option<u64>| {
        bytes.map_or_else(
            || "not shown".into(),
            |b| format!("{:.1} GiB", b as f64 / (1_u64 << 30) as f64),
        )
    };
    let mut out = vec![
        format!(
            "Started {} (UTC), archive {}",
            host.utc, source.archive_name
        ),
        format!(
            "CPU {}, {} logical CPUs, {} physical cores, governor {}",
            or(&host.cpu_model),
            host.logical_cpus
                .map_or_else(|| "?".into(), |n| n.to_string()),
            host.physical_cores
                .map_or_else(|| "?".into(), |n| n.to_string()),
            or(&host.governor)
        ),
        format!(
            "Memory {}, swap {}",
            gib(host.memory_bytes),
            gib(host.swap_bytes)
        ),
        format!(
            "{}, kernel {}, {}, clock source {}",
            or(&host.os),
            or(&host.kernel),
            host.arch,
            or(&host.clocksource)
        ),
    ];
    match host.virtualised {
        Some(true) => out.push("A virtual machine: other tenants may share its cores".into()),
        Some(false) => out.push("Not a virtual machine".into()),
        None => {}
    }
    let checkout = host.checkout.as_ref().map_or_else(
        || "no git checkout".into(),
        |c| {
            format!(
                "commit {}{}",
                short(&c.commit),
                if c.dirty {
                    " with uncommitted changes"
                } else {
                    ""
                }
            )
        },
    );
    out.push(format!("palindrome {}, {checkout}", host.harness_version));
    out.extend(usage::not_shown(source));
    out
}
