//! The same logits at every instruction-set level of this machine.

use std::path::Path;

use super::against::{arrangement, failure, served};
use super::progress::progress;
use crate::cli::args::load_failure;
use crate::cli::failure::Failure;
use crate::kernels::Isa;
use crate::kv::KvType;
use crate::model::{ActivationFormat, LoadOptions, LoadedModel};
use crate::verify::{Event, Plan, Way, compare, parse_ways, prompt};

/// Prompt tokens: more than one block of keys, less than a small context.
const TOKENS: usize = 96;
/// Decode steps after them.
const STEPS: usize = 8;

/// Walks a short prompt with the scalar kernels and at each other level; says which part.
pub(super) fn levels(path: &Path, kv_type: KvType) -> Result<Vec<String>, Failure> {
    let layouts = [arrangement(path)?];
    let activations = ActivationFormat::default();
    let mut load = |way: &Way| {
        let options = LoadOptions {
            kv_type,
            ..way.options(activations, TOKENS + STEPS)
        };
        LoadedModel::load(path, &options)
    };
    let options = LoadOptions {
        ctx: Some(TOKENS + STEPS),
        isa: Some(Isa::SCALAR.name().to_owned()),
        ..LoadOptions::default()
    };
    let first = LoadedModel::load(path, &options).map_err(|error| load_failure(path, error))?;
    let (base, vocab) = (served(&first, layouts[0]), first.vocab());
    drop(first);
    let plan = Plan {
        ways: parse_ways(&["isa=all"], &base, &layouts).map_err(Failure::new)?,
        base,
        prompts: vec![prompt(1, TOKENS, vocab)],
        steps: STEPS,
        estimate: false,
    };
    let bar = progress((TOKENS + STEPS) as u64, "levels");
    let mut hear = |event: Event<'_>| {
        if let Event::Step { done, .. } = event {
            bar.set_position(done.0 as u64);
        }
    };
    let all = compare(&plan, &mut load, &mut hear).map_err(|error| failure(path, error))?;
    bar.finish_and_clear();
    let parted = all.rows.iter().filter_map(|row| {
        let (way, difference) = (row.way?, row.difference.as_ref()?);
        Some(format!("kernels: {}: {difference}", plan.ways[way].name))
    });
    Ok(parted.collect())
}
