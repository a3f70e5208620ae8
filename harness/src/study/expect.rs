//! `[base.expect]` and `[arm.expect]`: what a server must be found to have done, whatever its flags
//! asked for.

use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use super::file::StudyFile;

/// What is expected of a server. Absent settings are read back and shown, and not judged.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    /// What computes: `cpu`, `cuda`, `vulkan`, `rocm`, `sycl`, `metal`.
    pub backend: Option<String>,
    /// Layers on a GPU.
    pub gpu_layers: Option<u32>,
    /// Context in tokens that one request may use.
    pub ctx: Option<u32>,
    /// Requests that can be worked on at once.
    pub slots: Option<u32>,
    /// Threads that decode.
    pub threads: Option<u32>,
    /// Threads that read prompts.
    pub threads_batch: Option<u32>,
    /// Logical batch size in tokens.
    pub batch: Option<u32>,
    /// Physical batch size in tokens.
    pub ubatch: Option<u32>,
    /// Instruction sets that the server must use, by the names that it prints (`AVX2`, `NEON`).
    pub cpu_features: Option<Vec<String>>,
    /// CPUs that it may run on, as the kernel lists them: `0-3,8`.
    pub cpus: Option<String>,
    /// sha256 of the model file (the first one of a split model), or at least its first 12 digits.
    pub model_sha256: Option<Spanned<String>>,
    /// Whether attention is computed by the flash kernels.
    pub flash_attention: Option<bool>,
    /// Type of the cache of keys and values: `f16`, `q8_0`.
    pub kv_type: Option<String>,
    /// Whether the model file is mapped, not read into memory.
    pub mmap: Option<bool>,
    /// A part of what the server says of its version or build.
    pub version: Option<String>,
}

impl Expect {
    /// These, and of `base` what these leave open.
    #[must_use]
    pub fn or(&self, base: &Self) -> Self {
        macro_rules! merged {
            ($($field:ident),* $(,)?) => {
                Self { $($field: self.$field.clone().or_else(|| base.$field.clone())),* }
            };
        }
        merged!(
            backend,
            gpu_layers,
            ctx,
            slots,
            threads,
            threads_batch,
            batch,
            ubatch,
            cpu_features,
            cpus,
            model_sha256,
            flash_attention,
            kv_type,
            mmap,
            version,
        )
    }

    /// The first value that means nothing: where, and what would be right.
    fn mistake(&self) -> Option<(Range<usize>, String)> {
        let hash = self.model_sha256.as_ref()?;
        let text = hash.as_ref();
        let is_hash = (12..=64).contains(&text.len())
            && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        (!is_hash).then(|| {
            let message = format!(
                "expect.model_sha256 = {text:?} is no sha256: give 12 to 64 lower-case hexadecimal digits"
            );
            (hash.span(), message)
        })
    }
}

impl StudyFile {
    /// What an arm's servers are expected to have done; absent where there is no such arm.
    pub fn expected_of(&self, arm: &str) -> Option<Expect> {
        let declared = self.arms.iter().find(|a| a.name.as_ref() == arm)?;
        Some(declared.expect.or(&self.base.expect))
    }

    /// The first `expect` that means nothing.
    pub(super) fn bad_expectation(&self) -> Option<(Range<usize>, String)> {
        let arms = self.arms.iter().map(|a| &a.expect);
        arms.chain([&self.base.expect]).find_map(Expect::mistake)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const STUDY: &str = "name = \"x\"\nstrict = true\n[base.expect]\nthreads = 2\nbackend = \"cpu\"\n\
                         [[arm]]\nname = \"A\"\nkind = \"mock\"\nscript = \"a.toml\"\n\
                         [[arm]]\nname = \"B\"\nkind = \"mock\"\nscript = \"a.toml\"\nexpect = { threads = 4 }\n\
                         [workload]\nbodies = [\"one.json\"]\n";

    fn parsed(text: &str) -> Result<StudyFile, String> {
        StudyFile::parse(Path::new("s.toml"), text).map_err(|e| e.to_string())
    }

    #[test]
    fn an_arm_expects_what_base_does_but_for_its_own() {
        let file = parsed(STUDY).unwrap();
        assert!(file.strict);
        let of = |arm| {
            let expect = file.expected_of(arm).unwrap();
            (expect.threads, expect.backend, expect.ctx)
        };
        assert_eq!(of("A"), (Some(2), Some("cpu".into()), None));
        assert_eq!(of("B"), (Some(4), Some("cpu".into()), None));
        assert!(file.expected_of("C").is_none());
    }

    #[test]
    fn what_means_nothing_is_refused_at_its_place() {
        let unknown = parsed(&STUDY.replace("threads = 4", "thread = 4")).unwrap_err();
        assert!(unknown.contains("s.toml:14:"), "{unknown}");
        assert!(unknown.contains("did you mean `threads`?"), "{unknown}");
        let bad = parsed(&STUDY.replace("threads = 4", "model_sha256 = \"ABC\"")).unwrap_err();
        assert!(bad.starts_with("s.toml:14:"), "{bad}");
        assert!(
            bad.contains("12 to 64 lower-case hexadecimal digits"),
            "{bad}"
        );
    }
}
