//! Power, Holm, percentiles and alpha-spending against scipy and statsmodels (`golden/power.py`).

use palindrome_harness::stats::{
    PairEffect, PairOrder, PerSession, Spending, detectable_at, holm, look_levels,
    noncentral_t_above, pair_order_estimate_at, percentile_upper_bound, quartets_to_settle,
};
use serde_json::Value;

fn golden(key: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!("../golden/power.json")).unwrap();
    let rows = all[key].as_array().unwrap().clone();
    assert!(rows.len() > 3, "{key}");
    rows
}

fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().unwrap();
    list.iter().map(|v| v.as_f64().unwrap()).collect()
}

#[track_caller]
fn close(found: f64, expected: f64, tolerance: f64, what: &Value) {
    assert!(
        (found - expected).abs() < tolerance,
        "{what}: {found} against {expected}"
    );
}

#[test]
fn the_noncentral_t_agrees_with_scipy() {
    for row in golden("noncentral_t_above") {
        let v = numbers(&row);
        close(noncentral_t_above(v[0], v[1], v[2]), v[3], 2e-7, &row);
    }
}

#[test]
fn sizes_and_detectable_effects_agree_with_scipy() {
    for row in golden("quartets_to_settle") {
        let expected = row[1].as_u64().map(|n| n as u32);
        let effect = row[0].as_f64().unwrap();
        assert_eq!(quartets_to_settle(effect, 1.0), expected, "{row}");
        // Only the quotient counts.
        assert_eq!(quartets_to_settle(-effect * 0.01, 0.01), expected, "{row}");
    }
    for row in golden("detectable_at") {
        let v = numbers(&row);
        let found = detectable_at(v[0] as usize, v[1]).unwrap();
        close(found, v[2], 1e-5, &row);
    }
}

#[test]
fn holm_agrees_with_statsmodels() {
    for row in golden("holm") {
        let adjusted = holm(&numbers(&row[0]));
        for (found, expected) in adjusted.iter().zip(numbers(&row[1])) {
            close(*found, expected, 1e-12, &row);
        }
    }
}

#[test]
fn percentile_bounds_take_the_order_statistic_that_the_binomial_gives() {
    for row in golden("bound_rank") {
        let (p, n) = (row[0].as_f64().unwrap(), row[1].as_u64().unwrap());
        let ranks = PerSession::new((1..=n).map(|i| i as f64).collect()).unwrap();
        assert_eq!(percentile_upper_bound(&ranks, p), row[2].as_f64(), "{row}");
    }
}

#[test]
fn levels_of_looks_agree_with_the_multivariate_normal() {
    for row in golden("look_levels") {
        let spending: Spending = serde_json::from_value(row[0].clone()).unwrap();
        let levels = look_levels(&numbers(&row[1]), spending, 0.05).unwrap();
        let expected = numbers(&row[2]);
        assert_eq!(levels.len(), expected.len());
        for (found, expected) in levels.iter().zip(expected) {
            close(*found, expected, 1e-5, &row);
        }
    }
}

#[test]
fn p_deviation_and_other_levels_agree_with_least_squares() {
    for case in golden("pair_order") {
        let order = numbers(&case["order"]).into_iter().map(|s| {
            if s > 0.0 {
                PairOrder::Ab
            } else {
                PairOrder::Ba
            }
        });
        let pairs: Vec<PairEffect> = numbers(&case["d"])
            .into_iter()
            .zip(order)
            .map(|(log_ratio, order)| PairEffect { log_ratio, order })
            .collect();
        let e = pair_order_estimate_at(&pairs, 0.02).unwrap();
        let interval = e.interval.unwrap();
        for (found, key) in [
            (e.p().unwrap(), "p"),
            (e.noise.unwrap().deviation, "deviation"),
            (interval.low, "low98"),
            (interval.high, "high98"),
        ] {
            close(found, case[key].as_f64().unwrap(), 1e-11, &case[key]);
        }
    }
}
