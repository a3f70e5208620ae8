//! The bundled engine: its `/props`, and the line that it prints once a model is loaded.

use serde_json::Value;

use super::found::{Findings, value_in};
use crate::server::Readback;

/// Reads everything that this server shows.
pub(super) fn read(readback: &Readback, findings: &mut Findings) {
    let props = readback.json("/props").unwrap_or_default();
    let text = |key: &str| props[key].as_str().map(str::to_owned);
    findings.add("version", text("build_info"), "/props build_info");
    findings.add("threads", props["threads"].as_u64(), "/props threads");
    findings.add("ctx", props["n_ctx"].as_u64(), "/props n_ctx");
    findings.add("slots", props["total_slots"].as_u64(), "/props total_slots");
    findings.add("kv_type", text("kv_type"), "/props kv_type");
    findings.add("activations", text("activations"), "/props activations");
    let features = text("isa").and_then(|isa| of_level(&isa));
    findings.add("cpu_features", features, "/props isa");
    findings.add("backend", text("backend"), "/props backend");
    findings.add("model_path", text("model_path"), "/props model_path");
    let hash = readback.log.lines().rev().find_map(|line| {
        let line = line.strip_prefix("reading ")?;
        let (_, rest) = line.split_once("(sha256 ")?;
        Some((line, rest.split_once(')')?.0.to_owned()))
    });
    findings.of_line("model_sha256", hash);
    // `2 threads, isa avx2, activations int8, K/V f16`
    let loaded = readback
        .log
        .lines()
        .rev()
        .find(|l| l.starts_with("loaded "));
    if let Some(line) = loaded {
        let before = |word: &str| {
            let (head, _) = line.split_once(word)?;
            head.rsplit([' ', '(']).next()?.parse::<u64>().ok()
        };
        findings.of_line("threads", before(" threads").map(|n| (line, n)));
        let level = line.split_once("isa ").map(|(_, rest)| rest);
        let level = level.and_then(|rest| of_level(rest.split(',').next()?));
        findings.of_line("cpu_features", level.map(|f| (line, f)));
        let ctx = value_in(&line.replace("context ", "context="), "context")
            .and_then(|n| n.parse::<u64>().ok());
        findings.of_line("ctx", ctx.map(|n| (line, n)));
    }
}

/// The instruction sets of the engine's levels.
fn of_level(isa: &str) -> Option<Value> {
    let names: &[&str] = match isa.trim() {
        "scalar" => &[],
        "avx2" => &["AVX2", "FMA", "F16C"],
        "avxvnni" => &["AVX2", "FMA", "F16C", "AVX_VNNI"],
        "avx512" => &["AVX2", "FMA", "F16C", "AVX512", "AVX512_VNNI"],
        "neon" => &["NEON", "DOTPROD"],
        _ => return None,
    };
    Some(Value::from(names.to_vec()))
}
