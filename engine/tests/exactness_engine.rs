//! A request's tokens do not depend on the cache, on company, or on what ran before.

use std::path::Path;

use palindrome_engine::model::LoadOptions;
use palindrome_engine::sampling::SamplingParams;
use palindrome_engine::scheduler::{
    Engine, EngineError, Finish, GenEvent, GenRequest, GenStream, GenSummary, token_hash,
};

fn engine(ctx: Option<usize>) -> Engine {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/gpt-oss-8x4.gguf");
    let options = LoadOptions {
        ctx,
        block: Some(16),
        ..LoadOptions::default()
    };
    Engine::load(&path, &options).unwrap()
}

/// `n` tokens that differ from one `salt` to another.
fn prompt(salt: u32, n: u32) -> Vec<u32> {
    (0..n)
        .map(|i| (i * i * 31 + i * 7 + salt * 101 + 3) % 512)
        .collect()
}

fn request(prompt: Vec<u32>, temperature: f32) -> GenRequest {
    let sampling = SamplingParams {
        temperature,
        seed: Some(5),
        ..SamplingParams::default()
    };
    GenRequest {
        prompt,
        max_tokens: Some(24),
        sampling,
        stop_tokens: Vec::new(),
        cache_prompt: true,
        logprobs: Some(2),
    }
}

/// Ids, bits of their log-probabilities, and the summary.
fn finish(mut stream: GenStream) -> (Vec<u32>, Vec<u32>, GenSummary) {
    let (mut ids, mut bits) = (Vec::new(), Vec::new());
    loop {
        match stream.next_blocking() {
            Some(GenEvent::Started { .. }) => assert!(ids.is_empty()),
            Some(GenEvent::Token(token)) => {
                ids.push(token.id);
                bits.push(token.logprob.unwrap().to_bits());
                assert_eq!(token.top.len(), 2);
            }
            Some(GenEvent::Done(summary)) => return (ids, bits, summary),
            other => panic!("{other:?}"),
        }
    }
}

fn run(engine: &Engine, request: GenRequest) -> (Vec<u32>, Vec<u32>, GenSummary) {
    finish(engine.submit(request).unwrap())
}

#[test]
fn cold_and_cached_give_the_same_tokens() {
    let engine = engine(None);
    for temperature in [0.0, 1.0] {
        let first = prompt(1, 90);
        let cold = run(
            &engine,
            GenRequest {
                cache_prompt: false,
                ..request(first.clone(), temperature)
            },
        );
        assert_eq!((cold.2.cache_n, cold.2.prompt_n), (0, 90));
        let warm = run(&engine, request(first.clone(), temperature));
        assert_eq!((warm.2.cache_n, warm.2.prompt_n), (89, 1));
        assert_eq!((&cold.0, &cold.1), (&warm.0, &warm.1));
        assert_eq!(warm.2.prompt_hash, token_hash(&first));
        assert_eq!(warm.2.generated_hash, token_hash(&warm.0));

        // The next turn: the answer (whose last token was never computed) and more text.
        let mut second = first;
        second.extend(&warm.0);
        second.extend(prompt(2, 30));
        let warm = run(&engine, request(second.clone(), temperature));
        assert_eq!(warm.2.cache_n, 90 + 23);
        let cold = run(
            &engine,
            GenRequest {
                cache_prompt: false,
                ..request(second, temperature)
            },
        );
        assert_eq!((cold.0, cold.1), (warm.0, warm.1));
    }
}

#[test]
fn prompts_longer_than_the_window_are_cold_and_cached_alike() {
    // The window is 16 positions, the prompt 700.
    let engine = engine(None);
    let first = prompt(1, 700);
    let turn = |prompt: Vec<u32>, cache_prompt| {
        run(
            &engine,
            GenRequest {
                cache_prompt,
                ..request(prompt, 0.0)
            },
        )
    };
    let answer = turn(first.clone(), true);
    assert_eq!(answer.2.cache_n, 0);
    let beginning = |n: usize, own: u32| -> Vec<u32> {
        first[..n].iter().copied().chain(prompt(own, 30)).collect()
    };
    for (prompt, cached) in [
        // Again; the next turn; with another end; and what windowed layers no longer hold.
        (first.clone(), 699),
        ([&first[..], &answer.0].concat(), 723),
        (beginning(690, 2), 690),
        (beginning(560, 3), 512),
        (beginning(400, 4), 384),
    ] {
        let (warm, cold) = (turn(prompt.clone(), true), turn(prompt, false));
        assert_eq!((cold.2.cache_n, warm.2.cache_n), (0, cached));
        assert_eq!((cold.0, cold.1), (warm.0, warm.1), "{cached} cached");
    }
}

