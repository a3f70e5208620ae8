//! Attention of gpt-oss's shape on one thread: one token behind 1024 and 8192 others, and a
//! prompt's block of 128, over the full context and in a window of 128.
#![allow(missing_docs, reason = "criterion's macros make public items")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{
    BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
};
use palindrome_engine::kv::{KvCache, KvShape};
use palindrome_engine::ops::{AttentionShape, Place, attention};
use palindrome_engine::team::Team;

const HEADS: usize = 64;
const KV_HEADS: usize = 8;
const HEAD_DIM: usize = 64;

/// Something like noise, without a generator.
fn wave(n: usize, step: f32) -> Vec<f32> {
    (0..n).map(|i| (i as f32 * step).sin()).collect()
}

/// A cache of `positions` positions.
fn filled(positions: usize) -> KvCache {
    let width = KV_HEADS * HEAD_DIM;
    let mut cache = KvCache::new(KvShape {
        layers: 1,
        kv_heads: KV_HEADS,
        head_dim: HEAD_DIM,
        ctx: positions,
    });
    let (keys, values) = (wave(positions * width, 0.37), wave(positions * width, 0.53));
    cache.write(0, &keys, &values);
    cache.advance(positions);
    cache
}

fn attend(criterion: &mut Criterion) {
    let team = Team::new(1);
    let sinks = wave(HEADS, 0.2);
    // Name, tokens, positions before them.
    let cases = [
        ("decode-1k", 1, 1024),
        ("decode-8k", 1, 8192),
        ("block-128-at-1k", 128, 1024),
    ];
    for (name, tokens, before) in cases {
        let cache = filled(before + tokens);
        let q = wave(tokens * HEADS * HEAD_DIM, 0.91);
        let places: Vec<Place> = (before..before + tokens)
            .map(|position| Place {
                segment: 0,
                position,
            })
            .collect();
        let mut group = criterion.benchmark_group(format!("attention/{name}"));
        group.sampling_mode(SamplingMode::Flat);
        group.throughput(Throughput::Elements(tokens as u64));
        for (kind, window) in [("full", None), ("window-128", Some(128))] {
            let shape = AttentionShape {
                heads: HEADS,
                kv_heads: KV_HEADS,
                head_dim: HEAD_DIM,
                window,
                scale: 0.125,
            };
            let mut out = Vec::new();
            group.bench_function(BenchmarkId::from_parameter(kind), |bencher| {
                bencher.iter(|| {
                    let layers = [cache.layer(0)];
                    let sinks = Some(&sinks[..]);
                    attention(&team, &shape, &q, &places, &layers, sinks, &mut out);
                    black_box(&out);
                });
            });
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1));
    targets = attend
}
criterion_main!(benches);
