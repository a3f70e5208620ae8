//! Which instructions this machine has.

/// An instruction-set level whose kernels exist here. Holding a value other than `Scalar` is
/// the proof that the machine has the instructions: it can only come from detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isa(pub(super) Level);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Scalar,
}

impl Isa {
    /// The portable twins.
    pub const SCALAR: Isa = Isa(Level::Scalar);
    /// The best level of this machine.
    pub fn detect() -> Isa {
        todo!()
    }
    /// Every level that this machine can run, `SCALAR` first.
    pub fn available() -> Vec<Isa> {
        todo!()
    }
    /// A level by name (`scalar`, `avx2`, `avx512`, ...), if this machine has it.
    pub fn by_name(_name: &str) -> Option<Isa> {
        todo!()
    }
    /// `scalar`, `avx2`, `avx512`.
    pub fn name(self) -> &'static str {
        todo!()
    }
}
