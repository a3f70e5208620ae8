//! What a token costs at least: bytes of weights to read, int8 operations to do.

use crate::formats::gguf::{GgufError, GgufFile, TensorInfo};
use crate::model::ActivationFormat;

const EMBEDDING: &str = "token_embd.weight";
const OUTPUT: &str = "output.weight";

/// A model's size, and what one token of it costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Weights in the file.
    pub params: u64,
    /// Bytes of all tensors.
    pub model_bytes: u64,
    /// Bytes of weights that one decoded token must read: one row of the embedding; of each
    /// stack of experts the share that a token uses, `expert_used_count / expert_count`; all of
    /// every other tensor, where the output matrix may be the embedding. K/V is not in it.
    pub weight_bytes_per_token: u64,
    /// int8 multiplications and additions for a token on its way through the layers: two for each
    /// weight of a quantised matrix that it meets (of experts, the share used), for each digit of
    /// an activation. Float matrices, attention and the output matrix are not in it. `None` where
    /// activations are not quantised.
    pub int8_ops_per_token: Option<u64>,
    /// The same for one position's logits.
    pub int8_ops_per_logits: Option<u64>,
}

/// int8 digits of the activations that meet each part.
struct Digits {
    dense: u64,
    experts: u64,
    output: u64,
}

fn digits(format: ActivationFormat) -> Option<Digits> {
    let all = |n| Digits {
        dense: n,
        experts: n,
        output: n,
    };
    match format {
        ActivationFormat::Int8 => Some(all(1)),
        ActivationFormat::Mixed => Some(Digits { dense: 2, ..all(1) }),
        ActivationFormat::Int16 => Some(all(2)),
        ActivationFormat::F32 => None,
    }
}

/// Which rows of a tensor a token meets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Embedding,
    Output,
    TiedOutput,
    Experts,
    Dense,
}

impl Cost {
    /// Counts a file's tensors.
    pub fn of(file: &GgufFile, format: ActivationFormat) -> Result<Self, GgufError> {
        let metadata = file.metadata();
        let architecture = metadata.str("general.architecture")?;
        let count = |key: &str| metadata.opt_u32(&format!("{architecture}.{key}"));
        let experts = u64::from(count("expert_count")?.unwrap_or(0));
        let used = u64::from(count("expert_used_count")?.unwrap_or(0));
        let tied = file.tensor(OUTPUT).is_none();
        let digits = digits(format);
        let mut cost = Self {
            params: 0,
            model_bytes: 0,
            weight_bytes_per_token: 0,
            int8_ops_per_token: digits.as_ref().map(|_| 0),
            int8_ops_per_logits: digits.as_ref().map(|_| 0),
        };
        for tensor in file.tensors() {
            let weights = tensor.dims.iter().product::<u64>();
            let bytes = file.used_bytes(tensor) as u64;
            let share = |whole: u64| match experts {
                0 => whole,
                experts => whole * used.min(experts) / experts,
            };
            cost.params += weights;
            cost.model_bytes += tensor.len as u64;
            let part = part(tensor, tied);
            cost.weight_bytes_per_token += match part {
                Part::Embedding => bytes / tensor.rows().max(1) as u64,
                Part::TiedOutput => bytes + bytes / tensor.rows().max(1) as u64,
                Part::Experts => share(bytes),
                Part::Output | Part::Dense => bytes,
            };
            let Some(digits) = &digits else { continue };
            if tensor.ty.is_float() || tensor.dims.len() < 2 {
                continue;
            }
            let (sum, met, times) = match part {
                Part::Embedding => continue,
                Part::Output | Part::TiedOutput => {
                    (&mut cost.int8_ops_per_logits, weights, digits.output)
                }
                Part::Experts => (&mut cost.int8_ops_per_token, share(weights), digits.experts),
                Part::Dense => (&mut cost.int8_ops_per_token, weights, digits.dense),
            };
            *sum = sum.map(|sum| sum + 2 * met * times);
        }
        Ok(cost)
    }

    /// int8 operations of a prompt: every token through the layers, and one position's logits.
    pub fn int8_ops_of_prompt(&self, tokens: usize) -> Option<u64> {
        Some(tokens as u64 * self.int8_ops_per_token? + self.int8_ops_per_logits?)
    }
}

