//! Planted truths: what is put into a study comes out of it, in size and sign, and nothing else does.
//!
//! One default study of mock servers is really run (processes, sockets, archive). Its requests are
//! then timed by the mock's own scripts, exactly, with seeded noise, and derived like any study: no
//! figure here depends on a wall clock.

use std::sync::OnceLock;

use crate::common::Bench;
use palindrome_harness::archive::{Archive, Facts};
use palindrome_harness::derive::{Figures, derive};
use palindrome_harness::server::mock::Reply;
use palindrome_harness::simulate::Random;
use palindrome_harness::stats::{
    Decision, PairEffect, PairOrder, against_margin, pair_order_estimate,
};
use palindrome_harness::study::PlannedSession;

const TOKENS: u32 = 20;

/// A default study (3 quartets, burn-in) of one mock server under two names.
fn ran() -> &'static Facts {
    static RAN: OnceLock<Facts> = OnceLock::new();
    RAN.get_or_init(|| {
        let script = format!("[[reply]]\nprompt_ms = 1\ntokens = {TOKENS}\ngap_ms = 0.5\n");
        let bench = Bench::new("quartets = 3", "", &[&script, &script]);
        let writer = bench.run().unwrap();
        let facts = Archive::open(writer.path()).unwrap().facts().unwrap();
        assert_eq!(facts.sessions.len(), 13);
        facts
    })
}

/// What a session's answers are like: 200 ms to the first token, then one in 20 ms.
fn usual() -> Reply {
    Reply {
        prompt_ms: 200.0,
        tokens: TOKENS,
        gap_ms: 20.0,
        ..Reply::default()
    }
}

/// The study with every request timed as `reply` scripts it for its session.
fn timed(reply: impl Fn(&PlannedSession) -> Reply) -> Facts {
    let mut facts = ran().clone();
    for session in &mut facts.sessions {
        let schedule = reply(&session.planned).schedule();
        let (first, last) = (schedule[0].0, schedule[schedule.len() - 1].0);
        for request in &mut session.requests {
            let at = |ms: f64| request.sent_ns + (ms * 1e6).round() as u64;
            let (first, last) = (at(first), at(last));
            request.first_byte_ns = Some(first);
            request.first_token_ns = Some(first);
            request.first_content_ns = Some(first);
            request.last_token_ns = Some(last);
            request.done_ns = last + 1_000_000;
        }
    }
    facts
}

/// The factor by which each session is slower: a seeded 0.3%, and a drift a session.
fn slowness(seed: u64, drift: f64) -> Vec<f64> {
    let mut random = Random::new(seed);
    (0..13)
        .map(|i| (0.003 * random.normal() + drift * f64::from(i)).exp())
        .collect()
}

/// The study where B's answers are as `planted` changes them, on a machine with that slowness.
fn study(slowness: &[f64], planted: impl Fn(&mut Reply)) -> Facts {
    timed(|session| {
        let mut reply = usual();
        if session.arm == "B" {
            planted(&mut reply);
        }
        let slower = slowness[session.index as usize];
        reply.prompt_ms *= slower;
        reply.gap_ms *= slower;
        reply
    })
}

#[track_caller]
fn at(figures: &Figures, name: &str) -> f64 {
    let id = format!("compare/B-over-A/{name}");
    figures.value(&id).unwrap_or_else(|| panic!("no {id}"))
}

/// The gate's decision on the primary metric, decode rate.
fn decision(figures: &Figures, margin: f64) -> Decision {
    let c = figures.primary_comparisons().next().unwrap();
    against_margin(figures.interval(c).unwrap(), margin, true)
}

#[test]
fn a_decode_that_is_5_percent_slower_is_found_with_size_and_sign() {
    for seed in 0..5 {
        let figures = derive(&study(&slowness(seed, 0.0), |b| b.gap_ms *= 1.05));
        let (ratio, low, high) = (
            at(&figures, "decode_rate/ratio"),
            at(&figures, "decode_rate/ratio_low"),
            at(&figures, "decode_rate/ratio_high"),
        );
        assert!((ratio - 1.0 / 1.05).abs() < 0.006, "{ratio}");
        assert!(low < ratio && ratio < high && high < 1.0, "{low} {high}");
        assert!(at(&figures, "decode_rate/p") < 0.001);
        assert_eq!(decision(&figures, 0.02), Decision::Regression);
        assert!(
            figures
                .verdict()
                .sentence
                .contains("the interval lies below 1")
        );
    }
}

#[test]
fn twenty_milliseconds_more_to_the_first_token_are_found_and_only_there() {
    for seed in 0..5 {
        let figures = derive(&study(&slowness(seed, 0.0), |b| b.prompt_ms += 20.0));
        let ratio = at(&figures, "ttft/ratio");
        assert!((ratio - 1.1).abs() < 0.006, "{ratio}");
        assert!(at(&figures, "ttft/ratio_low") > 1.0);
        assert!(at(&figures, "ttft/p_holm") < 0.001);
        let rate = at(&figures, "decode_rate/ratio");
        assert!((rate - 1.0).abs() < 0.006, "{rate}");
        assert_eq!(decision(&figures, 0.02), Decision::Pass);
    }
}

