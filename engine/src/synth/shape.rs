//! The sizes of a model.

use super::SynthError;

/// YaRN's parameters; `factor` 1 leaves RoPE unscaled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Yarn {
    /// How far the context is stretched.
    pub factor: f32,
    /// The context before stretching, in tokens.
    pub original: u32,
}

/// Which architecture a shape is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// gpt-oss, in MXFP4 and Q8_0.
    GptOss,
    /// Qwen3-MoE, in Q4_K and Q6_K.
    Qwen3Moe,
}

impl Family {
    /// Its `general.architecture`.
    pub fn architecture(self) -> &'static str {
        match self {
            Self::GptOss => "gpt-oss",
            Self::Qwen3Moe => "qwen3moe",
        }
    }

    /// The longest blocks of its weights.
    fn block_len(self) -> u32 {
        match self {
            Self::GptOss => 32,
            Self::Qwen3Moe => 256,
        }
    }
}

/// Everything that gives a model its size.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the field's name is the GGUF key's")]
pub struct Shape {
    pub family: Family,
    pub layers: u32,
    pub experts: u32,
    pub experts_used: u32,
    pub hidden: u32,
    pub expert_width: u32,
    pub heads: u32,
    pub kv_heads: u32,
    pub head_dim: u32,
    /// Sliding window of the even layers, in tokens; gpt-oss has one, Qwen3-MoE none.
    pub window: Option<u32>,
    /// Context length, in tokens.
    pub context: u32,
    pub rope_base: f32,
    pub yarn: Yarn,
}

impl Shape {
    /// gpt-oss-20b (openai/gpt-oss config.json).
    pub const GPT_OSS_20B: Shape = Shape {
        family: Family::GptOss,
        layers: 24,
        experts: 32,
        experts_used: 4,
        hidden: 2880,
        expert_width: 2880,
        heads: 64,
        kv_heads: 8,
        head_dim: 64,
        window: Some(128),
        context: 131_072,
        rope_base: 150_000.0,
        yarn: Yarn {
            factor: 32.0,
            original: 4096,
        },
    };
    /// gpt-oss-120b.
    pub const GPT_OSS_120B: Shape = Shape {
        layers: 36,
        experts: 128,
        ..Self::GPT_OSS_20B
    };
    /// A model of about a megabyte, for tests.
    pub const TINY: Shape = Shape {
        family: Family::GptOss,
        layers: 4,
        experts: 8,
        experts_used: 4,
        hidden: 128,
        expert_width: 128,
        heads: 4,
        kv_heads: 2,
        head_dim: 32,
        window: Some(32),
        context: 4096,
        rope_base: 150_000.0,
        yarn: Yarn {
            factor: 4.0,
            original: 1024,
        },
    };

    /// Qwen3-30B-A3B (Qwen/Qwen3-30B-A3B config.json).
    pub const QWEN3_30B_A3B: Shape = Shape {
        family: Family::Qwen3Moe,
        layers: 48,
        experts: 128,
        experts_used: 8,
        hidden: 2048,
        expert_width: 768,
        heads: 32,
        kv_heads: 4,
        head_dim: 128,
        window: None,
        context: 40_960,
        rope_base: 1_000_000.0,
        yarn: Yarn {
            factor: 1.0,
            original: 32_768,
        },
    };
    /// A Qwen3-MoE model of about four megabytes, for tests.
    pub const TINY_QWEN3_MOE: Shape = Shape {
        layers: 4,
        experts: 8,
        experts_used: 4,
        hidden: 256,
        expert_width: 256,
        heads: 4,
        kv_heads: 2,
        head_dim: 64,
        context: 4096,
        ..Self::QWEN3_30B_A3B
    };

    /// Refuses sizes that do not make a model.
    pub fn check(&self) -> Result<(), SynthError> {
        let at_least_one = [
            ("--layers", self.layers),
            ("--experts", self.experts),
            ("--experts-used", self.experts_used),
            ("--heads", self.heads),
            ("--kv-heads", self.kv_heads),
            ("--window", self.window.unwrap_or(1)),
            ("--ctx", self.context),
            ("--yarn-original", self.yarn.original),
        ];
        for (flag, found) in at_least_one {
            refuse(found == 0, flag, found, || "at least 1".to_owned())?;
        }
        let (gpt_oss, window) = (self.family == Family::GptOss, self.window);
        refuse(
            gpt_oss != window.is_some(),
            "--window",
            window.unwrap_or(0),
            || "a window in gpt-oss and none in other models".to_owned(),
        )?;
        let block = self.family.block_len();
        let blocks = [
            ("--hidden", self.hidden),
            ("--expert-width", self.expert_width),
        ];
        for (flag, found) in blocks {
            let wrong = found == 0 || !found.is_multiple_of(block);
            refuse(wrong, flag, found, || {
                format!("a multiple of {block}, the block length")
            })?;
        }
        refuse(
            self.experts_used > self.experts,
            "--experts-used",
            self.experts_used,
            || format!("at most --experts, {}", self.experts),
        )?;
        refuse(
            !self.heads.is_multiple_of(self.kv_heads),
            "--heads",
            self.heads,
            || format!("a multiple of --kv-heads, {}", self.kv_heads),
        )?;
        let odd = self.head_dim == 0 || !self.head_dim.is_multiple_of(2);
        refuse(odd, "--head-dim", self.head_dim, || {
            "an even number".to_owned()
        })?;
        let width = self.heads * self.head_dim;
        refuse(
            !width.is_multiple_of(block),
            "--head-dim",
            self.head_dim,
            || {
                format!(
                    "a value that makes {} heads a multiple of {block} wide",
                    self.heads
                )
            },
        )?;
        let limits = [
            ("--layers", self.layers, 1024),
            ("--experts", self.experts, 1024),
            ("--hidden", self.hidden, 1 << 17),
            ("--expert-width", self.expert_width, 1 << 17),
            ("--heads", self.heads, 1024),
            ("--head-dim", self.head_dim, 1024),
        ];
        for (flag, found, most) in limits {
            refuse(found > most, flag, found, || format!("at most {most}"))?;
        }
        let factor = self.yarn.factor;
        refuse(
            !(factor >= 1.0 && factor.is_finite()),
            "--yarn-factor",
            factor as u32,
            || "at least 1".to_owned(),
        )
    }
}

fn refuse(
    wrong: bool,
    flag: &'static str,
    found: u32,
    expected: impl FnOnce() -> String,
) -> Result<(), SynthError> {
    if wrong {
        return Err(SynthError::BadShape {
            flag,
            found: found.into(),
            expected: expected(),
        });
    }
    Ok(())
}
