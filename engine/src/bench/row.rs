//! One line of a benchmark's outcome. Fields that llama-bench has too have its names.

use serde::Serialize;
use serde_json::{Value, json};

use super::{Cost, Rates, Test, Work};

/// The machine's limits with the threads of a test, and where they come from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Bytes a second that memory gives, the best pass.
    pub dram_bytes_per_s: Option<f64>,
    /// int8 operations a second, the best pass.
    pub int8_ops_per_s: Option<f64>,
    /// Size of the last-level cache.
    pub last_level_cache_bytes: Option<u64>,
}

/// One test with one number of threads.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/engine.md defines each field")]
pub struct Row {
    pub engine: String,
    pub cpu_info: Option<String>,
    pub isa: String,
    pub activations: String,
    pub type_k: String,
    pub type_v: String,
    pub model_filename: String,
    pub model_type: String,
    pub model_size: u64,
    pub model_n_params: u64,
    pub n_threads: usize,
    pub n_ctx: usize,
    pub n_batch: usize,
    pub test: String,
    pub n_prompt: usize,
    pub n_gen: usize,
    pub n_depth: usize,
    pub seed: u64,
    pub warmup: bool,
    pub repetitions: usize,
    pub test_time_unix_s: u64,
    pub avg_ns: f64,
    pub stddev_ns: Option<f64>,
    pub avg_ts: f64,
    pub stddev_ts: Option<f64>,
    pub median_ts: f64,
    pub weight_bytes_per_token: u64,
    pub dram_read_bytes_per_s: Option<f64>,
    pub dram_share: Option<f64>,
    pub int8_ops: Option<u64>,
    pub int8_peak_ops_per_s: Option<f64>,
    pub int8_share: Option<f64>,
    pub other_processors: Option<f64>,
    pub samples_ns: Vec<u64>,
    pub samples_ts: Vec<f64>,
    pub labels: Value,
}

/// What a row says of the run that it belongs to.
#[derive(Clone, Debug)]
pub struct Setting {
    pub cpu_info: Option<String>,
    pub isa: String,
    pub activations: String,
    pub kv_type: String,
    pub model_filename: String,
    pub model_type: String,
    pub n_threads: usize,
    pub n_ctx: usize,
    pub n_batch: usize,
    pub seed: u64,
    pub warmup: bool,
}

impl Row {
    /// Puts a test's figures together.
    pub fn new(
        setting: &Setting,
        test: Test,
        rates: &Rates,
        cost: &Cost,
        limits: &Limits,
        test_time_unix_s: u64,
        other_processors: Option<f64>,
    ) -> Self {
        let (n_prompt, n_gen) = match test.work {
            Work::Prompt(n) => (n, 0),
            Work::Generate(n) => (0, n),
        };
        // Memory limits decoding, and only where the weights do not stay in the cache.
        let cached = limits
            .last_level_cache_bytes
            .is_some_and(|cache| cost.model_bytes <= cache);
        let dram = limits.dram_bytes_per_s.filter(|_| n_gen > 0);
        let bytes_per_s = rates.mean_ts() * cost.weight_bytes_per_token as f64;
        // Arithmetic limits prompts.
        let int8_ops = cost.int8_ops_of_prompt(n_prompt).filter(|_| n_prompt > 0);
        let int8_peak = limits.int8_ops_per_s.filter(|_| n_prompt > 0);
        let int8_share = int8_ops.zip(int8_peak).map(|(ops, peak)| {
            let ops_per_s = rates.mean_ts() / n_prompt as f64 * ops as f64;
            ops_per_s / peak
        });
        Self {
            engine: format!("palindrome-engine {}", env!("CARGO_PKG_VERSION")),
            cpu_info: setting.cpu_info.clone(),
            isa: setting.isa.clone(),
            activations: setting.activations.clone(),
            type_k: setting.kv_type.clone(),
            type_v: setting.kv_type.clone(),
            model_filename: setting.model_filename.clone(),
            model_type: setting.model_type.clone(),
            model_size: cost.model_bytes,
            model_n_params: cost.params,
            n_threads: setting.n_threads,
            n_ctx: setting.n_ctx,
            n_batch: setting.n_batch,
            test: test.to_string(),
            n_prompt,
            n_gen,
            n_depth: test.depth,
            seed: setting.seed,
            warmup: setting.warmup,
            repetitions: rates.samples_ns.len(),
            test_time_unix_s,
            avg_ns: rates.mean_ns(),
            stddev_ns: rates.stddev_ns(),
            avg_ts: rates.mean_ts(),
            stddev_ts: rates.stddev_ts(),
            median_ts: rates.median_ts(),
            weight_bytes_per_token: cost.weight_bytes_per_token,
            dram_read_bytes_per_s: dram,
            dram_share: dram.filter(|_| !cached).map(|limit| bytes_per_s / limit),
            int8_ops,
            int8_peak_ops_per_s: int8_peak,
            int8_share,
            other_processors,
            samples_ns: rates.samples_ns.clone(),
            samples_ts: rates.samples_ts.clone(),
            labels: labels(),
        }
    }
}

/// How each figure came about.
fn labels() -> Value {
    json!({
        "samples_ns": "MEASURED",
        "samples_ts": "CALCULATED",
        "avg_ns": "CALCULATED",
        "stddev_ns": "CALCULATED",
        "avg_ts": "CALCULATED",
        "stddev_ts": "CALCULATED",
        "median_ts": "CALCULATED",
        "weight_bytes_per_token": "CALCULATED",
        "dram_read_bytes_per_s": "MEASURED",
        "dram_share": "CALCULATED",
        "int8_ops": "CALCULATED",
        "int8_peak_ops_per_s": "MEASURED",
        "int8_share": "CALCULATED",
        "other_processors": "MEASURED",
    })
}
