//! Who gets what in each pass, counted in passes and never in time.

use std::sync::atomic::Ordering;
use std::thread;

use super::fake::{BAD, Fake, PANIC, Seen, arrived, request, submit, summary, tokens};
use crate::scheduler::queue::Queue;
use crate::scheduler::steps::Scheduler;
use crate::scheduler::{EngineError, Finish, GenEvent, GenRequest, GenStream, SlotWork};

/// `n` tokens that begin with `first` and hold neither of the special ones.
fn prompt(first: u32, n: usize) -> Vec<u32> {
    let mut prompt = vec![50; n];
    prompt[0] = first;
    prompt
}

fn failure(events: &[GenEvent]) -> String {
    match events.last() {
        Some(GenEvent::Failed(error)) => error.to_string(),
        other => panic!("not failed: {other:?}"),
    }
}

#[test]
fn a_long_prompt_holds_up_nobody_and_is_not_held_up() {
    let (model, queue) = (Fake::new(8192, 128), Queue::new(4));
    let mut scheduler = Scheduler::new(&model, &queue);
    let mut decoding = submit(&queue, request(prompt(1, 10), 1000));
    scheduler.step();
    assert_eq!(tokens(&arrived(&mut decoding)), [51]);
    let mut long = submit(&queue, request(prompt(2, 4000), 3));
    let mut passes = 0;
    let events = loop {
        scheduler.step();
        passes += 1;
        // One token for the one that decodes, in every pass.
        assert_eq!(tokens(&arrived(&mut decoding)).len(), 1);
        let events = arrived(&mut long);
        if !tokens(&events).is_empty() {
            break events;
        }
        assert!(model.last().contains(&Seen {
            first: 2,
            start: (passes - 1) * 128,
            tokens: 128
        }));
    };
    assert_eq!(
        (passes, tokens(&events)),
        (4000usize.div_ceil(128), vec![51])
    );

    // A short prompt is through in one pass beside another long one.
    let _long = submit(&queue, request(prompt(3, 4000), 3));
    scheduler.step();
    let mut short = submit(&queue, request(prompt(4, 50), 3));
    scheduler.step();
    assert_eq!(tokens(&arrived(&mut short)), [51]);
    assert_eq!(tokens(&arrived(&mut decoding)).len(), 2);
    let of_long = model.last().into_iter().find(|seen| seen.first == 3);
    assert_eq!(of_long.unwrap().tokens, 128 - 50);
}

#[test]
fn sixteen_decode_in_one_pass_and_one_prompt_beside_them() {
    let (model, queue) = (Fake::new(1024, 16), Queue::new(17));
    let mut scheduler = Scheduler::new(&model, &queue);
    let streams: Vec<_> = (0..16)
        .map(|i| submit(&queue, request(prompt(i, 2), 400)))
        .collect();
    let decodes = |work: &SlotWork| work.generated_tokens > 0;
    while queue
        .stats()
        .slots
        .iter()
        .flatten()
        .filter(|w| decodes(w))
        .count()
        < 16
    {
        scheduler.step();
    }
    let _late = submit(&queue, request(prompt(16, 40), 1));
    scheduler.step();
    let pass = model.last();
    // More requests decode than a block holds tokens, and the prompt still gets its block.
    assert_eq!(pass.len(), 17);
    assert_eq!(pass.iter().map(|seen| seen.tokens).sum::<usize>(), 16 + 16);
    assert_eq!(pass[16].tokens, 16);
    drop(streams);
}

#[test]
fn requests_beyond_the_slots_wait_in_order() {
    let (model, queue) = (Fake::new(256, 64), Queue::new(3));
    let mut scheduler = Scheduler::new(&model, &queue);
    let mut streams: Vec<_> = (0..19)
        .map(|i| submit(&queue, request(prompt(i, 4), 2 + i as usize % 3)))
        .collect();
    let mut started = Vec::new();
    let mut finished = 0;
    while finished < 19 {
        scheduler.step();
        let stats = queue.stats();
        assert!(stats.running <= 3 && model.last().len() <= 3);
        assert_eq!(stats.running, stats.slots.iter().flatten().count());
        finished = stats.finished as usize;
        assert_eq!(finished + stats.running + stats.waiting, 19);
        for (i, stream) in streams.iter_mut().enumerate() {
            let events = arrived(stream);
            if matches!(events.first(), Some(GenEvent::Started { .. })) {
                started.push(i);
            }
        }
    }
    assert_eq!(started, (0..19).collect::<Vec<_>>());
}

