//! The floating-point environment that exactness needs.

/// Sets this thread's floating-point environment to round-to-nearest-even with subnormals
/// kept (no flushing to zero) and all exceptions masked; restores what was there when dropped.
///
/// Every worker thread and every caller holds one while it computes, so that a host program's
/// state changes no result. Compiled code assumes this environment; what the guard does is make
/// that true again when something else (a library loaded with fast-math) has changed it.
#[derive(Debug)]
#[must_use = "the environment is restored as soon as the guard is dropped"]
pub struct FpEnv {
    saved: register::Bits,
    /// The environment belongs to a thread: the guard must not leave it.
    _thread: std::marker::PhantomData<*const ()>,
}

impl FpEnv {
    /// Sets the default environment until the guard is dropped.
    pub fn set_default() -> Self {
        let saved = register::get();
        register::set(register::DEFAULT);
        Self {
            saved,
            _thread: std::marker::PhantomData,
        }
    }
}

impl Drop for FpEnv {
    fn drop(&mut self) {
        register::set(self.saved);
    }
}

#[cfg(target_arch = "x86_64")]
mod register {
    pub(super) use super::super::avx2::{mxcsr as get, set_mxcsr as set};

    pub(super) type Bits = u32;
    /// MXCSR's value at process start: exceptions masked, nearest even, no FTZ, no DAZ.
    pub(super) const DEFAULT: Bits = 0x1f80;
    /// FTZ and DAZ: bits 15 and 6; rounding toward zero: bits 14 and 13.
    #[cfg(test)]
    pub(super) const ODD: Bits = DEFAULT | 1 << 15 | 1 << 6 | 3 << 13;
    /// The control bits, without the sticky exception flags.
    #[cfg(test)]
    pub(super) const CONTROL: Bits = !0x3f;
}

#[cfg(target_arch = "aarch64")]
mod register {
    pub(super) use super::super::neon::{fpcr as get, set_fpcr as set};

    pub(super) type Bits = u64;
    /// FPCR's value at process start: exceptions masked, nearest even, nothing flushed to zero.
    pub(super) const DEFAULT: Bits = 0;
    /// Flushing to zero: bit 24; rounding toward zero: bits 23 and 22.
    #[cfg(test)]
    pub(super) const ODD: Bits = 1 << 24 | 3 << 22;
    #[cfg(test)]
    pub(super) const CONTROL: Bits = !0;
}

/// Nothing is set on other architectures: Rust threads start in the default environment.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod register {
    pub(super) type Bits = ();
    pub(super) const DEFAULT: Bits = ();
    pub(super) fn get() -> Bits {}
    pub(super) fn set((): Bits) {}
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use super::register::{CONTROL, DEFAULT, ODD, get, set};
    use super::*;
    use std::hint::black_box;

    #[test]
    fn odd_state_is_set_aside_and_restored() {
        let before = get();
        set(ODD);
        let tiny = || black_box(f32::from_bits(0x0100_0000)) * black_box(0.25);
        let odd_product = tiny();
        let inside = {
            let _guard = FpEnv::set_default();
            (get() & CONTROL, tiny())
        };
        let after = get();
        set(before);
        assert_eq!(
            odd_product, 0.0,
            "it was flushed to zero: the test shows something"
        );
        assert_eq!(inside.0, DEFAULT & CONTROL);
        assert_eq!(inside.1.to_bits(), 0x0040_0000);
        assert_eq!(after & CONTROL, ODD & CONTROL);
    }
}
