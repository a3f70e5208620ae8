//! From published figures to an exit code. Compares; computes no figure.

use super::Exit;
use crate::derive::{Figures, Metric};
use crate::stats::{self, Decision};
use crate::study::Study;

/// What the study's declared identity and margin make of its figures, and why.
pub fn judge(study: &Study, figures: &Figures) -> (Exit, Option<String>) {
    let unmeasured = |arm: &&String| !shows(figures, arm, study.primary);
    if let Some(arm) = figures.arms().iter().find(unmeasured) {
        let metric = study.primary.title().to_lowercase();
        let why = format!(
            "nothing was measured: no answer of {arm} shows a {metric}, which the study is about"
        );
        return (Exit::NothingMeasured, Some(why));
    }
    if let Some(reason) = broken_identity(figures) {
        return (Exit::Identity, Some(reason));
    }
    let Some(margin) = study.margin else {
        return (Exit::Done, None);
    };
    match against_margin(study, figures, margin) {
        Gate::Pass => (Exit::Done, None),
        Gate::Regression(why) => (Exit::Regression, Some(why)),
        Gate::Inconclusive(why) => (Exit::Inconclusive, Some(why)),
    }
}

/// Whether an arm has the metric: over all its scored requests, or at least for one of them.
fn shows(figures: &Figures, arm: &str, metric: Metric) -> bool {
    let (arm, key) = (format!("arm/{arm}/"), metric.key());
    let of_arm = figures.all().iter().filter(|f| f.value().is_some());
    of_arm
        .filter_map(|f| f.id().strip_prefix(&arm))
        .any(|id| id.rsplit('/').next() == Some(key))
}

/// The first comparison of tokens that breaks what the study declares.
fn broken_identity(figures: &Figures) -> Option<String> {
    let differs = figures.identity_broken().next()?;
    let between = if differs.arms.len() == 1 {
        "between its sessions"
    } else {
        "between them"
    };
    Some(format!(
        "{}: {} differ {between} in {} of {} requests, and the study declares them equal",
        differs.arms.join(", "),
        differs.kind.title(),
        differs.differing.len(),
        differs.compared,
    ))
}

enum Gate {
    Pass,
    Regression(String),
    Inconclusive(String),
}

fn against_margin(study: &Study, figures: &Figures, margin: f64) -> Gate {
    let metric = study.primary;
    let mut unsettled = None;
    for c in figures.primary_comparisons() {
        let Some(interval) = figures.interval(c) else {
            let why = c.no_interval.as_deref().unwrap_or("it has no interval");
            unsettled = Some(format!("{} over {}: {why}", c.other, c.base));
            continue;
        };
        match stats::against_margin(interval, margin, metric.higher_is_better()) {
            Decision::Pass => {}
            Decision::Regression => {
                return Gate::Regression(format!(
                    "{} is slower than {} by more than the margin of {margin}",
                    c.other, c.base
                ));
            }
            Decision::Inconclusive => {
                let more = figures.value(&format!("{}/quartets_to_settle", c.prefix));
                unsettled = Some(format!(
                    "{} over {}: the interval {:.4} to {:.4} does not settle a margin of {margin}; {}",
                    c.other,
                    c.base,
                    interval.low,
                    interval.high,
                    settling(more)
                ));
            }
        }
    }
    unsettled.map_or(Gate::Pass, Gate::Inconclusive)
}

/// How many sessions would settle it, in words.
fn settling(quartets: Option<f64>) -> String {
    match quartets {
        Some(n) => format!(
            "{n} quartets ({} sessions an arm) would settle it 4 times in 5, were effect and noise as seen here; start \
             a new study, for adding sessions until it settles is not a test",
            n * 2.0
        ),
        None => {
            "the effect seen lies too close to the margin for 1000 quartets to settle it".to_owned()
        }
    }
}