#[test]
fn a_caller_that_leaves_frees_the_slot_before_the_next_pass() {
    let (model, queue) = (Fake::new(8192, 64), Queue::new(2));
    let mut scheduler = Scheduler::new(&model, &queue);
    let in_prompt = submit(&queue, request(prompt(1, 5000), 9));
    let mut other = submit(&queue, request(prompt(2, 4), 100));
    scheduler.step();
    let waiting = submit(&queue, request(prompt(3, 4), 9));
    let mut next = submit(&queue, request(prompt(4, 4), 9));
    scheduler.step();
    assert_eq!(model.last().len(), 2);
    drop(in_prompt);
    drop(waiting);
    scheduler.step();
    let firsts: Vec<u32> = model.last().iter().map(|seen| seen.first).collect();
    assert_eq!(firsts, [2, 4]);
    assert_eq!(tokens(&arrived(&mut next)), [51]);
    assert_eq!(tokens(&arrived(&mut other)), [51, 52, 53]);
    let stats = queue.stats();
    assert_eq!((stats.cancelled, stats.running, stats.waiting), (2, 2, 0));
}

#[test]
fn stopping_ends_all_before_the_next_pass() {
    let (model, queue) = (Fake::new(256, 64), Queue::new(2));
    let mut scheduler = Scheduler::new(&model, &queue);
    let mut streams: Vec<_> = (0..4)
        .map(|i| submit(&queue, request(prompt(i, 4), 100)))
        .collect();
    assert!(scheduler.step());
    queue.stop();
    assert!(!scheduler.step());
    assert_eq!(model.passes.lock().unwrap().len(), 1);
    let told = EngineError::ShuttingDown.to_string();
    assert!(streams.iter_mut().all(|s| failure(&arrived(s)) == told));
    assert_eq!(queue.stats().running, 0);
}

#[test]
fn a_failure_is_its_own_requests_alone() {
    for special in [BAD, PANIC] {
        let (model, queue) = (Fake::new(256, 64), Queue::new(4));
        let mut scheduler = Scheduler::new(&model, &queue);
        let mut good = submit(&queue, request(prompt(1, 4), 6));
        // The token before the special one leads to it in the third pass.
        let mut bad = submit(&queue, request(vec![2, special - 2], 6));
        let mut prompt_too = submit(&queue, request(prompt(3, 100), 6));
        while queue.stats().finished < 3 {
            scheduler.step();
        }
        for stream in [&mut good, &mut prompt_too] {
            let events = arrived(stream);
            assert_eq!(tokens(&events), [51, 52, 53, 54, 55, 56], "{special}");
            assert_eq!(summary(&events).finish, Finish::Length);
        }
        let events = arrived(&mut bad);
        assert_eq!(tokens(&events), [special - 1, special]);
        assert!(
            failure(&events).contains("scripted"),
            "{}",
            failure(&events)
        );
        // What was sound of the failed one is kept, and can be used again.
        let again = GenRequest {
            cache_prompt: true,
            ..request(vec![2, special - 2, special - 1, 5], 1)
        };
        let mut again = submit(&queue, again);
        scheduler.step();
        assert_eq!(summary(&arrived(&mut again)).cache_n, 3);
    }
}

