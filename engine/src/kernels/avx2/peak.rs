//! AVX2 at its best; see [`crate::kernels::peak`]. All loops keep several sums under way so that
//! no instruction waits for the one before, and each round depends on the last.

// (The lint does not fire in a test build, where `expect` would be unfulfilled.)
#[allow(
    clippy::wildcard_imports,
    reason = "a kernel names dozens of intrinsics"
)]
use std::arch::x86_64::*;
use std::hint::black_box;

use crate::kernels::peak::portable;

/// Sums under way.
const INT8_SUMS: usize = 6;
const F32_SUMS: usize = 12;

/// Four products of 32 bytes a sum, each a multiplication and an addition.
pub(in crate::kernels) const INT8_OPERATIONS: u64 = (INT8_SUMS * 4 * 32 * 2) as u64;
/// A product of 32 bytes a sum.
pub(in crate::kernels) const VNNI_OPERATIONS: u64 = (F32_SUMS * 32 * 2) as u64;
/// Eight lanes a sum.
pub(in crate::kernels) const F32_OPERATIONS: u64 = (F32_SUMS * 8 * 2) as u64;

/// Bytes of a step of [`read_all`].
const STEP: usize = 256;
/// How far ahead of the loads memory is asked for.
const AHEAD: usize = 2048;

/// The caller holds an `Isa` of this level, as for all that follow.
pub(in crate::kernels) fn int8(rounds: u64) {
    // SAFETY: reached only through `Isa(Level::Avx2)`, which only detection makes.
    unsafe { int8_avx2(rounds) }
}

/// Besides, the machine has AVX-VNNI.
pub(in crate::kernels) fn int8_vnni(rounds: u64) {
    // SAFETY: reached only through `Isa(Level::AvxVnni)`, which only detection makes.
    unsafe { int8_avxvnni(rounds) }
}

pub(in crate::kernels) fn f32_mul_add(rounds: u64) {
    // SAFETY: as above.
    unsafe { f32_mul_add_avx2(rounds) }
}

/// Besides, the machine has FMA.
pub(in crate::kernels) fn f32_fma(rounds: u64) {
    // SAFETY: as above; `PeakLoop::f32_fma` has seen that there is FMA.
    unsafe { f32_fma_avx2(rounds) }
}

pub(in crate::kernels) fn read_all(bytes: &[u8]) -> u64 {
    // SAFETY: as above.
    unsafe { read_all_avx2(bytes) }
}

#[target_feature(enable = "avx2")]
fn int8_avx2(rounds: u64) {
    let q: [__m256i; 4] = black_box(std::array::from_fn(|i| _mm256_set1_epi8(i as i8 + 1)));
    let ones = black_box(_mm256_set1_epi16(1));
    let mut sums: [__m256i; INT8_SUMS] = black_box([_mm256_set1_epi32(1); INT8_SUMS]);
    for _ in 0..rounds {
        for sum in &mut sums {
            let product = |i: usize| _mm256_maddubs_epi16(*sum, q[i]);
            let low = _mm256_add_epi16(product(0), product(1));
            let high = _mm256_add_epi16(product(2), product(3));
            let four = _mm256_madd_epi16(_mm256_add_epi16(low, high), ones);
            *sum = _mm256_add_epi32(*sum, four);
        }
    }
    black_box(sums);
}

#[target_feature(enable = "avx2,avxvnni")]
fn int8_avxvnni(rounds: u64) {
    let q = black_box(_mm256_set1_epi8(1));
    let mut sums: [__m256i; F32_SUMS] = black_box([_mm256_set1_epi32(1); F32_SUMS]);
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = _mm256_dpbusd_avx_epi32(*sum, *sum, q);
        }
    }
    black_box(sums);
}

#[target_feature(enable = "avx2")]
fn f32_mul_add_avx2(rounds: u64) {
    let c = black_box(_mm256_set1_ps(0.5));
    let d = black_box(_mm256_set1_ps(1.0));
    let mut sums: [__m256; F32_SUMS] = black_box([d; F32_SUMS]);
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = _mm256_add_ps(_mm256_mul_ps(*sum, c), d);
        }
    }
    black_box(sums);
}

#[target_feature(enable = "avx2,fma")]
fn f32_fma_avx2(rounds: u64) {
    let c = black_box(_mm256_set1_ps(0.5));
    let d = black_box(_mm256_set1_ps(1.0));
    let mut sums: [__m256; F32_SUMS] = black_box([d; F32_SUMS]);
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = _mm256_fmadd_ps(*sum, c, d);
        }
    }
    black_box(sums);
}

#[target_feature(enable = "avx2")]
fn read_all_avx2(bytes: &[u8]) -> u64 {
    let (steps, tail) = bytes.as_chunks::<STEP>();
    let mut sums = [_mm256_setzero_si256(); STEP / 32];
    for step in steps {
        let at = step.as_ptr();
        for line in (0..STEP).step_by(64) {
            // Prefetching has no effect but on caches, at any address.
            _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(AHEAD + line).cast());
        }
        for (sum, part) in sums.iter_mut().zip(step.as_chunks::<32>().0) {
            // SAFETY: a part has 32 bytes.
            let x = unsafe { _mm256_loadu_si256(part.as_ptr().cast()) };
            *sum = _mm256_xor_si256(*sum, x);
        }
    }
    let mut words = [0u8; STEP];
    for (sum, part) in sums.iter().zip(words.as_chunks_mut::<32>().0) {
        // SAFETY: a part has 32 bytes.
        unsafe { _mm256_storeu_si256(part.as_mut_ptr().cast(), *sum) };
    }
    portable::read_all(&words) ^ portable::read_all(tail)
}
