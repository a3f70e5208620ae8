use super::*;

const SHAPE: KvShape = KvShape {
    layers: 2,
    kv_heads: 2,
    head_dim: 18,
    ctx: 10_000,
};
/// Bytes of a chunk of f32 of this shape: keys, and values in whole panels.
const CHUNK: usize = 2 * 64 * (18 + 32) * 4;

fn value(layer: usize, position: usize, head: usize, d: usize) -> f32 {
    // Whole numbers that f16 holds as well.
    ((layer * 700 + position * 40 + head * 20 + d) % 2048) as f32
}

/// Writes and counts `n` more positions.
fn fill(cache: &mut KvCache, n: usize) {
    write(cache, n);
    cache.advance(n);
}

fn write(cache: &mut KvCache, n: usize) {
    let start = cache.len();
    for layer in 0..2 {
        let mut keys = Vec::new();
        for p in start..start + n {
            for h in 0..2 {
                keys.extend((0..18).map(|d| value(layer, p, h, d)));
            }
        }
        let values: Vec<f32> = keys.iter().map(|k| -k).collect();
        cache.write(layer, &keys, &values).unwrap();
    }
}

fn check_positions(cache: &KvCache, layer: usize, positions: std::ops::Range<usize>) {
    for p in positions {
        for h in 0..2 {
            let expected: Vec<f32> = (0..18).map(|d| value(layer, p, h, d)).collect();
            let (key, value) = cache.layer(layer).position(h, p);
            assert_eq!(key, expected, "layer {layer}, position {p}");
            assert!(value.iter().zip(&expected).all(|(v, k)| *v == -k));
        }
    }
}

/// The ends of layer 0, and of layer 1 what the next position looks at.
fn check(cache: &KvCache, window: usize) {
    let len = cache.len();
    check_positions(cache, 0, 0..len.min(70));
    check_positions(cache, 0, len.saturating_sub(400)..len);
    let seen = (cache.len() + 1).saturating_sub(window);
    check_positions(cache, 1, seen..cache.len());
}

#[test]
fn what_is_written_is_read_across_chunks() {
    for ty in [KvType::F32, KvType::F16] {
        let mut cache = KvCache::new(SHAPE, ty);
        assert_eq!((cache.bytes(), cache.is_empty()), (0, true));
        for n in [1, 62, 1, 1, 300] {
            fill(&mut cache, n);
        }
        assert_eq!(cache.len(), 365);
        assert_eq!(cache.bytes(), 2 * 6 * CHUNK * ty.bytes() / 4);
        check(&cache, usize::MAX);
    }
}

#[test]
fn truncating_and_copying_keep_the_prefix() {
    let mut cache = KvCache::new(SHAPE, KvType::F32);
    fill(&mut cache, 600);
    let copy = cache.prefix(320);
    assert_eq!((copy.len(), copy.bytes()), (320, cache.bytes() / 2));
    check(&copy, usize::MAX);
    assert_eq!(cache.truncate(300), 300);
    assert_eq!(cache.len(), 300);
    fill(&mut cache, 30);
    check(&cache, usize::MAX);
    assert_eq!(cache.truncate(1000), 330);
}

#[test]
fn f16_rounds_half_to_even_and_refuses_what_it_cannot_hold() {
    let shape = KvShape {
        layers: 1,
        kv_heads: 1,
        head_dim: 4,
        ctx: 10,
    };
    let mut cache = KvCache::new(shape, KvType::F16);
    // Between 2048 and 4096 f16 holds even numbers; below 2^-24 half a step is left.
    let step = 2f32.powi(-24);
    let row = [2049.0, 2051.0, 0.5 * step, 65519.0];
    cache.write(0, &row, &row).unwrap();
    cache.advance(1);
    let held = [2048.0, 2052.0, 0.0, 65504.0].to_vec();
    assert_eq!(cache.layer(0).position(0, 0), (held.clone(), held));
    for bad in [65520.0, f32::NEG_INFINITY, f32::NAN] {
        let sound = [1.0; 8];
        let mut rows = sound;
        rows[6] = bad;
        for (keys, values) in [(rows, sound), (sound, rows)] {
            assert_eq!(cache.write(0, &keys, &values), Err(NotHeld { row: 1 }));
        }
    }
    assert_eq!(cache.len(), 1);
}

