//! Attention of gpt-oss's shape on one thread, at each instruction-set level and with K/V in f16
//! and f32: one token behind 1024 and 8192 others, and blocks of a prompt of 512, 2048 and 13,000
//! tokens, over the full context and in a window of 128.
#![allow(missing_docs, reason = "criterion's macros make public items")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{
    BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
};
use palindrome_engine::kernels::{Isa, Precision};
use palindrome_engine::kv::{KvCache, KvShape, KvType};
use palindrome_engine::ops::{AttentionShape, Place, Precisions, Tools, attention};
use palindrome_engine::team::Team;

const HEADS: usize = 64;
const KV_HEADS: usize = 8;
const HEAD_DIM: usize = 64;

/// Something like noise, without a generator.
fn wave(n: usize, step: f32) -> Vec<f32> {
    (0..n).map(|i| (i as f32 * step).sin()).collect()
}

/// A cache of `positions` positions.
fn filled(positions: usize, ty: KvType) -> KvCache {
    let width = KV_HEADS * HEAD_DIM;
    let shape = KvShape {
        layers: 1,
        kv_heads: KV_HEADS,
        head_dim: HEAD_DIM,
        ctx: positions,
    };
    let mut cache = KvCache::new(shape, ty);
    let (keys, values) = (wave(positions * width, 0.37), wave(positions * width, 0.53));
    cache
        .write(0, &keys, &values)
        .unwrap_or_else(|error| panic!("a wave fits f16: {error}"));
    cache.advance(positions);
    cache
}

fn attend(criterion: &mut Criterion) {
    let team = Team::new(1);
    let sinks = wave(HEADS, 0.2);
    // Name, tokens, positions before them. The middle block of a prompt costs as much as the
    // average one.
    let cases = [
        ("decode-1k", 1, 1024),
        ("decode-8k", 1, 8192),
        ("prompt-512", 128, 192),
        ("prompt-2048", 128, 960),
        ("prompt-13000", 128, 6436),
    ];
    for (name, tokens, before) in cases {
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
        for ty in [KvType::F16, KvType::F32] {
            let cache = filled(before + tokens, ty);
            for (kind, window) in [("full", None), ("window-128", Some(128))] {
                let shape = AttentionShape {
                    heads: HEADS,
                    kv_heads: KV_HEADS,
                    head_dim: HEAD_DIM,
                    window,
                    scale: 0.125,
                };
                for isa in Isa::available() {
                    if isa == Isa::SCALAR && before > 1024 {
                        continue;
                    }
                    let tools = Tools {
                        team: &team,
                        isa,
                        precisions: Precisions::all(Precision::Int8),
                    };
                    let mut out = Vec::new();
                    let id = BenchmarkId::new(kind, format!("{}/{}", ty.name(), isa.name()));
                    group.bench_function(id, |bencher| {
                        bencher.iter(|| {
                            let layers = [cache.layer(0)];
                            let sinks = Some(&sinks[..]);
                            attention(tools, &shape, &q, &places, &layers, sinks, &mut out);
                            black_box(&out);
                        });
                    });
                }
            }
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(500));
    targets = attend
}
criterion_main!(benches);
