//! The verdict as a table for a terminal: plain text, no colour.

use super::format::{bare, range};
use crate::derive::{Comparison, Figures, Metric, Published, gists, three_digits};
use crate::study::{at_level, level_title};

/// Warnings, each arm's totals, the comparison by pairs of sessions, the verdict's sentence; a label
/// letter after each value. Ends with a newline.
pub fn verdict_table(figures: &Figures) -> String {
    let mut out = String::new();
    let warnings = &figures.verdict().warnings;
    for warning in warnings {
        out.push_str("! ");
        out.push_str(warning);
        out.push('\n');
    }
    if !warnings.is_empty() {
        out.push('\n');
    }
    out.push_str(&aligned(&totals(figures)));
    if !figures.comparisons().is_empty() {
        out.push('\n');
        out.push_str(&aligned(&compared(figures)));
    }
    for line in company(figures) {
        out.push_str(&line);
        out.push('\n');
    }
    for line in gists(figures.settings()) {
        out.push_str("settings  ");
        out.push_str(&line);
        out.push('\n');
    }
    for found in figures.noise() {
        out.push_str("noise     ");
        out.push_str(&found.line());
        out.push('\n');
    }
    out.push_str("M measured, C calculated from measured figures\n");
    if shows_p(figures) {
        out.push_str(&about_p(figures));
        out.push('\n');
    }
    out.push('\n');
    out.push_str(&figures.verdict().sentence);
    out.push('\n');
    out
}

/// How many answers of each arm's cohorts are those of the same request alone.
pub(super) fn company(figures: &Figures) -> impl Iterator<Item = String> {
    figures.alone().iter().map(|a| {
        let at = |name: &str| figures.get(&format!("arm/{}/{name}", a.arm));
        let unseen = match a.unseen {
            0 => String::new(),
            n => format!(" ({n} not shown)"),
        };
        let cached = match (
            at("alone_cached_tokens").and_then(Published::value),
            at("alone_prompt_tokens").and_then(Published::value),
        ) {
            (Some(0.0), _) => "no prompt token from a cache".to_owned(),
            (Some(cached), Some(prompt)) => {
                format!("{cached:.0} of {prompt:.0} prompt tokens from its cache")
            }
            _ => "what came from its cache is not stated".to_owned(),
        };
        format!(
            "{}: {} of {} answers in company have the {} of the same request alone{unseen}; alone, {cached}",
            a.arm,
            bare(at("alone_identical")),
            bare(at("alone_compared")),
            a.kind.title(),
        )
    })
}

/// What the arms' own figures are over.
pub(super) const TOTALS: &str = "All requests together";
/// What a ratio with an interval is over.
pub(super) const PAIRED: &str = "Same request, neighbouring sessions";

/// Arms by metric, and their quotient.
fn totals(figures: &Figures) -> Vec<Vec<String>> {
    let arms = figures.arms();
    let mut head = vec![TOTALS.to_string()];
    head.extend(arms.iter().cloned());
    head.extend(quotient_heads(arms));
    let mut rows = vec![head];
    for (level, metric) in figures.rows() {
        let mut row = vec![leveled(metric_title(metric), level.as_deref())];
        for arm in arms {
            let id = arm_figure(arm, level.as_deref(), metric);
            row.push(bare(figures.get(&id)));
        }
        for c in comparisons(figures, level.as_deref(), metric) {
            row.push(bare(figures.get(&c.quotient_of_totals())));
        }
        rows.push(row);
    }
    rows
}

/// Ratios over the first arm with their intervals, by metric.
fn compared(figures: &Figures) -> Vec<Vec<String>> {
    let mut head = vec![PAIRED.to_string()];
    let with_p = shows_p(figures);
    for quotient in quotient_heads(figures.arms()) {
        head.extend([quotient, figures.interval_title()]);
        head.extend(with_p.then(|| P.to_owned()));
    }
    let mut rows = vec![head];
    for (level, metric) in figures.rows() {
        let mut row = vec![leveled(&ratio_title(metric), level.as_deref())];
        for c in comparisons(figures, level.as_deref(), metric) {
            row.push(bare(figures.get(&format!("{}/ratio", c.prefix))));
            row.push(match c.no_interval {
                Some(_) => "none".into(),
                None => range(figures, &c.prefix),
            });
            row.extend(with_p.then(|| p(figures, c)));
        }
        rows.push(row);
    }
    rows
}