/// Layer 1 looks at `window` positions.
fn windowed(window: usize) -> KvCache {
    KvCache::windowed(SHAPE, KvType::F32, &[None, Some(window)])
}

/// Chunks that layer 1 holds.
fn ring(cache: &KvCache) -> usize {
    cache.bytes() / CHUNK - cache.len().div_ceil(64)
}

#[test]
fn a_windowed_layer_holds_little_more_than_its_window() {
    for window in [1, 2, 64, 65, 200] {
        for pass in [1, 33, 512] {
            let mut cache = windowed(window);
            while cache.len() < 5000 {
                fill(&mut cache, pass);
                check_positions(
                    &cache,
                    1,
                    (cache.len() + 1).saturating_sub(window)..cache.len(),
                );
                // Chunks that a window touches, at most.
                let touched = (window + 62) / 64 + 1;
                let most = touched + pass.div_ceil(64) + 8 * touched;
                assert!(
                    ring(&cache) <= most,
                    "window {window}, {pass} a pass, {} positions: {} chunks",
                    cache.len(),
                    ring(&cache)
                );
            }
        }
    }
}

#[test]
fn cutting_back_is_refused_where_the_window_is_gone() {
    for window in [1, 2, 64, 65, 128] {
        for pass in [1, 50, 300] {
            let mut cache = windowed(window);
            for _ in 0..2500usize.div_ceil(pass) {
                fill(&mut cache, pass);
            }
            let len = cache.len();
            for cut in (0..=len).step_by(97).chain([512, 511, 513, len - 1, len]) {
                let mut copy = cache.prefix(cut);
                let kept = copy.len();
                assert_eq!(kept, cache.resumable(cut));
                assert!(kept <= cut && cut - kept < 512, "{cut} was cut to {kept}");
                assert!(cut < len - pass.min(len) || kept == cut, "a pass back");
                check(&copy, window);
                // What it goes on with is read, whatever lay there before.
                fill(&mut copy, 70);
                check(&copy, window);
                assert!(ring(&copy) < 40);
            }
            for cut in [len - 1, 1800, 1500, 700, 30] {
                let kept = cache.truncate(cut);
                assert_eq!(kept, cache.len());
                assert!(kept <= cut && cut - kept < 1024, "{cut} was cut to {kept}");
                check(&cache, window);
                fill(&mut cache, 20);
                check(&cache, window);
            }
        }
    }
}

#[test]
fn a_mark_is_kept_and_a_little_before_it() {
    let mut cache = windowed(128);
    fill(&mut cache, 900);
    cache.mark();
    for _ in 0..1000 {
        fill(&mut cache, 1);
    }
    for cut in [900, 899, 870, 836] {
        assert_eq!(cache.resumable(cut), cut);
        check(&cache.prefix(cut), 128);
    }
    assert_eq!(cache.resumable(901), 901, "its chunk is there");
    assert!(cache.resumable(1400) < 1400);
    cache.mark();
    for _ in 0..1000 {
        fill(&mut cache, 1);
    }
    assert!(cache.resumable(900) < 900, "another mark took its place");
    assert_eq!(cache.resumable(1900), 1900);
}

#[test]
fn a_pass_can_be_taken_back() {
    let mut cache = windowed(100);
    fill(&mut cache, 1000);
    for n in [1, 64, 700] {
        let before = cache.len();
        write(&mut cache, n);
        assert_eq!(cache.truncate(before), before);
        check(&cache, 100);
        fill(&mut cache, n);
        assert_eq!(cache.truncate(before), before);
        check(&cache, 100);
        fill(&mut cache, 150);
    }
}
