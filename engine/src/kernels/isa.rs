//! Which instructions this machine has.

/// An instruction-set level whose kernels exist here. Holding a value other than `Scalar` is
/// the proof that the machine has the instructions: it can only come from detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isa(
    pub(super) Level,
    /// A defect to show that checks notice one; there is no such field in a program.
    #[cfg(test)]
    pub(super) Option<super::fault::Fault>,
);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX2, its integer dot products by VNNI in 256 bits.
    #[cfg(target_arch = "x86_64")]
    AvxVnni,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "aarch64")]
    Neon,
}

/// Every level that exists in this program, on this machine or not.
#[cfg(target_arch = "x86_64")]
const LEVELS: [Level; 4] = [Level::Scalar, Level::Avx2, Level::AvxVnni, Level::Avx512];
#[cfg(target_arch = "aarch64")]
const LEVELS: [Level; 2] = [Level::Scalar, Level::Neon];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const LEVELS: [Level; 1] = [Level::Scalar];

impl Level {
    fn is_here(self) -> bool {
        match self {
            Self::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("f16c")
            }
            #[cfg(target_arch = "x86_64")]
            Self::AvxVnni => Self::Avx2.is_here() && is_x86_feature_detected!("avxvnni"),
            // The kernels are written for VNNI; machines with AVX-512 but without it use those of
            // AVX2.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                Self::Avx2.is_here()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vnni")
            }
            // The kernels take bytes for words as little-endian machines lay them out.
            #[cfg(target_arch = "aarch64")]
            Self::Neon => {
                cfg!(target_endian = "little")
                    && std::arch::is_aarch64_feature_detected!("neon")
                    && std::arch::is_aarch64_feature_detected!("dotprod")
            }
        }
    }
}

impl Isa {
    /// The portable twins.
    pub const SCALAR: Isa = Isa::of(Level::Scalar);

    #[cfg(not(test))]
    const fn of(level: Level) -> Isa {
        Isa(level)
    }
    #[cfg(test)]
    const fn of(level: Level) -> Isa {
        Isa(level, None)
    }

    /// The best level of this machine.
    pub fn detect() -> Isa {
        LEVELS
            .into_iter()
            .rev()
            .find(|l| l.is_here())
            .map_or(Self::SCALAR, Isa::of)
    }
    /// Every level that this machine can run, `SCALAR` first.
    pub fn available() -> Vec<Isa> {
        LEVELS
            .into_iter()
            .filter(|l| l.is_here())
            .map(Isa::of)
            .collect()
    }
    /// The levels whose bits tests compare with the scalar twins: all that this machine can run, or
    /// the one that `PALINDROME_ONLY_LEVEL` names, for machines that are emulated and slow.
    #[cfg(test)]
    pub(super) fn compared() -> Vec<Isa> {
        match std::env::var("PALINDROME_ONLY_LEVEL") {
            Ok(name) => vec![Self::by_name(&name).expect("the level named is on this machine")],
            Err(_) => Self::available(),
        }
    }
    /// The names of all levels of this program, on this machine or not.
    pub fn all_names() -> Vec<&'static str> {
        LEVELS.into_iter().map(|l| Isa::of(l).name()).collect()
    }
    /// A level by name (`scalar`, `avx2`, `avxvnni`, `avx512`, `neon`), if this machine has it.
    pub fn by_name(name: &str) -> Option<Isa> {
        Self::available().into_iter().find(|isa| isa.name() == name)
    }
    /// `scalar`, `avx2`, `avxvnni`, `avx512`, `neon`.
    pub fn name(self) -> &'static str {
        match self.0 {
            Level::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Level::AvxVnni => "avxvnni",
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => "avx512",
            #[cfg(target_arch = "aarch64")]
            Level::Neon => "neon",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalar_comes_first_and_the_best_last() {
        let all = Isa::available();
        assert_eq!(all.first(), Some(&Isa::SCALAR));
        assert_eq!(all.last(), Some(&Isa::detect()));
        for isa in all {
            assert_eq!(Isa::by_name(isa.name()), Some(isa));
        }
        assert_eq!(Isa::by_name("mmx"), None);
    }
}
