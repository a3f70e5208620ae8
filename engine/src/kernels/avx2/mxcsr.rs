//! The SSE control and status register. (SSE is part of every x86-64.)

use std::arch::asm;

/// Reads MXCSR.
pub(in crate::kernels) fn mxcsr() -> u32 {
    let mut value = 0u32;
    // SAFETY: `stmxcsr` writes 4 bytes to the address given, which is a live local.
    unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack, preserves_flags)) };
    value
}

/// Writes MXCSR.
pub(in crate::kernels) fn set_mxcsr(value: u32) {
    let masked = value & 0xffff | 0x1f80;
    // SAFETY: `ldmxcsr` reads 4 bytes from a live local. Reserved bits are cleared and every
    // exception stays masked, so neither the load nor later arithmetic can trap; the callers
    // set an environment only around their own arithmetic and put the old one back.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const masked, options(nostack, preserves_flags)) };
}
