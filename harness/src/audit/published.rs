//! Published figures and verdict against those derived again.

use super::Audit;
use crate::archive::{Archive, Facts, manifest_bytes};
use crate::derive::{Figures, Published, derive};

const FILE: &str = "figures.json";

/// Derives everything again from recomputed facts and compares to the last bit.
pub(super) fn check(archive: &Archive, facts: &Facts, audit: &mut Audit) {
    let again = derive(facts);
    let published = match archive.figures() {
        Ok(Some(published)) => published,
        Ok(None) => return audit.fail(FILE, "", "is missing"),
        Err(error) => return audit.fail_with(FILE, &error),
    };
    audit.figures += published.len();
    figures(&published, &again, audit);
    if published.verdict() != again.verdict() {
        audit.fail(
            FILE,
            "verdict",
            format!(
                "is {:?}, derived {:?}",
                published.verdict(),
                again.verdict()
            ),
        );
    }
    for (field, same) in [
        ("schema", published.schema() == again.schema()),
        ("study", published.study() == again.study()),
        ("question", published.question() == again.question()),
        ("primary", published.primary() == again.primary()),
        ("arms", published.arms() == again.arms()),
        (
            "comparisons",
            published.comparisons() == again.comparisons(),
        ),
        ("identity", published.identity() == again.identity()),
    ] {
        if !same {
            audit.fail(FILE, field, "differs from what the raw facts give");
        }
    }
    manifest(archive, &again, audit);
}

fn figures(published: &Figures, again: &Figures, audit: &mut Audit) {
    if published.len() != again.len() {
        audit.fail(
            FILE,
            "",
            format!(
                "{} figures, the raw facts give {}",
                published.len(),
                again.len()
            ),
        );
    }
    for (p, a) in published.all().iter().zip(again.all()) {
        if !p.same_bits(a) {
            audit.fail(FILE, a.id(), difference(p, a));
        }
    }
}

fn difference(p: &Published, a: &Published) -> String {
    if p.id() != a.id() {
        return format!("figure {:?} stands in its place", p.id());
    }
    if p.label() != a.label() {
        return format!("is labelled {:?}, derived {:?}", p.label(), a.label());
    }
    if p.value().map(f64::to_bits) != a.value().map(f64::to_bits) {
        return format!("is {:?}, derived {:?}", p.value(), a.value());
    }
    format!(
        "formula, unit or inputs differ: {} {:?}, derived {} {:?}",
        p.formula(),
        p.unit(),
        a.formula(),
        a.unit()
    )
}

/// The manifest, computed again from the files and the derived verdict, byte for byte.
fn manifest(archive: &Archive, again: &Figures, audit: &mut Audit) {
    match (
        manifest_bytes(archive.path(), again.verdict()),
        archive.read("manifest.json"),
    ) {
        (Ok(expected), Ok(found)) if expected == found => {}
        (Ok(_), Ok(_)) => audit.fail(
            "manifest.json",
            "",
            "differs from the one that files and verdict give",
        ),
        (Err(error), _) | (_, Err(error)) => audit.fail_with("manifest.json", &error),
    }
}
