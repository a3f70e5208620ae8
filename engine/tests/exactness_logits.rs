//! The bits of a position's logits depend on the model and the tokens before it alone.

#[path = "support/golden.rs"]
#[expect(
    dead_code,
    reason = "only the paths and tokens of the cases are used here"
)]
mod golden;

use palindrome_engine::kernels::Isa;
use palindrome_engine::model::{ActivationFormat, LoadOptions, LoadedModel, Want};

const CASES: [&str; 2] = ["gpt-oss-8x4", "llama-mixed"];

fn load(case: &golden::Golden, options: &LoadOptions) -> LoadedModel {
    LoadedModel::load(&golden::model_path(case), options).unwrap()
}

fn bits(logits: &[Vec<f32>]) -> Vec<Vec<u32>> {
    logits
        .iter()
        .map(|l| l.iter().map(|x| x.to_bits()).collect())
        .collect()
}

#[test]
fn threads_instructions_and_blocks_change_no_bit() {
    for case in CASES {
        let golden = golden::read(case);
        for activations in [
            ActivationFormat::Int8,
            ActivationFormat::Mixed,
            ActivationFormat::Int16,
            ActivationFormat::F32,
        ] {
            let plain = LoadOptions {
                threads: Some(1),
                isa: Some("scalar".to_owned()),
                block: Some(1),
                activations,
                ..LoadOptions::default()
            };
            let expected = bits(&load(&golden, &plain).logits(&golden.tokens).unwrap());
            for isa in Isa::available() {
                for (threads, block) in [(1, 64), (2, 7), (3, 512)] {
                    let options = LoadOptions {
                        threads: Some(threads),
                        isa: Some(isa.name().to_owned()),
                        block: Some(block),
                        ..plain.clone()
                    };
                    let got = bits(&load(&golden, &options).logits(&golden.tokens).unwrap());
                    let same = got == expected;
                    assert!(
                        same,
                        "{case}, {}: {threads} threads, {}, blocks of {block}",
                        activations.name(),
                        isa.name()
                    );
                }
            }
        }
    }
}

#[test]
fn a_cached_prefix_changes_no_bit() {
    for case in CASES {
        let golden = golden::read(case);
        let model = load(&golden, &LoadOptions::default());
        let tokens = &golden.tokens;
        let expected = model.logits(tokens).unwrap();
        let mut cache = model.new_cache();
        model.forward(&mut cache, tokens, Want::Nothing).unwrap();
        for keep in [tokens.len() - 1, 60, 33, 1] {
            let mut copy = cache.prefix(keep);
            cache.truncate(keep);
            for cache in [&mut copy, &mut cache] {
                let other: Vec<u32> = tokens[keep..].iter().map(|t| (t + 1) % 512).collect();
                model.forward(cache, &other, Want::Nothing).unwrap();
                cache.truncate(keep);
                let last = model.forward(cache, &tokens[keep..], Want::Last).unwrap();
                assert_eq!(
                    Some(&last),
                    expected.last(),
                    "{case}: {keep} positions kept"
                );
            }
        }
    }
}
