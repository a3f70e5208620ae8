//! Loops that do nothing but the kernels' instructions, out of registers, and a loop that does
//! nothing but read memory: what a core can do at most. For `probe`, not for computing.

use std::hint::black_box;

use super::Isa;
use super::isa::Level;

/// One mix of instructions, repeated without waiting for memory.
#[derive(Clone, Copy, Debug)]
pub struct PeakLoop {
    /// The instructions and their width, as a reader would look them up.
    pub instructions: &'static str,
    /// Operations of one round; a multiplication and an addition are two.
    pub operations: u64,
    run: fn(u64),
}

impl PeakLoop {
    /// The int8 dot products of this level's kernels.
    pub fn int8(isa: Isa) -> Self {
        match isa.0 {
            Level::Scalar => Self {
                instructions: "portable Rust, what the compiler makes of it",
                operations: portable::OPERATIONS,
                run: portable::int8,
            },
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => Self {
                instructions: "4 vpmaddubsw, 1 vpmaddwd and their adds, 256 bits",
                operations: super::avx2::peak::INT8_OPERATIONS,
                run: super::avx2::peak::int8,
            },
            #[cfg(target_arch = "x86_64")]
            Level::AvxVnni => Self {
                instructions: "vpdpbusd, 256 bits",
                operations: super::avx2::peak::VNNI_OPERATIONS,
                run: super::avx2::peak::int8_vnni,
            },
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => Self {
                instructions: "vpdpbusd, 512 bits",
                operations: super::avx512::peak::INT8_OPERATIONS,
                run: super::avx512::peak::int8,
            },
            #[cfg(target_arch = "aarch64")]
            Level::Neon => Self {
                instructions: "sdot, 128 bits",
                operations: super::neon::peak::INT8_OPERATIONS,
                run: super::neon::peak::int8,
            },
        }
    }

    /// bf16 dot products; `None` where the machine has none at this level. (No kernel uses them:
    /// their sums have no order that other machines could repeat.)
    pub fn bf16(isa: Isa) -> Option<Self> {
        match isa.0 {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 if is_x86_feature_detected!("avx512bf16") => Some(Self {
                instructions: "vdpbf16ps, 512 bits",
                operations: super::avx512::peak::BF16_OPERATIONS,
                run: super::avx512::peak::bf16,
            }),
            _ => None,
        }
    }

    /// f32 products, rounded, then added: what the float kernels do.
    pub fn f32_mul_add(isa: Isa) -> Self {
        match isa.0 {
            Level::Scalar => Self {
                instructions: "portable Rust, what the compiler makes of it",
                operations: portable::OPERATIONS,
                run: portable::f32_mul_add,
            },
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 | Level::AvxVnni => Self {
                instructions: "vmulps and vaddps, 256 bits",
                operations: super::avx2::peak::F32_OPERATIONS,
                run: super::avx2::peak::f32_mul_add,
            },
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => Self {
                instructions: "vmulps and vaddps, 512 bits",
                operations: super::avx512::peak::F32_OPERATIONS,
                run: super::avx512::peak::f32_mul_add,
            },
            #[cfg(target_arch = "aarch64")]
            Level::Neon => Self {
                instructions: "fmul and fadd, 128 bits",
                operations: super::neon::peak::F32_OPERATIONS,
                run: super::neon::peak::f32_mul_add,
            },
        }
    }

    /// f32 multiply-add with one rounding; `None` where the machine has none at this level. (No
    /// kernel uses it.)
    pub fn f32_fma(isa: Isa) -> Option<Self> {
        match isa.0 {
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 | Level::AvxVnni if is_x86_feature_detected!("fma") => Some(Self {
                instructions: "vfmadd, 256 bits",
                operations: super::avx2::peak::F32_OPERATIONS,
                run: super::avx2::peak::f32_fma,
            }),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => Some(Self {
                instructions: "vfmadd, 512 bits",
                operations: super::avx512::peak::F32_OPERATIONS,
                run: super::avx512::peak::f32_fma,
            }),
            #[cfg(target_arch = "aarch64")]
            Level::Neon => Some(Self {
                instructions: "fmla, 128 bits",
                operations: super::neon::peak::F32_OPERATIONS,
                run: super::neon::peak::f32_fma,
            }),
            _ => None,
        }
    }

