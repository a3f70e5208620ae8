//! The floating-point control register.

use std::arch::asm;

/// This thread's FPCR.
pub(in crate::kernels) fn fpcr() -> u64 {
    let bits;
    // SAFETY: reads a register that every 64-bit Arm machine has.
    unsafe { asm!("mrs {}, fpcr", out(reg) bits, options(nomem, nostack, preserves_flags)) };
    bits
}

/// Sets this thread's FPCR.
pub(in crate::kernels) fn set_fpcr(bits: u64) {
    // SAFETY: sets control bits of floating point alone; the one caller, `FpEnv`, gives back what
    // was there, and between sets what compiled code assumes. (Not `nomem`: nothing moves across.)
    unsafe { asm!("msr fpcr, {}", in(reg) bits, options(nostack, preserves_flags)) };
}
