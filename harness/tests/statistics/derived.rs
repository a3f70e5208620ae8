//! What is said beside an interval: p, Holm, sessions that would settle, bounds of percentiles, and
//! what a study can see before it starts.

use crate::archive_fixture::{sealed, study};
use palindrome_harness::archive::{Archive, Facts};
use palindrome_harness::derive::{Figures, Label, Metric, Spread, derive, foresee};
use palindrome_harness::stats::{holm, quartets_to_settle};

fn facts(top: &str) -> (tempfile::TempDir, Facts) {
    let root = tempfile::tempdir().unwrap();
    let coins = [true, false, true];
    let path = sealed(root.path(), &coins);
    let mut facts = Archive::open(&path).unwrap().facts().unwrap();
    facts.study_toml = format!("{top}\n{}", study(&coins)).into_bytes();
    (root, facts)
}

#[track_caller]
fn at(figures: &Figures, id: &str) -> f64 {
    let found = figures.get(id).unwrap_or_else(|| panic!("no figure {id}"));
    found.value().unwrap_or_else(|| panic!("{id} has no value"))
}

#[test]
fn metrics_other_than_the_primary_are_adjusted_among_themselves() {
    let (_root, facts) = facts("primary = \"ttft\"");
    let figures = derive(&facts);
    let others = [Metric::DecodeRate, Metric::PromptRate, Metric::ClientWall];
    let id = |m: Metric, name: &str| format!("compare/B-over-A/{}/{name}", m.key());
    let p: Vec<f64> = others.iter().map(|m| at(&figures, &id(*m, "p"))).collect();
    assert!(p.iter().all(|p| (0.0..0.05).contains(p)), "{p:?}");
    for (adjusted, metric) in holm(&p).into_iter().zip(others) {
        assert_eq!(at(&figures, &id(metric, "p_holm")), adjusted);
    }
    assert!(at(&figures, &id(Metric::Ttft, "p")) > 0.0);
    assert!(figures.get(&id(Metric::Ttft, "p_holm")).is_none());
}

#[test]
fn what_would_settle_a_margin_follows_from_effect_and_noise() {
    let (_root, mut facts) = facts("");
    let ratio = at(&derive(&facts), "compare/B-over-A/decode_rate/ratio");
    // A margin that the interval holds but that is not the estimate itself.
    let margin = 1.0 - ratio * 1.001;
    facts.study_toml = format!("margin = {margin}\n{}", study(&[true, false, true])).into_bytes();
    let figures = derive(&facts);
    let declared = figures.get("study/margin").unwrap();
    assert_eq!(
        (declared.value(), declared.label()),
        (Some(margin), Label::Assumed)
    );
    let at = |name: &str| at(&figures, &format!("compare/B-over-A/decode_rate/{name}"));
    let needed = quartets_to_settle(at("log_ratio") - libm::log1p(-margin), at("pair_deviation"));
    assert!(needed.unwrap() > 3, "{needed:?}");
    assert_eq!(at("quartets_to_settle"), f64::from(needed.unwrap()));
    assert!(!figures.is_settled());
    assert!(
        figures
            .get("compare/B-over-A/ttft/quartets_to_settle")
            .is_none()
    );
}

#[test]
fn six_sessions_bound_no_percentile() {
    let (_root, facts) = facts("");
    let figures = derive(&facts);
    let worst = at(&figures, "session/01-A/worst_ttft");
    let requests = ["000", "001"].map(|r| at(&figures, &format!("request/01-A/{r}/ttft")));
    assert_eq!(worst, requests[0].max(requests[1]));
    for percent in [90, 95, 99] {
        let id = format!("arm/A/worst_ttft_p{percent}_bound");
        assert_eq!(figures.get(&id).unwrap().value(), None, "missing, not 0");
    }
}

#[test]
fn a_study_knows_what_it_can_see_once_the_spread_is_known() {
    let plan = crate::archive_fixture::plan(&[true, false, true]);
    let unknown = foresee(&plan, Metric::DecodeRate, Some(0.05), None);
    assert!(
        unknown
            .sentence
            .contains("is not known: `palindrome aa` measures it")
    );
    assert_eq!((unknown.log_effect, unknown.margin_unseen), (None, None));
    let spread = |log_deviation| Spread {
        log_deviation,
        source: "assumed by the study file".to_owned(),
    };
    let quiet = foresee(&plan, Metric::DecodeRate, Some(0.05), Some(&spread(0.01)));
    assert!((quiet.log_effect.unwrap() - 0.015_354_461).abs() < 1e-8);
    assert_eq!(quiet.margin_unseen, None);
    assert_eq!(
        quiet.sentence,
        "With 6 pairs of sessions that differ by 1.01% (assumed by the study file), the smallest difference in decode \
         rate that is detected 4 times in 5 is 1.55%."
    );
    let noisy = foresee(&plan, Metric::DecodeRate, Some(0.05), Some(&spread(0.05)));
    let why = noisy.margin_unseen.unwrap();
    let says = "the margin of 5.00% is below the 7.98% that 6 pairs of sessions can see here; 5 quartets would see it";
    assert_eq!(why, says);
    // One quartet sees nothing, whatever the spread.
    let one = crate::archive_fixture::plan(&[true]);
    let one = foresee(&one, Metric::DecodeRate, Some(0.05), Some(&spread(0.01)));
    assert!(one.sentence.contains("no difference is detected"));
}
