//! Four f32 at a time, on every x86-64 machine.

mod quad;

pub(super) use quad::Quad;