#[test]
fn company_changes_nothing() {
    let engine = engine(None);
    let requests: Vec<GenRequest> = (0..6)
        .map(|i| request(prompt(i / 2, 40 + i), if i % 2 == 0 { 0.0 } else { 0.8 }))
        .collect();
    let alone: Vec<_> = requests.iter().map(|r| run(&engine, r.clone())).collect();
    let streams: Vec<_> = requests
        .iter()
        .map(|r| engine.submit(r.clone()).unwrap())
        .collect();
    for (stream, alone) in streams.into_iter().zip(alone) {
        let together = finish(stream);
        assert_eq!((together.0, together.1), (alone.0, alone.1));
    }
    let stats = engine.stats();
    assert_eq!((stats.finished, stats.generated_tokens), (12, 12 * 24));
}

#[test]
fn stops_limits_and_refusals() {
    let engine = engine(Some(64));
    let all = run(&engine, request(prompt(1, 20), 0.0));
    assert_eq!((all.2.finish, all.2.predicted_n), (Finish::Length, 24));
    let stop = all.0[5];
    let at = all.0.iter().position(|&id| id == stop).unwrap();
    let stopped = run(
        &engine,
        GenRequest {
            stop_tokens: vec![stop],
            ..request(prompt(1, 20), 0.0)
        },
    );
    assert_eq!(stopped.2.finish, Finish::Stop);
    assert_eq!(stopped.0, all.0[..=at]);
    let full = run(
        &engine,
        GenRequest {
            max_tokens: None,
            ..request(prompt(1, 20), 0.0)
        },
    );
    assert_eq!((full.2.finish, full.2.predicted_n), (Finish::Length, 44));
    let none = run(
        &engine,
        GenRequest {
            max_tokens: Some(0),
            ..request(prompt(1, 20), 0.0)
        },
    );
    assert_eq!((none.2.finish, none.2.predicted_n), (Finish::Length, 0));

    let refused = |prompt| engine.submit(request(prompt, 0.0)).err().unwrap();
    assert!(matches!(
        refused(prompt(1, 64)),
        EngineError::ContextExceeded { n_ctx: 64, .. }
    ));
    assert!(matches!(
        refused(vec![1, 512]),
        EngineError::BadToken {
            id: 512,
            vocab: 512
        }
    ));
    assert!(matches!(refused(Vec::new()), EngineError::EmptyPrompt));
}

#[test]
fn dropped_streams_are_cancelled_and_shutting_down_ends_the_rest() {
    let engine = engine(None);
    let endless = || GenRequest {
        max_tokens: None,
        ..request(prompt(1, 20), 0.0)
    };
    let mut running = engine.submit(endless()).unwrap();
    let queued = engine.submit(endless()).unwrap();
    while !matches!(running.next_blocking(), Some(GenEvent::Token(_))) {}
    drop(queued);
    drop(running);
    // The next request comes to its turn only because the first was given up.
    run(&engine, request(prompt(2, 20), 0.0));
    assert_eq!(engine.stats().cancelled, 2);

    let mut running = engine.submit(endless()).unwrap();
    let mut queued = engine.submit(endless()).unwrap();
    while !matches!(running.next_blocking(), Some(GenEvent::Token(_))) {}
    engine.shut_down();
    for stream in [&mut running, &mut queued] {
        let mut last = None;
        while let Some(event) = stream.next_blocking() {
            last = Some(event);
        }
        assert!(
            matches!(last, Some(GenEvent::Failed(EngineError::ShuttingDown))),
            "{last:?}"
        );
    }
    assert!(matches!(
        engine.submit(endless()),
        Err(EngineError::ShuttingDown)
    ));
}
