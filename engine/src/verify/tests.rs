//! One flipped bit in a kernel is found: which way, and where.

use std::path::{Path, PathBuf};

use super::*;
use crate::formats::blocks::GgmlType;
use crate::formats::store;
use crate::kernels::fault::{Fault, Kernel};
use crate::kernels::{Isa, Layout};
use crate::model::{ActivationFormat, LoadedModel, ModelError};

const PROMPT: usize = 40;
const STEPS: usize = 4;
const BOTH: Layouts<'static> = &[Arrangement::Plain, Arrangement::Store];

/// One row of each matrix of a kind is wrong for the last token of every call.
fn product(ty: GgmlType, layout: Layout, row: usize) -> Fault {
    Fault {
        kernel: Kernel::Product(ty, layout),
        least_tokens: 1,
        most_tokens: usize::MAX,
        row,
        from_end: 0,
        bit: 0,
    }
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/gpt-oss-8x4.gguf")
}

/// The prompt in one pass, on the portable kernels.
fn base() -> Way {
    Way {
        threads: 2,
        isa: Isa::SCALAR.name().to_owned(),
        block: 64,
        prefix: Prefix::Cold,
        company: 1,
        layout: Arrangement::Plain,
    }
}

/// A level of this machine other than the portable one.
fn another_level() -> Option<&'static str> {
    let level = Isa::available().into_iter().nth(1).map(Isa::name);
    if level.is_none() {
        println!("this machine has the portable kernels alone: nothing to break");
    }
    level
}

/// The model and its store, with a fault in the kernels of one level.
struct Broken {
    folder: tempfile::TempDir,
    level: &'static str,
    fault: Fault,
}

impl Broken {
    fn new(level: &'static str, fault: Fault) -> Self {
        let folder = tempfile::tempdir().unwrap();
        store::pack(&golden(), &folder.path().join("store"), |_, _| {}).unwrap();
        Self {
            folder,
            level,
            fault,
        }
    }

    fn load(&self, way: &Way) -> Result<LoadedModel, ModelError> {
        let path = match way.layout {
            Arrangement::Plain => golden(),
            Arrangement::Store => self.folder.path().join("store"),
            Arrangement::PackedScales => unreachable!("there is no such file"),
        };
        let options = way.options(ActivationFormat::Int16, PROMPT + STEPS);
        let model = LoadedModel::load(&path, &options)?;
        let broken = model.isa().name() == self.level;
        Ok(if broken {
            model.with_fault(self.fault)
        } else {
            model
        })
    }

    fn plan(&self, ways: &[&str]) -> Plan {
        let vocab = self.load(&base()).unwrap().vocab();
        Plan {
            base: base(),
            ways: parse_ways(ways, &base(), BOTH).unwrap(),
            prompts: vec![prompt(1, PROMPT, vocab)],
            steps: STEPS,
            estimate: true,
        }
    }

    /// The ways that part from the base way, and where.
    fn found(&self, ways: &[&str]) -> Vec<(String, Difference)> {
        let plan = self.plan(ways);
        let all = compare(&plan, &mut |way| self.load(way), &mut |_| {}).unwrap();
        assert_eq!(all.rows.len(), 1 + plan.ways.len());
        let parted = all.rows.into_iter().filter_map(|row| {
            let difference = row.difference?;
            Some((plan.ways[row.way?].name.clone(), difference))
        });
        parted.collect()
    }

    /// The first position whose logits the fault changes, by plain forward passes.
    fn first_wrong(&self, way: &NamedWay) -> usize {
        let tokens = &self.plan(&[]).prompts[0];
        let sound = self.load(&base()).unwrap().logits(tokens).unwrap();
        let broken = self.load(&way.way).unwrap().logits(tokens).unwrap();
        let differ = |(a, b): (&Vec<f32>, &Vec<f32>)| a != b;
        sound.iter().zip(&broken).position(differ).unwrap()
    }
}

fn one(at: At, differing: usize) -> Difference {
    Difference {
        at,
        differing: Some(differing),
        vocab: 512,
    }
}

