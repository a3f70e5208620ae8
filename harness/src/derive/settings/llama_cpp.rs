//! llama.cpp's server: its `/props` and `/slots`, and the lines of its log.
//!
//! At its usual verbosity the log shows threads, slots and context; `-lv 4` and above add batch
//! sizes, flash attention, the placement of layers and the CPU's features.

use serde_json::Value;

use super::found::{Findings, number_in_log, value_in};
use crate::server::{LaunchFacts, Readback};

/// Reads everything that this server shows.
pub(super) fn read(launch: &LaunchFacts, readback: &Readback, findings: &mut Findings) {
    routes(readback, findings);
    log(&readback.log, findings);
    placement(&readback.log, findings);
    let features = launch.build.get("features");
    let features = features.filter(|f| !f.is_empty()).map(|f| {
        let names = f.split([' ', ',']).filter(|n| !n.is_empty());
        names.map(str::to_owned).collect::<Vec<_>>()
    });
    let said = "launch.json build/features: what the program said of itself before the study";
    findings.add("cpu_features", features, said);
    let version = launch.build.get("version").cloned();
    findings.add("version", version, "launch.json build/version");
}

fn routes(readback: &Readback, findings: &mut Findings) {
    let props = readback.json("/props").unwrap_or_default();
    let text = |key: &str| props[key].as_str().map(str::to_owned);
    findings.add("version", text("build_info"), "/props build_info");
    findings.add("slots", props["total_slots"].as_u64(), "/props total_slots");
    let ctx = &props["default_generation_settings"]["n_ctx"];
    findings.add(
        "ctx",
        ctx.as_u64(),
        "/props default_generation_settings/n_ctx",
    );
    findings.add("model_path", text("model_path"), "/props model_path");
    let slots = readback.json("/slots").unwrap_or_default();
    findings.add("ctx", slots[0]["n_ctx"].as_u64(), "/slots 0/n_ctx");
    let count = slots.as_array().map(|slots| slots.len() as u64);
    findings.add("slots", count.filter(|n| *n > 0), "/slots");
}

fn log(log: &str, findings: &mut Findings) {
    let number = |marker: &str, key: &str| number_in_log(log, marker, key);
    findings.of_line("slots", number("n_ctx_slot", "n_slots"));
    findings.of_line("ctx", number("n_slots", "n_ctx_slot"));
    findings.of_line("threads", number("system_info", "n_threads"));
    findings.of_line("threads_batch", number("system_info", "n_threads_batch"));
    findings.of_line("threads", number("threadpool init", "n_threads"));
    findings.of_line("batch", number("llama_context", "n_batch"));
    findings.of_line("ubatch", number("llama_context", "n_ubatch"));
    findings.of_line("flash_attention", flash_attention(log));
    findings.of_line("kv_type", kv_type(log));
    findings.of_line("cpu_features", cpu_features(log));
}

/// `flash_attn = enabled` (`1` in older versions), or what `auto` came to: `Flash Attention enabled`,
/// in older versions `Flash Attention was auto, set to enabled`.
fn flash_attention(log: &str) -> Option<(&str, bool)> {
    log.lines().rev().find_map(|line| {
        if let Some((_, outcome)) = line.split_once("Flash Attention ") {
            let on = outcome.contains("enabled");
            return (on || outcome.contains("disabled")).then_some((line, on));
        }
        match value_in(line, "flash_attn").filter(|_| line.contains("llama_context"))? {
            "enabled" | "1" => Some((line, true)),
            "disabled" | "0" => Some((line, false)),
            _ => None,
        }
    })
}

/// `K (f16): 12.00 MiB, V (f16): 12.00 MiB`: one type, or both.
fn kv_type(log: &str) -> Option<(&str, String)> {
    log.lines().rev().find_map(|line| {
        let of = |letter: &str| {
            let (_, rest) = line.split_once(&format!("{letter} ("))?;
            Some(rest.split_once(')')?.0)
        };
        let (k, v) = (of(", K")?, of(", V")?);
        let both = if k == v {
            k.to_owned()
        } else {
            format!("{k}/{v}")
        };
        Some((line, both)).filter(|_| line.contains("kv_cache"))
    })
}

/// `CPU : SSE3 = 1 | AVX2 = 1 | ...`: the names that are 1 or more.
fn cpu_features(log: &str) -> Option<(&str, Vec<String>)> {
    log.lines().rev().find_map(|line| {
        let (_, list) = line.split_once("CPU : ")?;
        let named = list.split('|').filter_map(|part| {
            let (name, value) = part.split_once('=')?;
            let name = name.rsplit(':').next().unwrap_or(name).trim();
            let on = value.trim().parse::<u32>().is_ok_and(|n| n > 0);
            (on && !name.is_empty()).then(|| name.to_owned())
        });
        let named: Vec<String> = named.collect();
        (!named.is_empty()).then_some((line, named))
    })
}

/// What computes, and how many layers are where.
fn placement(log: &str, findings: &mut Findings) {
    let offloaded = log.lines().rev().find_map(|line| {
        let (_, rest) = line.split_once("offloaded ")?;
        let (layers, _) = rest.split_once(" layers to GPU")?;
        let (on, all) = layers.split_once('/')?;
        Some((
            line,
            on.trim().parse::<u64>().ok()?,
            all.trim().parse::<u64>().ok()?,
        ))
    });
    findings.of_line("gpu_layers", offloaded.map(|(line, on, _)| (line, on)));
    findings.of_line("model_layers", offloaded.map(|(line, _, all)| (line, all)));
    // The model may be loaded in part before, to see what fits.
    let last = log
        .rfind("loading model tensors")
        .map_or(log, |at| &log[at..]);
    let buffers = last.lines().filter_map(|line| {
        let (before, _) = line.split_once(" model buffer size")?;
        Some((line, before.rsplit(' ').next()?))
    });
    let buffers: Vec<(&str, &str)> = buffers.collect();
    // Memory of the host that a device can reach is still the host's, and AMX is a part of CPUs.
    let of_host = |name: &str| name.starts_with("CPU") || name == "AMX" || name.ends_with("_Host");
    let device = |name: &str| (!of_host(name)).then(|| family(name));
    let on_device = buffers
        .iter()
        .find_map(|(line, name)| Some((*line, device(name)?)));
    let on_cpu = buffers.first().map(|(line, _)| (*line, "cpu".to_owned()));
    findings.of_line("backend", on_device.or(on_cpu));
    let megabytes = |line: &str| value_in(line, "model buffer size")?.parse::<f64>().ok();
    let held: Vec<f64> = buffers
        .iter()
        .filter(|(_, name)| device(name).is_some())
        .filter_map(|(line, _)| megabytes(line))
        .collect();
    if !held.is_empty() {
        let sum: f64 = held.iter().sum();
        let words = "server.log: model buffer size, over devices";
        findings.add("device_model_mib", Some(Value::from(sum)), words);
    }
}

/// `CUDA0` is `cuda`, `Vulkan1` is `vulkan`.
fn family(device: &str) -> String {
    let name = device.trim_end_matches(|c: char| c.is_ascii_digit());
    name.split('_').next().unwrap_or(name).to_ascii_lowercase()
}