/// Head of the column of p.
pub(super) const P: &str = "p";

/// Whether any comparison has a p.
pub(super) fn shows_p(figures: &Figures) -> bool {
    let mut all = figures.comparisons().iter();
    all.any(|c| figures.value(&format!("{}/p", c.prefix)).is_some())
}

/// p of no difference: of the primary metric as it is, of the others adjusted for their number.
pub(super) fn p(figures: &Figures, c: &Comparison) -> String {
    let at = |name: &str| figures.get(&format!("{}/{name}", c.prefix));
    let found = at("p_holm").or_else(|| at("p"));
    match found.and_then(Published::value) {
        Some(p) if p < 0.001 => "<0.001 C".to_owned(),
        _ => bare(found),
    }
}

/// What p is, in words.
pub(super) fn about_p(figures: &Figures) -> String {
    let look = match figures.look() {
        Some(look) => format!(
            "; at this look a p below {} shows a difference",
            three_digits(look.level)
        ),
        None => String::new(),
    };
    format!(
        "p: the chance of a difference at least this large if there were none; rows other than {} inform, and theirs are \
         adjusted for how many they are (Holm){look}",
        primary_in_words(figures)
    )
}

/// `B / A` for every arm but the first.
pub(super) fn quotient_heads(arms: &[String]) -> impl Iterator<Item = String> {
    let pairs = arms.split_first().into_iter();
    pairs.flat_map(|(base, others)| others.iter().map(move |other| format!("{other} / {base}")))
}

/// A metric's comparisons at a level, in the order of the arms.
pub(super) fn comparisons<'a>(
    figures: &'a Figures,
    level: Option<&'a str>,
    metric: Metric,
) -> impl Iterator<Item = &'a Comparison> {
    let all = figures.comparisons().iter();
    all.filter(move |c| c.metric == metric && c.level.as_deref() == level)
}

/// Id of an arm's own figure of a metric at a level.
pub(super) fn arm_figure(arm: &str, level: Option<&str>, metric: Metric) -> String {
    format!(
        "{}/{}",
        at_level(&format!("arm/{arm}"), level),
        metric.key()
    )
}

/// A metric in a sentence, with its level where there is one: `throughput at concurrency 4`.
pub(crate) fn in_words(metric: Metric, level: Option<&str>) -> String {
    let metric = metric.title().to_lowercase();
    match level {
        Some(level) => format!("{metric} at {}", level_title(level)),
        None => metric,
    }
}

/// The primary metric, with its level where there is one.
pub(super) fn primary_in_words(figures: &Figures) -> String {
    let level = figures.protocol().primary_level();
    in_words(figures.primary(), level.as_deref())
}

/// A row's title, with the level where there is one.
pub(super) fn leveled(title: &str, level: Option<&str>) -> String {
    match level {
        Some(level) => format!("{}: {title}", level_title(level)),
        None => title.to_owned(),
    }
}

/// A metric with its unit and, where it is one, "median".
pub(super) fn metric_title(metric: Metric) -> &'static str {
    match metric {
        Metric::DecodeRate => "Decode, tok/s",
        Metric::PromptRate => "Prompt, tok/s",
        Metric::Ttft => "Time to first token, median s",
        Metric::ClientWall => "Client wall, median s",
        Metric::CohortRate => "Cohort, tok/s",
        Metric::CohortWall => "Cohort wall, median s",
        Metric::Throughput => "Throughput, tok/s",
        Metric::Tpot => "Time per output token, median s",
        Metric::Goodput => "Goodput, requests/s",
    }
}

/// What the ratio of a metric is: of the sessions themselves, or of the median request.
pub(super) fn ratio_title(metric: Metric) -> String {
    let of = if metric.of_session() {
        "ratio"
    } else {
        "median ratio"
    };
    format!("{}, {of}", metric.title())
}

/// Columns padded to their widest cell; the first to the left, the rest to the right.
pub(crate) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| {
        rows.iter()
            .filter_map(|r| r.get(c))
            .map(|s| s.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (c, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[c].saturating_sub(cell.chars().count()));
            let parts = if c == 0 {
                [cell.as_str(), &pad, ""]
            } else {
                ["   ", &pad, cell]
            };
            line.push_str(&parts.concat());
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}
