//! Every way to compute a model's logits gives the same bits: the shipped model and a synthetic
//! one, as far as every run of the tests can afford; `verify --against all` does the rest.
#![allow(missing_docs, reason = "tests")]

mod support;

use std::path::{Path, PathBuf};

use palindrome_engine::formats::store::{self, Packing};
use palindrome_engine::kernels::Isa;
use palindrome_engine::model::{ActivationFormat, LoadedModel};
use palindrome_engine::verify::{
    Arrangement, Event, Plan, Prefix, Way, compare, parse_ways, prompt,
};
use serde_json::Value;
use support::{Model, output, stderr, stdout};

fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../workloads/models/palindrome-small.gguf")
}

/// All ways of `all`, on prompts that reach past windows and key blocks.
fn all_ways(model: &Path, prompts: &[usize], steps: usize, activations: ActivationFormat) {
    let folder = tempfile::tempdir().unwrap();
    let packed = folder.path().join("store");
    store::pack(model, &packed, |_, _| {}).unwrap();
    let scales = folder.path().join("scales");
    let packing = Packing {
        packed_scales: true,
        ..Packing::default()
    };
    let done = store::pack_as(packing, model, &scales, |_, _| {}).unwrap();
    assert!(done.packed_scales > 0, "{}", model.display());
    let base = Way {
        threads: 2,
        isa: Isa::detect().name().to_owned(),
        block: 128,
        prefix: Prefix::Cold,
        company: 1,
        layout: Arrangement::Store,
    };
    let ctx = prompts.iter().max().unwrap() + steps;
    let mut load = |way: &Way| {
        let path = match way.layout {
            Arrangement::Plain => model,
            Arrangement::Store => &packed,
            Arrangement::PackedScales => &scales,
        };
        LoadedModel::load(path, &way.options(activations, ctx))
    };
    let vocab = load(&base).unwrap().vocab();
    let layouts = [
        Arrangement::Plain,
        Arrangement::Store,
        Arrangement::PackedScales,
    ];
    let plan = Plan {
        ways: parse_ways(&["all"], &base, &layouts).unwrap(),
        base,
        prompts: prompts.iter().map(|&n| prompt(1, n, vocab)).collect(),
        steps,
        estimate: true,
    };
    let (mut estimates, mut rows) = (0, 0);
    let all = compare(&plan, &mut load, &mut |event| match event {
        Event::Estimate(estimate) => {
            assert!(estimate.seconds >= estimate.longest.1 && estimate.longest.1 > 0.0);
            estimates += 1;
        }
        Event::Step { done, .. } => assert!(done.0 <= done.1),
        Event::Row(row) => {
            println!(
                "{:?} {}: {:.2} s",
                row.way, prompts[row.prompt], row.seconds
            );
            rows += 1;
        }
    })
    .unwrap();
    assert_eq!((estimates, rows), (2, all.rows.len()));
    assert_eq!(rows, (1 + plan.ways.len()) * prompts.len());
    for row in &all.rows {
        let way = row.way.map_or("base", |i| &plan.ways[i].name);
        assert_eq!(
            row.difference, None,
            "{way}, {} tokens",
            prompts[row.prompt]
        );
        assert_eq!(row.hash, all.rows[row.prompt].hash);
    }
    assert_ne!(all.rows[0].hash, all.rows[1].hash, "the prompts differ");
}

#[test]
fn all_ways_agree_on_the_shipped_model() {
    all_ways(&shipped(), &[33, 300], 8, ActivationFormat::Int16);
}

#[test]
fn all_ways_agree_on_a_synthetic_model() {
    let model = Model::tiny();
    all_ways(&model.path, &[128, 700], 64, ActivationFormat::Int8);
}

#[test]
fn the_command_prints_a_table_and_writes_json() {
    let model = Model::tiny();
    let json = model.folder.path().join("found.json");
    let args = [
        "verify",
        model.arg(),
        "--against",
        "threads=1,3 isa=all",
        "block=7+prefix=cached",
        "layout=plain",
        "--base",
        "threads=2+isa=scalar",
        "--prompts",
        "20,5",
        "--steps",
        "3",
        "--store-dir",
        model.folder.path().to_str().unwrap(),
        "--json",
        json.to_str().unwrap(),
    ];
    let found = output(&args);
    let text = stdout(&found);
    assert_eq!(found.status.code(), Some(0), "{text}{}", stderr(&found));
    assert!(
        text.contains("base     threads=2+isa=scalar+block=23+"),
        "{text}"
    );
    assert!(
        text.contains("\nblock=7+prefix=cached       20  "),
        "{text}"
    );
    let told = stderr(&found);
    assert!(
        told.contains("estimate: at least ") && told.contains("estimate: the other"),
        "{told}"
    );
    let all: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let rows = all["rows"].as_array().unwrap();
    let ways = all["ways"].as_array().unwrap().len();
    assert_eq!(ways, 2 + (Isa::available().len() - 1) + 2);
    assert_eq!(rows.len(), 2 * (1 + ways));
    assert!(
        text.ends_with(&format!("ok       {ways} ways, 2 prompts: the same bits\n")),
        "{text}"
    );
    assert!(rows.iter().skip(2).all(|row| row["equal"] == true));
    assert_eq!(all["differences"], 0);

    let wrong = [
        "verify",
        model.arg(),
        "--against",
        "isa=abacus",
        "--prompts",
        "5",
        "--no-store",
    ];
    let wrong = output(&wrong);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(
        stderr(&wrong).contains("`isa=abacus`; expected one of scalar"),
        "{}",
        stderr(&wrong)
    );
    let long = output(&["verify", model.arg(), "--against", "all", "--no-store"]);
    assert_eq!(long.status.code(), Some(1));
    assert!(
        stderr(&long).contains("--prompts and --steps shorten it"),
        "{}",
        stderr(&long)
    );
}