#[test]
fn figures_are_each_requests_own() {
    let (model, queue) = (Fake::new(256, 16), Queue::new(2));
    let mut scheduler = Scheduler::new(&model, &queue);
    let mut one = submit(&queue, request(prompt(1, 20), 5));
    let mut none = submit(&queue, request(prompt(2, 20), 0));
    let mut work = Vec::new();
    while queue.stats().finished < 2 {
        scheduler.step();
        work.push(queue.stats().slots[0]);
    }
    let seen: Vec<_> = work
        .iter()
        .flatten()
        .map(|w| (w.computed_tokens, w.generated_tokens))
        .collect();
    assert_eq!(seen[..2], [(8, 0), (16, 0)]);
    assert_eq!(seen.last(), Some(&(20, 4)));
    let (one, none) = (summary(&arrived(&mut one)), summary(&arrived(&mut none)));
    assert_eq!((one.prompt_n, one.predicted_n, one.cache_n), (20, 5, 0));
    assert_eq!((none.prompt_n, none.predicted_n), (20, 0));
    assert!(none.predicted_ms == 0.0 && one.prompt_ms > 0.0);
    let stats = queue.stats();
    assert_eq!((stats.prompt_tokens, stats.generated_tokens), (40, 5));
    let prompt_ms = one.prompt_ms + none.prompt_ms;
    assert!((stats.prompt_seconds * 1e3 - prompt_ms).abs() < 1e-6);
    assert_eq!(stats.passes as usize, model.passes.lock().unwrap().len());
    assert!(stats.slots.iter().all(Option::is_none));
}

#[test]
fn a_prompt_given_up_has_taken_time_for_its_tokens() {
    let (model, queue) = (Fake::new(256, 16), Queue::new(1));
    let mut scheduler = Scheduler::new(&model, &queue);
    let given_up = submit(&queue, request(prompt(1, 100), 5));
    scheduler.step();
    drop(given_up);
    let _next = submit(&queue, request(prompt(2, 100), 5));
    scheduler.step();
    let stats = queue.stats();
    assert_eq!((stats.cancelled, stats.prompt_tokens), (1, 32));
    assert!(stats.prompt_seconds > 0.0);
}

#[test]
fn the_bound_on_positions_holds_while_a_prefix_is_copied() {
    let (model, queue) = (Fake::new(1000, 2048), Queue::new(2));
    let mut scheduler = Scheduler::new(&model, &queue);
    let mut streams: Vec<_> = [(1, 1), (2, 1), (3, 1), (4, 5)]
        .map(|(first, most)| submit(&queue, request(prompt(first, 990), most)))
        .into();
    scheduler.step();
    // Two full sequences are kept. Of the next two requests, one ends and one goes on.
    scheduler.step();
    let stats = queue.stats();
    assert_eq!((stats.finished, stats.running), (3, 1));
    let mut like_third = prompt(3, 910);
    like_third[900] = 60;
    let like_third = GenRequest {
        cache_prompt: true,
        ..request(like_third, 1)
    };
    streams.push(submit(&queue, like_third));
    // Each start checks the bound, with the copy.
    scheduler.step();
    let cached = summary(&arrived(&mut streams[4])).cache_n;
    assert_eq!((cached, queue.stats().running), (900, 1));
}

#[test]
fn a_defect_outside_a_request_fails_them_all_and_the_next_one_works() {
    let (model, queue) = (Fake::new(256, 64), Queue::new(2));
    model.panic_after_pass.store(true, Ordering::Relaxed);
    let failing = [1, 2].map(|first| submit(&queue, request(prompt(first, 4), 6)));
    let all = |mut stream: GenStream| -> Vec<GenEvent> {
        std::iter::from_fn(|| stream.next_blocking()).collect()
    };
    let (failed, next) = thread::scope(|scope| {
        scope.spawn(|| Scheduler::new(&model, &queue).run());
        let failed = failing.map(all);
        let next = all(submit(&queue, request(prompt(3, 4), 2)));
        queue.stop();
        (failed, next)
    });
    for events in failed {
        assert!(failure(&events).contains("scripted panic after a pass"));
    }
    assert_eq!(tokens(&next), [51, 52]);
    let stats = queue.stats();
    assert_eq!((stats.finished, stats.running, stats.waiting), (3, 0, 0));
}