#[test]
fn nothing_parts_where_nothing_is_broken() {
    // Row 600 does not exist in any matrix.
    let sound = Broken::new("scalar", product(GgmlType::Q8_0, Layout::Rows, 600));
    assert_eq!(sound.found(&["all"]), []);
}

#[test]
fn a_q8_0_product_that_is_wrong_at_one_level() {
    let Some(level) = another_level() else { return };
    // Only the output matrix has 300 rows, so this is the lowest bit of one logit.
    let fault = Fault {
        least_tokens: 2,
        from_end: 3,
        ..product(GgmlType::Q8_0, Layout::Rows, 300)
    };
    let broken = Broken::new(level, fault);
    let name = format!("isa={level}");
    let expected = one(At::PromptPosition(PROMPT - 4), 1);
    let found = broken.found(&["isa=all", "isa=all+layout=all", "threads=1", "block=17"]);
    assert_eq!(found, [(name.clone(), expected)]);
    // In single tokens alone: a cached prefix leaves one at the end of the prompt.
    let fault = Fault {
        most_tokens: 1,
        ..product(GgmlType::Q8_0, Layout::Rows, 300)
    };
    let broken = Broken::new(level, fault);
    let found = broken.found(&["isa=all", &format!("isa={level}+prefix=cached")]);
    let last = one(At::PromptPosition(PROMPT - 1), 1);
    let cached = (format!("isa={level}+prefix=cached"), last);
    assert_eq!(found, [(name, one(At::DecodeStep(1), 1)), cached]);
}

#[test]
fn an_mxfp4_tile_that_is_wrong_at_one_level() {
    let Some(level) = another_level() else { return };
    // A row of the second expert's matrices: wrong from the first token on that the router sends
    // there.
    let fault = Fault {
        bit: 20,
        ..product(GgmlType::Mxfp4, Layout::Tiles, 70)
    };
    let broken = Broken::new(level, fault);
    let found = broken.found(&["isa=all", "isa=all+layout=all", "layout=store"]);
    let name = format!("isa={level}+layout=store");
    let ways = parse_ways(&[&name], &base(), BOTH).unwrap();
    let first = broken.first_wrong(&ways[0]);
    let [(way, difference)] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!((way, difference.at), (&name, At::PromptPosition(first)));
    assert!(difference.differing > Some(1));
}

#[test]
fn attention_that_is_wrong_at_one_level() {
    let Some(level) = another_level() else { return };
    let fault = Fault {
        kernel: Kernel::Attention,
        least_tokens: 2,
        from_end: 10,
        bit: 20,
        ..product(GgmlType::F32, Layout::Rows, 5)
    };
    let found = Broken::new(level, fault).found(&["isa=all", "layout=store", "company=3"]);
    let [(way, difference)] = &found[..] else {
        panic!("{found:?}")
    };
    let at = At::PromptPosition(PROMPT - 11);
    assert_eq!((way, difference.at), (&format!("isa={level}"), at));
}

#[test]
fn what_is_wrong_in_blocks_of_one_size_or_in_company_only() {
    let fault = Fault {
        least_tokens: 17,
        most_tokens: 17,
        from_end: 2,
        ..product(GgmlType::Q8_0, Layout::Rows, 300)
    };
    let found = Broken::new("scalar", fault).found(&["all"]);
    let expected = one(At::PromptPosition(14), 1);
    let blocks = |(way, _): &&(String, Difference)| way == "block=17";
    assert_eq!(
        found.iter().find(blocks),
        Some(&("block=17".to_owned(), expected))
    );
    assert!(
        found.iter().all(|(way, _)| way.contains("block=17")),
        "{found:?}"
    );

    // The output of the prompt's 40 positions, between those of 5 and of 10 others.
    let fault = Fault {
        least_tokens: PROMPT + 15,
        from_end: 10 + 7,
        ..product(GgmlType::Q8_0, Layout::Rows, 300)
    };
    let found = Broken::new("scalar", fault).found(&["threads=1,3", "block=1", "company=16"]);
    let expected = one(At::PromptPosition(PROMPT - 8), 1);
    assert_eq!(found, [("company=16".to_owned(), expected)]);
}
