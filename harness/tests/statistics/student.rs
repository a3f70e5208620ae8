//! The statistics against scipy's and numpy's values (`golden/stats.py`).

use palindrome_harness::stats::{
    PairEffect, PairOrder, minimum_detectable_effect, pair_order_estimate, sign_flip, t_cdf,
    t_quantile,
};
use serde_json::Value;

fn golden() -> Value {
    serde_json::from_str(include_str!("../golden/stats.json")).unwrap()
}

fn close(found: f64, expected: f64, tolerance: f64, what: &str) {
    let error = (found - expected).abs() / expected.abs().max(1e-3);
    assert!(error < tolerance, "{what}: {found} against {expected}");
}

#[test]
fn student_t_agrees_with_scipy() {
    let golden = golden();
    let rows = golden["t_quantile"].as_array().unwrap();
    assert_eq!(rows.len(), 54);
    for row in rows {
        let (p, df) = (row[0].as_f64().unwrap(), row[1].as_f64().unwrap());
        close(
            t_quantile(p, df),
            row[2].as_f64().unwrap(),
            1e-11,
            &format!("t quantile {p} {df}"),
        );
    }
    for row in golden["t_cdf"].as_array().unwrap() {
        let (t, df) = (row[0].as_f64().unwrap(), row[1].as_f64().unwrap());
        close(
            t_cdf(t, df),
            row[2].as_f64().unwrap(),
            1e-11,
            &format!("t cdf {t} {df}"),
        );
    }
}

#[test]
fn pair_order_estimate_agrees_with_least_squares() {
    for case in golden()["pair_order"].as_array().unwrap() {
        let pairs: Vec<PairEffect> = case["d"]
            .as_array()
            .unwrap()
            .iter()
            .zip(case["order"].as_array().unwrap())
            .map(|(d, s)| PairEffect {
                log_ratio: d.as_f64().unwrap(),
                order: if s.as_i64() == Some(1) {
                    PairOrder::Ab
                } else {
                    PairOrder::Ba
                },
            })
            .collect();
        let estimate = pair_order_estimate(&pairs).unwrap();
        let interval = estimate.interval.unwrap();
        for (found, key) in [
            (estimate.theta, "theta"),
            (estimate.beta, "beta"),
            (interval.low, "low"),
            (interval.high, "high"),
        ] {
            close(
                found,
                case[key].as_f64().unwrap(),
                1e-10,
                &format!("{key} at n = {}", pairs.len()),
            );
        }
    }
}

#[test]
fn minimum_detectable_effects_agree_with_the_noncentral_t() {
    for row in golden()["mde"].as_array().unwrap() {
        let pairs = row[0].as_u64().unwrap() as usize;
        let found = minimum_detectable_effect(pairs).unwrap();
        close(
            found,
            row[1].as_f64().unwrap(),
            1e-6,
            &format!("detectable effect at {pairs} pairs"),
        );
    }
}

#[test]
fn sign_flip_agrees_with_enumeration() {
    for case in golden()["sign_flip"].as_array().unwrap() {
        let effects: Vec<f64> = case["effects"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| e.as_f64().unwrap())
            .collect();
        assert_eq!(sign_flip(&effects).unwrap().p, case["p"].as_f64().unwrap());
    }
}
