//! What nobody asked for: instructions of the host that a server leaves unused, a device other than
//! the one that was asked for, or than the other arms'.

use std::collections::BTreeSet;

use super::setting::SessionSettings;
use crate::archive::Facts;
use crate::host::HostFacts;

/// Vector instructions that matter to inference: the kernel's flag, the name that servers print.
const INSTRUCTIONS: [(&str, &str); 11] = [
    ("avx", "AVX"),
    ("avx2", "AVX2"),
    ("fma", "FMA"),
    ("f16c", "F16C"),
    ("avx512f", "AVX512"),
    ("avx512_vnni", "AVX512_VNNI"),
    ("avx_vnni", "AVX_VNNI"),
    ("amx_int8", "AMX_INT8"),
    ("asimd", "NEON"),
    ("asimddp", "DOTPROD"),
    ("i8mm", "MATMUL_INT8"),
];

/// What stands for an instruction set that is not named: wider ones do the same work.
fn implied(name: &str, features: &[String]) -> bool {
    let has = |feature: &str| features.iter().any(|f| f.eq_ignore_ascii_case(feature));
    match name {
        "AVX" => has("AVX2") || has("AVX512"),
        "AVX_VNNI" => has("AVX512_VNNI"),
        _ => false,
    }
}

/// Instruction sets that the host has and a server with these features does not use.
pub fn unused_instructions(features: &[String], host: &HostFacts) -> Vec<&'static str> {
    let has = |name: &str| features.iter().any(|f| f.eq_ignore_ascii_case(name));
    let here = INSTRUCTIONS
        .iter()
        .filter(|(flag, _)| host.cpu_flags.iter().any(|f| f == flag));
    let unused = here.filter(|(_, name)| !has(name) && !implied(name, features));
    unused.map(|(_, name)| *name).collect()
}

/// The features of a session's server, if anything shows them.
pub(super) fn features(session: &SessionSettings) -> Option<Vec<String>> {
    let found = session.get("cpu_features")?.found.as_ref()?.as_array()?;
    let names = found.iter().filter_map(|f| f.as_str().map(str::to_owned));
    Some(names.collect())
}

fn found_text(session: &SessionSettings, name: &str) -> Option<String> {
    let found = session.get(name)?.found.as_ref()?;
    found.as_str().map(str::to_owned)
}

/// Whether a command asks for layers on a GPU, or for a device: the words, as given.
fn asks_for_device(command: &[String]) -> Option<String> {
    const LAYERS: [&str; 3] = ["-ngl", "--n-gpu-layers", "--gpu-layers"];
    const DEVICE: [&str; 2] = ["-dev", "--device"];
    let pairs = command.windows(2).find(|pair| {
        let none = matches!(pair[1].as_str(), "0" | "none" | "cpu" | "auto");
        (LAYERS.contains(&pair[0].as_str()) || DEVICE.contains(&pair[0].as_str())) && !none
    });
    if let Some(pair) = pairs {
        return Some(pair.join(" "));
    }
    let joined = command.iter().find(|word| {
        let parts = word.split_once('=');
        parts.is_some_and(|(flag, value)| {
            (LAYERS.contains(&flag) || DEVICE.contains(&flag))
                && !matches!(value, "0" | "none" | "cpu" | "auto")
        })
    });
    joined.cloned()
}

/// What one session's server did that its command, or the host, does not suggest.
pub(super) fn of_session(
    session: &SessionSettings,
    command: &[String],
    host: &HostFacts,
) -> Vec<String> {
    let arm = &session.arm;
    let mut out = Vec::new();
    let backend = found_text(session, "backend");
    let source = |name: &str| {
        let source = session.get(name).and_then(|s| s.source.clone());
        source.unwrap_or_default()
    };
    let layers = session
        .get("gpu_layers")
        .and_then(|s| s.found.as_ref()?.as_u64());
    if let Some(asked) = asks_for_device(command)
        && (backend.as_deref() == Some("cpu") || layers == Some(0))
    {
        out.push(format!(
            "{arm} ran on the CPU although its command asks for a device ({asked}) [{}]",
            source("backend")
        ));
    }
    if let Some(features) = features(session) {
        let unused = unused_instructions(&features, host);
        if !unused.is_empty() && backend.as_deref().is_none_or(|b| b == "cpu") {
            out.push(format!(
                "{arm} ran without instructions that this host has: {} [{}]",
                unused.join(", "),
                source("cpu_features")
            ));
        }
    }
    out
}

/// Arms whose servers computed on different devices.
pub(super) fn across_arms(facts: &Facts, all: &[SessionSettings]) -> Option<String> {
    let of_arm = |arm: &String| -> Option<String> {
        let mine = all.iter().filter(|s| s.arm == *arm);
        let device =
            |s: &SessionSettings| found_text(s, "backend").or_else(|| found_text(s, "device"));
        let found: BTreeSet<String> = mine.filter_map(device).collect();
        let found: Vec<String> = found.into_iter().collect();
        (!found.is_empty()).then(|| found.join(" and "))
    };
    let arms = facts.plan.arms.iter();
    let devices: Vec<(&String, String)> = arms.filter_map(|a| Some((a, of_arm(a)?))).collect();
    let (_, first) = devices.first()?;
    let differ = devices.iter().any(|(_, device)| device != first);
    let said: Vec<String> = devices
        .iter()
        .map(|(arm, device)| format!("{arm} on {device}"))
        .collect();
    differ.then(|| {
        format!(
            "The arms did not run on the same kind of device: {}.",
            said.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|n| (*n).to_owned()).collect()
    }

    #[test]
    fn instructions_of_the_host_that_a_build_leaves_unused() {
        let host = |flags: &[&str]| HostFacts {
            cpu_flags: names(flags),
            ..HostFacts::default()
        };
        let zen3 = host(&["avx", "avx2", "bmi2", "f16c", "fma", "sse4_2"]);
        let wheel = names(&["SSE3", "AVX", "AVX2", "F16C", "FMA", "BMI2"]);
        assert_eq!(unused_instructions(&wheel, &zen3), Vec::<&str>::new());
        assert_eq!(
            unused_instructions(&names(&["SSE3"]), &zen3),
            ["AVX", "AVX2", "FMA", "F16C"]
        );
        let wide = host(&[
            "avx",
            "avx2",
            "f16c",
            "fma",
            "avx512f",
            "avx512_vnni",
            "avx_vnni",
        ]);
        assert_eq!(
            unused_instructions(&wheel, &wide),
            ["AVX512", "AVX512_VNNI", "AVX_VNNI"]
        );
        let own = names(&["AVX2", "FMA", "F16C", "AVX512", "AVX512_VNNI"]);
        assert_eq!(unused_instructions(&own, &wide), Vec::<&str>::new());
        let arm = host(&["asimd", "asimddp"]);
        assert_eq!(unused_instructions(&names(&["NEON"]), &arm), ["DOTPROD"]);
    }

    #[test]
    fn a_command_asks_for_a_device_in_several_ways() {
        let asks = |line: &str| asks_for_device(&names(&line.split(' ').collect::<Vec<_>>()));
        assert_eq!(asks("s -m x -ngl 99 -t 2"), Some("-ngl 99".into()));
        assert_eq!(asks("s --device CUDA0"), Some("--device CUDA0".into()));
        assert_eq!(
            asks("s --n-gpu-layers=20"),
            Some("--n-gpu-layers=20".into())
        );
        assert_eq!(asks("s -ngl 0"), None);
        assert_eq!(asks("s --device none -t 2"), None);
    }
}
