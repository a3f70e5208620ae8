//! The floating-point environment that exactness needs.

/// Sets this thread's floating-point environment to round-to-nearest-even with subnormals
/// kept (FTZ and DAZ off) and all exceptions masked; restores what was there when dropped.
///
/// Every worker thread and every caller holds one while it computes, so that a host program's
/// state changes no result. Compiled code assumes this environment; what the guard does is make
/// that true again when something else (a library loaded with fast-math) has changed it.
#[derive(Debug)]
#[must_use = "the environment is restored as soon as the guard is dropped"]
pub struct FpEnv {
    #[cfg(target_arch = "x86_64")]
    saved: u32,
    /// The environment belongs to a thread: the guard must not leave it.
    _thread: std::marker::PhantomData<*const ()>,
}

#[cfg(target_arch = "x86_64")]
mod imp {
    use super::FpEnv;

    /// MXCSR's value at process start: exceptions masked, nearest even, no FTZ, no DAZ.
    const DEFAULT: u32 = 0x1f80;

    impl FpEnv {
        /// Sets the default environment until the guard is dropped.
        pub fn set_default() -> Self {
            let saved = super::super::avx2::mxcsr();
            super::super::avx2::set_mxcsr(DEFAULT);
            Self {
                saved,
                _thread: std::marker::PhantomData,
            }
        }
    }

    impl Drop for FpEnv {
        fn drop(&mut self) {
            super::super::avx2::set_mxcsr(self.saved);
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl FpEnv {
    /// Does nothing on this architecture yet: Rust threads start in the default environment.
    pub fn set_default() -> Self {
        Self {
            _thread: std::marker::PhantomData,
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::super::avx2::{mxcsr, set_mxcsr};
    use super::*;
    use std::hint::black_box;

    /// FTZ and DAZ: bits 15 and 6; rounding toward zero: bits 14 and 13.
    const ODD: u32 = 0x1f80 | 1 << 15 | 1 << 6 | 3 << 13;
    /// The control bits, without the sticky exception flags.
    const CONTROL: u32 = !0x3f;

    #[test]
    fn odd_state_is_set_aside_and_restored() {
        let before = mxcsr();
        set_mxcsr(ODD);
        let tiny = || black_box(f32::from_bits(0x0100_0000)) * black_box(0.25);
        let odd_product = tiny();
        let inside = {
            let _guard = FpEnv::set_default();
            (mxcsr() & CONTROL, tiny())
        };
        let after = mxcsr();
        set_mxcsr(before);
        assert_eq!(odd_product, 0.0, "FTZ was on: the test shows something");
        assert_eq!(inside.0, 0x1f80 & CONTROL);
        assert_eq!(inside.1.to_bits(), 0x0040_0000);
        assert_eq!(after & CONTROL, ODD & CONTROL);
    }
}