fn part(tensor: &TensorInfo, tied: bool) -> Part {
    match tensor.name.as_str() {
        EMBEDDING if tied => Part::TiedOutput,
        EMBEDDING => Part::Embedding,
        OUTPUT => Part::Output,
        name if name.contains("_exps.") => Part::Experts,
        _ => Part::Dense,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::synth::{Shape, VocabKind, plan, write};

    /// Bytes a token of a synthetic model, from its shape: embedding, layers, norm, output.
    #[test]
    fn a_synthetic_gpt_oss_by_hand() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.gguf");
        let plan = plan(&Shape::TINY, VocabKind::Bytes(512), 0.0).unwrap();
        write(&path, &plan, 1, 1, false).unwrap();
        let file = GgufFile::open(&path).unwrap();
        // Rows of 128: four blocks, of 34 bytes in Q8_0 and 17 in MXFP4; f32 vectors.
        let (q8, mxfp4, f32s) = (4 * 34, 4 * 17, |n: u64| 4 * n);
        let q_and_o = 2 * (128 * q8 + f32s(128));
        let k_and_v = 2 * (64 * q8 + f32s(64));
        let norms_and_sinks = 2 * f32s(128) + f32s(4);
        let router = f32s(128 * 8) + f32s(8);
        // Four of eight experts: gate, up, down, each with its biases.
        let experts = 4 * 3 * (128 * mxfp4 + f32s(128));
        let layer = q_and_o + k_and_v + norms_and_sinks + router + experts;
        assert_eq!(layer, 169_520);
        let bytes = q8 + 4 * layer + f32s(128) + 512 * q8;
        let dense = 4 * (2 * 128 * 128 + 2 * 64 * 128);
        let expert_weights = 4 * 4 * 3 * 128 * 128;
        for (format, dense_digits, digits) in [
            (ActivationFormat::Int8, 1, 1),
            (ActivationFormat::Mixed, 2, 1),
            (ActivationFormat::Int16, 2, 2),
        ] {
            let cost = Cost::of(&file, format).unwrap();
            assert_eq!(cost.weight_bytes_per_token, bytes);
            let layers = 2 * (dense * dense_digits + expert_weights * digits);
            let logits = 2 * 512 * 128 * digits;
            assert_eq!(cost.int8_ops_per_token, Some(layers));
            assert_eq!(cost.int8_ops_per_logits, Some(logits));
            assert_eq!(cost.int8_ops_of_prompt(10), Some(10 * layers + logits));
        }
        let f32 = Cost::of(&file, ActivationFormat::F32).unwrap();
        assert_eq!(f32.weight_bytes_per_token, bytes);
        assert_eq!(
            (f32.int8_ops_per_token, f32.int8_ops_of_prompt(9)),
            (None, None)
        );
    }

    /// Counted from the lists that `info --json` gives of these files: bytes a token, weights of
    /// quantised matrices in the layers (experts by share), and of the output matrix.
    #[test]
    fn the_golden_models_by_their_lists_of_tensors() {
        for (name, bytes, layers, logits) in [
            ("gpt-oss-8x4", 380_420, 196_608 + 196_608, 32_768),
            ("gpt-oss-32x2", 257_798, 122_880 + 73_728, 49_152),
            // Its output matrix is BF16, which meets no int8.
            ("llama-mixed", 451_968, 113_664, 0),
            // Its output matrix is the embedding.
            ("llama-tied", 380_552, 491_520, 65_536),
            // Its output matrix is F16.
            ("qwen3moe-16x4", 238_916, 53_248 + 57_344, 0),
            // K-quants, and its output matrix is the embedding.
            ("qwen3moe-k", 509_906, 196_608 + 393_216, 131_072),
        ] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
            let file = GgufFile::open(&folder.join(format!("{name}.gguf"))).unwrap();
            let cost = Cost::of(&file, ActivationFormat::Int8).unwrap();
            assert_eq!(cost.weight_bytes_per_token, bytes, "{name}");
            assert_eq!(cost.int8_ops_per_token, Some(2 * layers), "{name}");
            assert_eq!(cost.int8_ops_per_logits, Some(2 * logits), "{name}");
        }
    }
}
