//! The bits of a position's logits depend on the model and the tokens before it alone.

#[path = "support/golden.rs"]
#[expect(
    dead_code,
    reason = "only the paths and tokens of the cases are used here"
)]
mod golden;

use palindrome_engine::kernels::Isa;
use palindrome_engine::kv::{KvCache, KvType};
use palindrome_engine::model::{ActivationFormat, LoadOptions, LoadedModel, Segment, Want};

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
            let kept = cache.truncate(keep);
            assert!(kept == copy.len() && kept <= keep);
            for cache in [&mut copy, &mut cache] {
                let other: Vec<u32> = tokens[kept..].iter().map(|t| (t + 1) % 512).collect();
                model.forward(cache, &other, Want::Nothing).unwrap();
                assert_eq!(cache.truncate(kept), kept);
                let last = model.forward(cache, &tokens[kept..], Want::Last).unwrap();
                let same = Some(&last) == expected.last();
                assert!(same, "{case}: {kept} positions kept of {keep}");
            }
        }
    }
}

/// Tokens without a pattern.
fn noise(n: u32) -> Vec<u32> {
    (0..n).map(|i| (i * i * 31 + i * 7 + 3) % 512).collect()
}

const KV_TYPES: [KvType; 2] = [KvType::F16, KvType::F32];

#[test]
fn long_prompts_give_the_same_bits_in_any_blocks() {
    // Windows of 16 and 128 positions, and none.
    for (case, n) in [
        ("gpt-oss-8x4", 1100),
        ("gpt-oss-32x2", 600),
        ("llama-mixed", 300),
    ] {
        let (golden, tokens) = (golden::read(case), noise(n));
        for kv_type in KV_TYPES {
            let mut expected: Option<Vec<Vec<u32>>> = None;
            for (isa, threads, block) in [("scalar", 1, 1), ("", 3, 512), ("", 2, 65)] {
                let options = LoadOptions {
                    threads: Some(threads),
                    isa: Some(isa.to_owned()).filter(|isa| !isa.is_empty()),
                    block: Some(block),
                    activations: ActivationFormat::Int8,
                    kv_type,
                    ..LoadOptions::default()
                };
                let got = bits(&load(&golden, &options).logits(&tokens).unwrap());
                let same = *expected.get_or_insert_with(|| got.clone()) == got;
                assert!(same, "{case}, {}, blocks of {block}", kv_type.name());
            }
        }
    }
}

#[test]
fn a_window_that_is_gone_changes_no_bit() {
    for (case, n) in [("gpt-oss-8x4", 1300), ("gpt-oss-32x2", 1300)] {
        let (golden, tokens) = (golden::read(case), noise(n));
        for kv_type in KV_TYPES {
            let options = LoadOptions {
                activations: ActivationFormat::Int8,
                kv_type,
                ..LoadOptions::default()
            };
            let model = load(&golden, &options);
            let mut cache = model.new_cache();
            for block in tokens.chunks(100) {
                model.forward(&mut cache, block, Want::Nothing).unwrap();
            }
            let rest = tokens.len() - 200;
            let expected = model.logits(&tokens).unwrap();
            let mut shorter = 0;
            for cut in [
                tokens.len() - 1,
                rest,
                1024,
                1000,
                700,
                513,
                512,
                511,
                300,
                64,
                1,
            ] {
                let mut copy = cache.prefix(cut);
                let kept = copy.len();
                shorter += usize::from(kept < cut);
                assert!(kept <= cut, "{kept} of {cut}");
                // The place of what was cut off is taken by something else, and cut off again.
                model.forward(&mut copy, &[5; 40], Want::Nothing).unwrap();
                assert_eq!(copy.truncate(kept), kept);
                let last = model
                    .forward(&mut copy, &tokens[kept..], Want::Last)
                    .unwrap();
                let same = Some(&last) == expected.last();
                assert!(same, "{case}, {}: {cut} cut to {kept}", kv_type.name());
            }
            assert!(shorter > 2, "{case}: every window was still there");
            for cut in [1024, 700, 300] {
                let kept = cache.truncate(cut);
                let to = (kept + 150).min(tokens.len());
                let logits = model.forward(&mut cache, &tokens[kept..to], Want::Last);
                let same = logits.unwrap() == expected[to - 1];
                assert!(same, "{case}, {}: {cut} cut to {kept}", kv_type.name());
            }
        }
    }
}

/// A sequence on its way through shared passes.
struct Walk {
    cache: KvCache,
    tokens: Vec<u32>,
    /// Logits of all positions so far, in bits.
    logits: Vec<Vec<u32>>,
}

/// 16 sequences of different lengths and tokens go through one model together, in blocks whose
/// sizes change from pass to pass and from sequence to sequence. With `swapped`, the results of
/// two of them change hands on the way: what a mix-up of rows would look like.
fn together(model: &LoadedModel, sequences: &[Vec<u32>], swapped: bool) -> Vec<Vec<Vec<u32>>> {
    let mut walks: Vec<Walk> = sequences
        .iter()
        .map(|tokens| Walk {
            cache: model.new_cache(),
            tokens: tokens.clone(),
            logits: Vec::new(),
        })
        .collect();
    for round in 0.. {
        let mut segments: Vec<Segment<'_>> = Vec::new();
        let mut members = Vec::new();
        for (i, walk) in walks.iter_mut().enumerate() {
            let done = walk.cache.len();
            // Sequence i arrives in round i / 3; most passes give it one token, some a block.
            let most = [1, 1, 7, 2, 23][(round * 5 + i) % 5];
            let n = most.min(walk.tokens.len() - done);
            if round < i / 3 || n == 0 {
                continue;
            }
            members.push(i);
            segments.push(Segment {
                cache: &mut walk.cache,
                tokens: &walk.tokens[done..done + n],
                want: Want::All,
            });
        }
        if members.is_empty() {
            return walks.into_iter().map(|walk| walk.logits).collect();
        }
        let mut results = model.forward_batch(&mut segments);
        if swapped && round == 6 {
            let same = |i: &usize| results[*i].as_ref().unwrap().len() == model.vocab();
            let single: Vec<usize> = (0..results.len()).filter(same).collect();
            results.swap(single[0], single[1]);
        }
        for (i, logits) in members.into_iter().zip(results) {
            let rows = logits.unwrap();
            let rows = rows.chunks_exact(model.vocab());
            walks[i]
                .logits
                .extend(rows.map(|row| row.iter().map(|x| x.to_bits()).collect()));
        }
    }
    unreachable!("the sequences end")
}

#[test]
fn company_changes_no_bit() {
    for case in CASES {
        let golden = golden::read(case);
        let sequences: Vec<Vec<u32>> = (0..16)
            .map(|i| {
                let from = (i * 5) % 40;
                golden.tokens[from..from + 9 + 5 * i % 51].to_vec()
            })
            .collect();
        for activations in [ActivationFormat::Int8, ActivationFormat::Int16] {
            let options = LoadOptions {
                activations,
                ..LoadOptions::default()
            };
            let model = load(&golden, &options);
            let alone: Vec<_> = sequences
                .iter()
                .map(|tokens| bits(&model.logits(tokens).unwrap()))
                .collect();
            let same = together(&model, &sequences, false) == alone;
            assert!(same, "{case}, {}", activations.name());
            let caught = together(&model, &sequences, true) != alone;
            assert!(caught, "{case}: swapped rows went unnoticed");
        }
    }
}