#[test]
fn a_against_a_finds_nothing() {
    let mut shown = 0;
    for seed in 0..40 {
        let figures = derive(&study(&slowness(seed, 0.0), |_| {}));
        let ratio = at(&figures, "decode_rate/ratio");
        assert!((ratio - 1.0).abs() < 0.008, "{ratio}");
        assert_eq!(decision(&figures, 0.02), Decision::Pass, "seed {seed}");
        if at(&figures, "decode_rate/p") < 0.05 {
            shown += 1;
        }
    }
    // 2 of 40 are expected at a nominal 5%.
    assert!(shown <= 5, "{shown} of 40 A/A studies show a difference");
}

#[test]
fn a_drift_of_1_percent_a_session_moves_neither_estimate_nor_verdict() {
    for planted in [1.0, 1.05] {
        let figures = |drift| derive(&study(&slowness(3, drift), |b| b.gap_ms *= planted));
        let (still, drifting) = (figures(0.0), figures(0.01));
        for metric in ["decode_rate", "ttft", "client_wall", "prompt_rate"] {
            for name in [
                "log_ratio",
                "log_ratio_low",
                "log_ratio_high",
                "pair_deviation",
            ] {
                let name = format!("{metric}/{name}");
                let moved = at(&drifting, &name) - at(&still, &name);
                // The clock's nanoseconds, and the added millisecond that does not drift.
                let tolerance = if metric == "client_wall" { 1e-4 } else { 1e-7 };
                assert!(moved.abs() < tolerance, "{name} moved by {moved}");
            }
        }
        // It is where it belongs: each session decodes 1% slower than the one before.
        let drift = at(&drifting, "decode_rate/drift_log") - at(&still, "decode_rate/drift_log");
        assert!((drift + 0.01).abs() < 1e-6, "{drift}");
        assert_eq!(
            still.verdict().sentence,
            drifting_sentence(&drifting, &still)
        );
        assert_eq!(decision(&still, 0.02), decision(&drifting, 0.02));
        assert_eq!(still.is_settled(), drifting.is_settled());
    }
}

/// The drifting study's sentence with the arms' own totals put as the still one has them: rates of a
/// slowing machine are lower, the ratio and its interval are not.
fn drifting_sentence(drifting: &Figures, still: &Figures) -> String {
    let claim = |figures: &Figures| -> (String, String) {
        let (claim, totals) = figures
            .verdict()
            .sentence
            .split_once(" Over all tokens")
            .unwrap();
        (claim.to_owned(), totals.to_owned())
    };
    format!("{} Over all tokens{}", claim(drifting).0, claim(still).1)
}

#[test]
fn swapped_labels_flip_the_sign_and_nothing_else() {
    let facts = study(&slowness(9, 0.0), |b| b.gap_ms *= 1.05);
    let mut swapped = facts.clone();
    let swap = |arm: &mut String| *arm = if arm == "A" { "B".into() } else { "A".into() };
    swapped
        .plan
        .sessions
        .iter_mut()
        .for_each(|s| swap(&mut s.arm));
    for session in &mut swapped.sessions {
        swap(&mut session.planned.arm);
        swap(&mut session.launch.arm);
    }
    let (one, other) = (derive(&facts), derive(&swapped));
    let close = |a: f64, b: f64, what: &str| assert!((a - b).abs() < 1e-12, "{what}: {a} {b}");
    for metric in ["decode_rate", "prompt_rate", "ttft", "client_wall"] {
        let both = |name: &str| {
            let name = format!("{metric}/{name}");
            (at(&one, &name), at(&other, &name))
        };
        let (a, b) = both("log_ratio");
        close(a, -b, metric);
        close(both("log_ratio_low").0, -both("log_ratio_high").1, metric);
        close(both("log_ratio_high").0, -both("log_ratio_low").1, metric);
        for same in ["drift_log", "pair_deviation", "p", "sign_flip_p"] {
            let (a, b) = both(same);
            close(a, b, same);
        }
    }
    assert_eq!(one.len(), other.len());
}

#[test]
fn a_whole_study_and_a_simulated_one_are_estimated_by_the_same_bits() {
    let facts = study(&slowness(4, 0.0), |b| b.gap_ms *= 1.02);
    let figures = derive(&facts);
    let c = figures.primary_comparisons().next().unwrap();
    let logs = (0..6).map(|k| {
        let id = format!("pair/{k:02}/B-over-A/decode_rate/log_ratio");
        figures.value(&id).unwrap()
    });
    let firsts = facts.plan.sessions.iter().filter(|s| s.pair.is_some());
    let orders = firsts.step_by(2).map(|s| match s.arm.as_str() {
        "A" => PairOrder::Ab,
        _ => PairOrder::Ba,
    });
    let pairs: Vec<PairEffect> = logs
        .zip(orders)
        .map(|(log_ratio, order)| PairEffect { log_ratio, order })
        .collect();
    let interval = pair_order_estimate(&pairs).unwrap().interval.unwrap();
    let published = figures.interval(c).unwrap();
    assert_eq!(published.low.to_bits(), libm::exp(interval.low).to_bits());
    assert_eq!(published.high.to_bits(), libm::exp(interval.high).to_bits());
}
