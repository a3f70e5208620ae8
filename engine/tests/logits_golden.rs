//! Logits against transformers (`golden/README.md`).
//!
//! With f32 activations the engine is within 1e-4 of it everywhere. With int8 activations the
//! distance is what quantising every matrix's input in blocks of 32 costs, and it depends on the
//! model: the random ones amplify it (broad logits, gates beyond the clamp), and where two experts
//! are near a tie another one may be chosen, which moves that position by a tenth or more.

#[path = "support/golden.rs"]
mod golden;
#[path = "support/smollm2.rs"]
mod smollm2;

use std::path::Path;

use golden::{Distance, Golden};
use palindrome_engine::model::LoadOptions;

/// Cases in this folder, and the most that int8 activations may cost there: at the median
/// position and at the worst.
const CASES: [(&str, f64, f64); 4] = [
    ("gpt-oss-8x4", 0.06, 0.25),
    ("gpt-oss-32x2", 0.06, 0.25),
    ("llama-mixed", 0.03, 0.04),
    ("llama-tied", 0.05, 0.08),
];

/// The small model of this repository, before and far beyond its window.
const SHIPPED: [(&str, f64, f64); 2] =
    [("shipped-short", 0.02, 0.25), ("shipped-long", 0.02, 0.25)];

fn measure(name: &str, golden: &Golden, path: &Path, reference: bool) -> Distance {
    let distance = golden::compare(
        golden,
        path,
        &LoadOptions {
            reference,
            ..LoadOptions::default()
        },
    );
    println!(
        "{name}, {}: worst relative error {:.2e} at position {}, median {:.2e}, absolute {:.2e}; \
         {} of {} best tokens differ",
        if reference { "f32" } else { "int8" },
        distance.worst().1,
        distance.worst().0,
        distance.median(),
        distance.absolute,
        distance.disagreements.len(),
        golden.tokens.len(),
    );
    distance
}

fn check_reference(name: &str, golden: &Golden, path: &Path) {
    let distance = measure(name, golden, path, true);
    assert!(distance.worst().1 < 1e-4, "{name}: {:?}", distance.relative);
    // Nothing but a tie within rounding may change the best token.
    let wrong: Vec<_> = distance
        .disagreements
        .iter()
        .filter(|d| d.1 > 1e-3)
        .collect();
    assert!(wrong.is_empty(), "{name}: {wrong:?}");
}

fn check_int8(name: &str, golden: &Golden, path: &Path, median: f64, worst: f64) {
    let distance = measure(name, golden, path, false);
    let errors = &distance.relative;
    assert!(distance.median() < median, "{name}: {errors:?}");
    assert!(distance.worst().1 < worst, "{name}: {errors:?}");
    // Both the best and the second logit may be off by the error.
    let clear = |margin: f32| f64::from(margin) > 2.0 * distance.absolute;
    let checked = golden.margin.iter().filter(|&&m| clear(m)).count();
    let wrong = distance.disagreements.iter().filter(|d| clear(d.1)).count();
    println!("{name}, int8: {wrong} of {checked} clear best tokens differ");
    assert!(checked > 0, "{name}: no margin exceeds the error");
    assert!(
        wrong <= checked.div_ceil(50),
        "{name}: {:?}",
        distance.disagreements
    );
}

#[test]
fn random_models_agree_in_f32() {
    for (case, ..) in CASES {
        let golden = golden::read(case);
        check_reference(case, &golden, &golden::model_path(&golden));
    }
}

#[test]
fn random_models_agree_in_int8() {
    for (case, median, worst) in CASES {
        let golden = golden::read(case);
        check_int8(case, &golden, &golden::model_path(&golden), median, worst);
    }
}

#[test]
fn the_shipped_model_agrees() {
    for (case, median, worst) in SHIPPED {
        let golden = golden::read(case);
        let path = golden::model_path(&golden);
        check_reference(case, &golden, &path);
        check_int8(case, &golden, &path, median, worst);
    }
}

#[test]
fn smollm2_agrees() {
    let name = "smollm2-135m";
    let golden = golden::read(name);
    let path = smollm2::path(&golden.model, &golden.model_sha256);
    check_reference(name, &golden, &path);
    check_int8(name, &golden, &path, 0.03, 0.04);
}