    /// Runs `rounds` rounds on this thread.
    pub fn run(&self, rounds: u64) {
        (self.run)(rounds);
    }
}

/// Reads every byte once, in order, with this level's widest loads. The result depends on every
/// byte, so that no read can be left out.
pub fn read_all(isa: Isa, bytes: &[u8]) -> u64 {
    match isa.0 {
        Level::Scalar => portable::read_all(bytes),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 | Level::AvxVnni => super::avx2::peak::read_all(bytes),
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => super::avx512::peak::read_all(bytes),
        #[cfg(target_arch = "aarch64")]
        Level::Neon => super::neon::peak::read_all(bytes),
    }
}

/// The loads of this level's [`read_all`].
pub fn read_instructions(isa: Isa) -> &'static str {
    match isa.0 {
        Level::Scalar => "portable Rust",
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 | Level::AvxVnni => "256-bit loads",
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => "512-bit loads",
        #[cfg(target_arch = "aarch64")]
        Level::Neon => "128-bit loads",
    }
}

/// The portable loops; the compiler may vectorise them for the build's baseline.
pub(super) mod portable {
    use super::black_box;

    const WIDTH: usize = 64;
    /// A multiplication and an addition for each of 64 elements.
    pub(super) const OPERATIONS: u64 = 2 * WIDTH as u64;

    pub(super) fn int8(rounds: u64) {
        let w: [i8; WIDTH] = black_box([3; WIDTH]);
        let mut q: [i8; WIDTH] = black_box([5; WIDTH]);
        let mut sum = 0i32;
        for _ in 0..rounds {
            let dot: i32 = w
                .iter()
                .zip(&q)
                .map(|(w, q)| i32::from(*w) * i32::from(*q))
                .sum();
            sum = sum.wrapping_add(dot);
            // The next round depends on this one, so that it cannot be taken out of the loop.
            q[0] = sum as i8;
        }
        black_box(sum);
    }

    pub(super) fn f32_mul_add(rounds: u64) {
        let mut acc: [f32; WIDTH] = black_box([1.0; WIDTH]);
        let (c, d) = black_box((0.5f32, 1.0f32));
        for _ in 0..rounds {
            for a in &mut acc {
                *a = *a * c + d;
            }
        }
        black_box(acc);
    }

    pub(in super::super) fn read_all(bytes: &[u8]) -> u64 {
        let (chunks, tail) = bytes.as_chunks::<64>();
        let mut sums = [0u64; 8];
        for chunk in chunks {
            for (sum, word) in sums.iter_mut().zip(chunk.as_chunks::<8>().0) {
                *sum ^= u64::from_ne_bytes(*word);
            }
        }
        let tail = tail.iter().fold(0, |sum, b| sum ^ u64::from(*b));
        sums.into_iter().fold(tail, |a, b| a ^ b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_reads_every_byte() {
        let mut bytes = vec![0u8; 64 * 70 + 13];
        for isa in Isa::available() {
            assert_eq!(read_all(isa, &bytes), 0);
            for at in [0, 31, 32, 63, 64, 2047, 64 * 64 + 1, 64 * 70, 64 * 70 + 12] {
                bytes[at] = 0x5a;
                assert_ne!(read_all(isa, &bytes), 0, "{} at {at}", isa.name());
                assert_eq!(
                    read_all(isa, &bytes),
                    portable::read_all(&bytes),
                    "{}",
                    isa.name()
                );
                bytes[at] = 0;
            }
        }
    }

    #[test]
    fn each_loop_runs_and_counts_its_operations() {
        for isa in Isa::available() {
            let loops = [
                Some(PeakLoop::int8(isa)),
                PeakLoop::bf16(isa),
                Some(PeakLoop::f32_mul_add(isa)),
                PeakLoop::f32_fma(isa),
            ];
            for peak in loops.into_iter().flatten() {
                peak.run(1000);
                assert!(peak.operations >= 16, "{}", peak.instructions);
            }
        }
    }
}
