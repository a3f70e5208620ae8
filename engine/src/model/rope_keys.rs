//! The rotation that a file's metadata asks for.

use super::ModelError;
use super::config::Keys;
use crate::formats::gguf::GgufError;
use crate::ops::{RopeScaling, YarnRamp};

/// `rope.scaling.*`: none, linear or YaRN.
pub(super) fn rope_scaling(keys: Keys<'_>, ramp: YarnRamp) -> Result<RopeScaling, ModelError> {
    let kind = keys.meta.opt_str(&keys.key("rope.scaling.type"))?;
    let factor = || {
        let missing = || GgufError::MissingKey {
            key: keys.key("rope.scaling.factor"),
            expected: "a number, because rope.scaling.type is set",
        };
        Ok::<f64, ModelError>(
            keys.opt_positive("rope.scaling.factor")?
                .ok_or_else(missing)?,
        )
    };
    match kind {
        None | Some("none") => Ok(RopeScaling::None),
        Some("linear") => Ok(RopeScaling::Linear { factor: factor()? }),
        Some("yarn") => Ok(RopeScaling::Yarn {
            factor: factor()?,
            original_context: keys.count("rope.scaling.original_context_length", 1..=1 << 24)?
                as f64,
            beta_fast: keys
                .opt_positive("rope.scaling.yarn_beta_fast")?
                .unwrap_or(32.0),
            beta_slow: keys
                .opt_positive("rope.scaling.yarn_beta_slow")?
                .unwrap_or(1.0),
            ramp,
        }),
        Some(other) => Err(keys.wrong(
            "rope.scaling.type",
            format!("`{other}`"),
            "none, linear or yarn",
        )),
    }
}

/// `rope.freq_base`, or `default`.
pub(super) fn rope_base(keys: Keys<'_>, key: &str, default: f64) -> Result<f64, ModelError> {
    let base = keys.opt_positive(key)?.unwrap_or(default);
    if base > 1.0 {
        Ok(base)
    } else {
        Err(keys.wrong(key, base, "a number above 1"))
    }
}
