//! AVX-512 at its best; see [`crate::kernels::peak`]. All loops keep several sums under way so
//! that no instruction waits for the one before, and each round depends on the last.

// (The lint does not fire in a test build, where `expect` would be unfulfilled.)
#[allow(
    clippy::wildcard_imports,
    reason = "a kernel names dozens of intrinsics"
)]
use std::arch::x86_64::*;
use std::hint::black_box;

use crate::kernels::peak::portable;

/// Sums under way.
const SUMS: usize = 12;

/// 64 bytes a sum, each a multiplication and an addition.
pub(in crate::kernels) const INT8_OPERATIONS: u64 = (SUMS * 64 * 2) as u64;
/// 32 bf16 values a sum.
pub(in crate::kernels) const BF16_OPERATIONS: u64 = (SUMS * 32 * 2) as u64;
/// 16 lanes a sum.
pub(in crate::kernels) const F32_OPERATIONS: u64 = (SUMS * 16 * 2) as u64;

/// Bytes of a step of [`read_all`].
const STEP: usize = 512;
/// How far ahead of the loads memory is asked for.
const AHEAD: usize = 2048;

/// The caller holds an `Isa` of this level, as for all that follow.
pub(in crate::kernels) fn int8(rounds: u64) {
    // SAFETY: reached only through `Isa(Level::Avx512)`, which only detection of AVX-512 F, BW
    // and VNNI makes.
    unsafe { int8_avx512(rounds) }
}

/// Besides, the machine has AVX-512 BF16.
pub(in crate::kernels) fn bf16(rounds: u64) {
    // SAFETY: as above; `PeakLoop::bf16` has seen that there is BF16.
    unsafe { bf16_avx512(rounds) }
}

pub(in crate::kernels) fn f32_mul_add(rounds: u64) {
    // SAFETY: as for `int8`.
    unsafe { f32_mul_add_avx512(rounds) }
}

pub(in crate::kernels) fn f32_fma(rounds: u64) {
    // SAFETY: as for `int8`.
    unsafe { f32_fma_avx512(rounds) }
}

pub(in crate::kernels) fn read_all(bytes: &[u8]) -> u64 {
    // SAFETY: as for `int8`.
    unsafe { read_all_avx512(bytes) }
}

#[target_feature(enable = "avx512f,avx512vnni")]
fn int8_avx512(rounds: u64) {
    let w = black_box(_mm512_set1_epi8(3));
    let q = black_box(_mm512_set1_epi8(5));
    let mut sums: [__m512i; SUMS] = black_box([_mm512_set1_epi32(1); SUMS]);
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = _mm512_dpbusd_epi32(*sum, w, q);
        }
    }
    black_box(sums);
}

#[target_feature(enable = "avx512f,avx512bf16")]
fn bf16_avx512(rounds: u64) {
    let one = black_box(_mm512_set1_ps(1.0));
    let (w, x) = (_mm512_cvtne2ps_pbh(one, one), _mm512_cvtne2ps_pbh(one, one));
    let mut sums: [__m512; SUMS] = black_box([one; SUMS]);
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = _mm512_dpbf16_ps(*sum, w, x);
        }
    }
    black_box(sums);
}

#[target_feature(enable = "avx512f")]
fn f32_mul_add_avx512(rounds: u64) {
    let c = black_box(_mm512_set1_ps(0.5));
    let d = black_box(_mm512_set1_ps(1.0));
    let mut sums: [__m512; SUMS] = black_box([d; SUMS]);
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = _mm512_add_ps(_mm512_mul_ps(*sum, c), d);
        }
    }
    black_box(sums);
}

#[target_feature(enable = "avx512f")]
fn f32_fma_avx512(rounds: u64) {
    let c = black_box(_mm512_set1_ps(0.5));
    let d = black_box(_mm512_set1_ps(1.0));
    let mut sums: [__m512; SUMS] = black_box([d; SUMS]);
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = _mm512_fmadd_ps(*sum, c, d);
        }
    }
    black_box(sums);
}

#[target_feature(enable = "avx512f")]
fn read_all_avx512(bytes: &[u8]) -> u64 {
    let (steps, tail) = bytes.as_chunks::<STEP>();
    let mut sums = [_mm512_setzero_si512(); STEP / 64];
    for step in steps {
        let at = step.as_ptr();
        for line in (0..STEP).step_by(64) {
            // Prefetching has no effect but on caches, at any address.
            _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(AHEAD + line).cast());
        }
        for (sum, part) in sums.iter_mut().zip(step.as_chunks::<64>().0) {
            // SAFETY: a part has 64 bytes.
            let x = unsafe { _mm512_loadu_si512(part.as_ptr().cast()) };
            *sum = _mm512_xor_si512(*sum, x);
        }
    }
    let mut words = [0u8; STEP];
    for (sum, part) in sums.iter().zip(words.as_chunks_mut::<64>().0) {
        // SAFETY: a part has 64 bytes.
        unsafe { _mm512_storeu_si512(part.as_mut_ptr().cast(), *sum) };
    }
    portable::read_all(&words) ^ portable::read_all(tail)
}
