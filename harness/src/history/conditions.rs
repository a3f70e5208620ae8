//! What must be the same for two ratios to be set against each other.

use std::fmt::Write as _;

use serde::Serialize;

use crate::archive::{Facts, sha256_hex, short};
use crate::host::HostFacts;
use crate::study::StudyFile;

/// Named fields, in the order in which a difference is looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Conditions {
    fields: Vec<(String, String)>,
}

impl Conditions {
    /// Those of one ratio: the study's, the machine's, those of the arm below the line, and how the
    /// metric is counted.
    pub fn of(facts: &Facts, file: &StudyFile, base: &str, other: &str, convention: &str) -> Self {
        let mut fields: Vec<(String, String)> = Vec::new();
        let mut add = |name: &str, value: String| fields.push((name.to_owned(), value));
        add("protocol", protocol(facts));
        add("convention", convention.to_owned());
        for (name, value) in facts.host.machine() {
            add(&format!("host {name}"), value);
        }
        add("host memory", memory(&facts.host));
        add("workload", workload(facts, file));
        for arm in [base, other] {
            add(&format!("model of {arm}"), models(facts, arm));
        }
        add(&format!("program of {base}"), program(facts, base));
        add(&format!("settings of {base}"), settings(file, base));
        Self { fields }
    }

    /// The first field that differs, with its value here and there; absent where none does.
    pub fn differs(&self, before: &Self) -> Option<String> {
        let pairs = self.fields.iter().zip(&before.fields);
        for ((name, here), (_, there)) in pairs {
            if here != there {
                return Some(format!("{name} is {here}, before {there}"));
            }
        }
        (self.fields.len() != before.fields.len())
            .then(|| "other conditions are recorded".to_owned())
    }
}

fn not_shown(value: Option<String>) -> String {
    value.unwrap_or_else(|| "not shown".to_owned())
}

fn protocol(facts: &Facts) -> String {
    let json = serde_json::to_value(&facts.plan.protocol).unwrap_or_default();
    match json {
        serde_json::Value::String(name) => name,
        other => other.to_string(),
    }
}

fn memory(host: &HostFacts) -> String {
    let gib = host
        .memory_bytes
        .map(|b| format!("{:.1} GiB", b as f64 / (1_u64 << 30) as f64));
    not_shown(gib)
}

/// Bodies, warm-ups and route: the names of what is sent, and a hash over all of it.
fn workload(facts: &Facts, file: &StudyFile) -> String {
    let plan = &facts.plan;
    let all = plan
        .warmups
        .iter()
        .map(|w| (w, true))
        .chain(plan.bodies.iter().map(|b| (b, false)));
    let mut text = format!("{}\n", file.workload.path.as_ref());
    for ((_, sha256), warmup) in all {
        let _ = writeln!(text, "{warmup} {sha256}");
    }
    let hash = sha256_hex(text.as_bytes());
    format!("{} request(s) ({})", plan.bodies.len(), short(&hash))
}

fn models(facts: &Facts, arm: &str) -> String {
    let session = facts.sessions.iter().find(|s| s.planned.arm == arm);
    let models: Option<Vec<String>> = session.map(|s| {
        let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        let all = s.launch.models.iter();
        all.map(|m| format!("{} ({})", name(&m.path), short(&m.sha256)))
            .collect()
    });
    not_shown(models.map(|m| m.join(", ")))
}

fn program(facts: &Facts, arm: &str) -> String {
    let session = facts.sessions.iter().find(|s| s.planned.arm == arm);
    not_shown(session.map(|s| short(&s.launch.binary.sha256).to_owned()))
}

/// What the study file gives an arm, `[base]` merged in.
fn settings(file: &StudyFile, arm: &str) -> String {
    let Some(arm) = file.arms.iter().find(|a| a.name.as_ref() == arm) else {
        return "not shown".to_owned();
    };
    let number =
        |own: Option<u32>, base: Option<u32>| not_shown(own.or(base).map(|n| n.to_string()));
    let mut env = file.base.env.clone();
    env.extend(arm.env.clone());
    let args: Vec<&str> = file
        .base
        .args
        .iter()
        .chain(&arm.args)
        .map(String::as_str)
        .collect();
    let env: Vec<String> = env.iter().map(|(k, v)| format!("{k}={v}")).collect();
    format!(
        "threads {}, ctx {}, args [{}], env [{}]",
        number(arm.threads, file.base.threads),
        number(arm.ctx, file.base.ctx),
        args.join(" "),
        env.join(" ")
    )
}
