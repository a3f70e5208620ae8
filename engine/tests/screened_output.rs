//! A screened output matrix gives the same tokens, and the same logits where it computes them.
#![allow(missing_docs, reason = "tests")]

use std::path::{Path, PathBuf};

use palindrome_engine::formats::store::{self, Packing};
use palindrome_engine::model::{LoadOptions, LoadedModel, Segment, Want};
use palindrome_engine::sampling::SamplingParams;
use palindrome_engine::scheduler::{Engine, GenEvent, GenRequest};

fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn screened(model: &Path) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let packed = store::pack_as(
        Packing {
            screening: true,
            ..Packing::default()
        },
        model,
        &path,
        |_, _| {},
    )
    .unwrap();
    assert!(packed.planes.is_some(), "{}", model.display());
    (folder, path)
}

const SHIPPED: &str = "../workloads/models/palindrome-small.gguf";

#[test]
fn what_is_computed_has_the_same_bits_and_the_rest_is_no_candidate() {
    for name in [SHIPPED, "tests/golden/llama-tied.gguf"] {
        let plain = LoadedModel::load(&model(name), &LoadOptions::default()).unwrap();
        let (_folder, path) = screened(&model(name));
        assert!(
            store::verify(&path, |_, _| {}).is_ok(),
            "the source comes back"
        );
        let split = LoadedModel::load(&path, &LoadOptions::default()).unwrap();
        let vocab = plain.vocab();
        let tokens: Vec<u32> = (0..24).map(|i| (i * 37 + 11) % vocab as u32).collect();
        let all = plain.logits(&tokens).unwrap();
        assert_eq!(
            all,
            split.logits(&tokens).unwrap(),
            "{name}: nothing is left out here"
        );
        assert_eq!(split.screened().screened, 0);
        for k in [1, 5, 40] {
            let mut caches = [split.new_cache(), split.new_cache()];
            for (i, token) in tokens.iter().enumerate() {
                // The second sequence asks for the best one of the same logits.
                let mut segments: Vec<Segment<'_>> = caches
                    .iter_mut()
                    .zip([k, 1])
                    .map(|(cache, k)| Segment {
                        cache,
                        tokens: std::slice::from_ref(token),
                        want: Want::Best(k),
                    })
                    .collect();
                let results = split.forward_batch(&mut segments);
                let mut sorted = all[i].clone();
                sorted.sort_unstable_by(|a, b| b.total_cmp(a));
                for (logits, k) in results.into_iter().zip([k, 1]) {
                    for (got, full) in logits.unwrap().iter().zip(&all[i]) {
                        if *got == f32::NEG_INFINITY {
                            assert!(*full < sorted[k - 1], "{name}: {full} of the best {k}");
                        } else {
                            assert_eq!(got.to_bits(), full.to_bits());
                        }
                    }
                }
            }
        }
        let counts = split.screened();
        println!("{name}: {counts:?}");
        assert!(counts.screened > 0 && counts.computed <= counts.screened);
        // The shipped model's rows are wide enough for most to be left out.
        assert!(
            name != SHIPPED || counts.computed < counts.screened / 2,
            "{counts:?}"
        );
    }
}

fn generate(engine: &Engine, sampling: &SamplingParams, logprobs: Option<usize>) -> Vec<u32> {
    let request = GenRequest {
        prompt: engine.tokenizer().encode(
            "def mean(values):\n",
            palindrome_engine::tokenizer::Specials::AsText,
        ),
        max_tokens: Some(40),
        sampling: sampling.clone(),
        stop_tokens: Vec::new(),
        cache_prompt: false,
        logprobs,
    };
    let mut stream = engine.submit(request).unwrap();
    let mut ids = Vec::new();
    loop {
        match stream.next_blocking() {
            Some(GenEvent::Started { .. }) => {}
            Some(GenEvent::Token(token)) => ids.push(token.id),
            Some(GenEvent::Done(_)) => return ids,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn requests_get_the_same_tokens() {
    let plain = Engine::load(&model(SHIPPED), &LoadOptions::default()).unwrap();
    let (_folder, path) = screened(&model(SHIPPED));
    let split = Engine::load(&path, &LoadOptions::default()).unwrap();
    let sampling = |temperature, top_k, top_p, presence_penalty| SamplingParams {
        temperature,
        top_k,
        top_p,
        presence_penalty,
        seed: Some(9),
        ..SamplingParams::default()
    };
    // What is asked for, and whether it can be screened.
    let cases = [
        (sampling(0.0, 0, 1.0, 0.0), None, true),
        (sampling(0.9, 20, 0.95, 0.0), None, true),
        (sampling(0.9, 0, 0.95, 0.0), None, false),
        (sampling(0.0, 0, 1.0, 0.5), None, false),
        (sampling(0.0, 0, 1.0, 0.0), Some(3), false),
    ];
    for (sampling, logprobs, screens) in cases {
        let before = split.stats().screened;
        let found = generate(&split, &sampling, logprobs);
        assert_eq!(found, generate(&plain, &sampling, logprobs), "{sampling:?}");
        let after = split.stats().screened;
        assert_eq!(after.screened > before.screened, screens, "{sampling:?}");
    }
    assert_eq!(plain.stats().screened.screened, 0);
}
