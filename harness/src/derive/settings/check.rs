//! Found settings against expected ones.

use serde_json::Value;

use super::found::{Findings, Found};
use super::setting::{By, Setting, Verdicted};
use super::{engine, llama_cpp, process};
use crate::server::{LaunchFacts, Readback, ServerKind};
use crate::study::{Arm, Expect, StudyFile};

/// What a study asks of an arm.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Its `expect` table, base's merged in.
    pub expect: Expect,
    /// Its `threads`.
    pub threads: Option<u32>,
    /// Its `ctx`.
    pub ctx: Option<u32>,
}

impl Asked {
    /// By the archived study file; absent where it has no such arm.
    pub fn of_file(file: &StudyFile, arm: &str) -> Option<Self> {
        let declared = file.arms.iter().find(|a| a.name.as_ref() == arm)?;
        Some(Self {
            expect: file.expected_of(arm)?,
            threads: declared.threads.or(file.base.threads),
            ctx: declared.ctx.or(file.base.ctx),
        })
    }

    /// By a study that is about to run.
    pub fn of_arm(arm: &Arm) -> Self {
        Self {
            expect: arm.expect.clone(),
            threads: arm.threads,
            ctx: arm.ctx,
        }
    }
}

/// llama.cpp rounds a context up to a multiple of this.
const CTX_STEP: u64 = 256;

/// The order of tables.
const ORDER: [&str; 21] = [
    "backend",
    "device",
    "gpu_layers",
    "model_layers",
    "device_model_mib",
    "device_memory",
    "model_sha256",
    "model_path",
    "mmap",
    "ctx",
    "slots",
    "threads",
    "threads_batch",
    "process_threads",
    "cpus",
    "nice",
    "batch",
    "ubatch",
    "flash_attention",
    "kv_type",
    "activations",
];

/// Everything that a session's server shows, judged where something is expected. Pure.
pub fn settings(asked: &Asked, launch: &LaunchFacts, readback: &Readback) -> Vec<Setting> {
    let mut findings = Findings::default();
    match launch.kind {
        ServerKind::LlamaCpp => llama_cpp::read(launch, readback, &mut findings),
        ServerKind::PalindromeEngine => engine::read(readback, &mut findings),
        // The scripted server prints and answers what its script gives it, in either's words.
        ServerKind::Mock => {
            engine::read(readback, &mut findings);
            llama_cpp::read(launch, readback, &mut findings);
        }
        ServerKind::Openai => {}
    }
    process::read(launch, readback, &mut findings);
    let names = ORDER.into_iter().chain(["cpu_features", "version"]);
    let all = names.filter_map(|name| {
        let found = findings.get(name);
        let expected = expected(asked, launch, &findings, name);
        (found.is_some() || expected.is_some()).then(|| judged(launch.kind, name, found, expected))
    });
    all.collect()
}

fn judged(
    kind: ServerKind,
    name: &str,
    found: Option<&Found>,
    expected: Option<(By, Value)>,
) -> Setting {
    let verdict = expected.as_ref().map(|(by, expected)| match found {
        None => Verdicted::NotShown,
        Some(found) if agrees(kind, name, *by, expected, &found.value) => Verdicted::Ok,
        Some(_) => Verdicted::Differs,
    });
    let (by, expected) = expected.unzip();
    Setting {
        name: name.to_owned(),
        expected,
        by,
        found: found.map(|f| f.value.clone()),
        source: found.map(|f| f.source.clone()),
        verdict,
    }
}

/// What is expected of a setting: the `expect` table's word, else what the study asks for.
fn expected(
    asked: &Asked,
    launch: &LaunchFacts,
    findings: &Findings,
    name: &str,
) -> Option<(By, Value)> {
    let e = &asked.expect;
    let declared: Option<Value> = match name {
        "backend" => e.backend.clone().map(Value::from),
        "gpu_layers" => e.gpu_layers.map(Value::from),
        "ctx" => e.ctx.map(Value::from),
        "slots" => e.slots.map(Value::from),
        "threads" => e.threads.map(Value::from),
        "threads_batch" => e.threads_batch.map(Value::from),
        "batch" => e.batch.map(Value::from),
        "ubatch" => e.ubatch.map(Value::from),
        "cpu_features" => e.cpu_features.clone().map(Value::from),
        "cpus" => e.cpus.clone().map(Value::from),
        "model_sha256" => e.model_sha256.as_ref().map(|h| h.as_ref().clone().into()),
        "flash_attention" => e.flash_attention.map(Value::from),
        "kv_type" => e.kv_type.clone().map(Value::from),
        "mmap" => e.mmap.map(Value::from),
        "version" => e.version.clone().map(Value::from),
        _ => None,
    };
    if let Some(declared) = declared {
        return Some((By::Expect, declared));
    }
    let asked_for = match name {
        "threads" => asked.threads.map(Value::from),
        // With several slots llama.cpp divides what it was given.
        "ctx" if findings.get("slots").is_none_or(|s| s.value == 1) => asked.ctx.map(Value::from),
        "ctx" if launch.kind == ServerKind::PalindromeEngine => asked.ctx.map(Value::from),
        "model_path" => launch.models.first().map(|m| m.path.clone().into()),
        _ => None,
    };
    // Only where it is shown: a kind of server that does not say is no news.
    let asked_for = asked_for.filter(|_| findings.get(name).is_some());
    asked_for.map(|value| (By::Study, value))
}

fn agrees(kind: ServerKind, name: &str, by: By, expected: &Value, found: &Value) -> bool {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let same = |a: &str, b: &str| a.eq_ignore_ascii_case(b);
    match name {
        "backend" | "kv_type" => same(&text(expected), &text(found)),
        "version" => text(found).contains(&text(expected)),
        "model_sha256" => text(found).starts_with(&text(expected)),
        "model_path" => file_name(&text(found)) == file_name(&text(expected)),
        "cpu_features" => {
            let found = found.as_array().cloned().unwrap_or_default();
            let wanted = expected.as_array().cloned().unwrap_or_default();
            let has = |name: &Value| found.iter().any(|f| same(&text(f), &text(name)));
            wanted.iter().all(has)
        }
        "ctx" if by == By::Study && kind != ServerKind::PalindromeEngine => {
            let rounded = |n: u64| n.div_ceil(CTX_STEP) * CTX_STEP;
            let (expected, found) = (expected.as_u64(), found.as_u64());
            found == expected || found == expected.map(rounded)
        }
        _ => expected == found,
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
