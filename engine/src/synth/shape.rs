//! The sizes of a gpt-oss model.

use super::SynthError;

/// YaRN's parameters; `factor` 1 leaves RoPE unscaled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Yarn {
    /// How far the context is stretched.
    pub factor: f32,
    /// The context before stretching, in tokens.
    pub original: u32,
}

/// Everything that gives a gpt-oss model its size.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the field's name is the GGUF key's")]
pub struct Shape {
    pub layers: u32,
    pub experts: u32,
    pub experts_used: u32,
    pub hidden: u32,
    pub expert_width: u32,
    pub heads: u32,
    pub kv_heads: u32,
    pub head_dim: u32,
    /// Sliding window of the even layers, in tokens.
    pub window: u32,
    /// Context length, in tokens.
    pub context: u32,
    pub rope_base: f32,
    pub yarn: Yarn,
}

impl Shape {
    /// gpt-oss-20b (openai/gpt-oss config.json).
    pub const GPT_OSS_20B: Shape = Shape {
        layers: 24,
        experts: 32,
        experts_used: 4,
        hidden: 2880,
        expert_width: 2880,
        heads: 64,
        kv_heads: 8,
        head_dim: 64,
        window: 128,
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
        layers: 4,
        experts: 8,
        experts_used: 4,
        hidden: 128,
        expert_width: 128,
        heads: 4,
        kv_heads: 2,
        head_dim: 32,
        window: 32,
        context: 4096,
        rope_base: 150_000.0,
        yarn: Yarn {
            factor: 4.0,
            original: 1024,
        },
    };

    /// Refuses sizes that do not make a model.
    pub fn check(&self) -> Result<(), SynthError> {
        let at_least_one = [
            ("--layers", self.layers),
            ("--experts", self.experts),
            ("--experts-used", self.experts_used),
            ("--heads", self.heads),
            ("--kv-heads", self.kv_heads),
            ("--window", self.window),
            ("--ctx", self.context),
            ("--yarn-original", self.yarn.original),
        ];
        for (flag, found) in at_least_one {
            refuse(found == 0, flag, found, || "at least 1".to_owned())?;
        }
        let blocks = [
            ("--hidden", self.hidden),
            ("--expert-width", self.expert_width),
        ];
        for (flag, found) in blocks {
            let wrong = found == 0 || !found.is_multiple_of(32);
            refuse(wrong, flag, found, || {
                "a multiple of 32, the block length".to_owned()
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
            !width.is_multiple_of(32),
            "--head-dim",
            self.head_dim,
            || {
                format!(
                    "a value that makes {} heads a multiple of 32 wide",
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
