//! What a process shows whatever its kind: where it may run, which devices it holds, what it maps.

use std::path::Path;

use serde_json::Value;

use super::found::Findings;
use crate::host::ProcessFacts;
use crate::server::{LaunchFacts, Readback, ServerKind};

/// Reads a process as it was before it was stopped.
pub(super) fn read(launch: &LaunchFacts, readback: &Readback, findings: &mut Findings) {
    let process = &readback.end;
    let at = |what: &str| format!("readback.json end/{what}");
    findings.add("cpus", process.cpus_allowed.clone(), at("cpus_allowed"));
    findings.add("nice", process.nice.filter(|n| *n != 0), at("nice"));
    let count = process.threads.as_ref().map(|groups| {
        let count = groups.iter().map(|g| u64::from(g.count));
        count.sum::<u64>()
    });
    findings.add("process_threads", count, at("threads"));
    let model = launch.models.first();
    let mapped = process.mapped.as_ref().zip(model).map(|(mapped, model)| {
        let store = |path: &str| Path::new(path).extension().is_some_and(|e| e == "store");
        mapped
            .iter()
            .any(|m| m.path == model.path || store(&m.path))
    });
    findings.add("mmap", mapped, at("mapped"));
    let sha256 = model.map(|m| m.sha256.clone());
    findings.add("model_sha256", sha256, "launch.json models/0/sha256");
    devices(launch.kind, process, &at, findings);
}

/// A GPU cannot be used without its device file, so a process that has none open computes on the
/// CPU. One that has does not thereby compute on it: what it holds is the device, and the kind of its
/// libraries, if they are of one kind, is what it reaches it by. A command of any kind may compute in
/// a process that it started, so of such a one nothing open says nothing.
fn devices(
    kind: ServerKind,
    process: &ProcessFacts,
    at: &dyn Fn(&str) -> String,
    findings: &mut Findings,
) {
    let open = process.devices.as_deref();
    match open {
        Some([]) if kind == ServerKind::Openai => {}
        Some([]) => {
            let source = at("devices: no device file is open");
            findings.add("device", Some("none"), source.clone());
            findings.add("backend", Some("cpu"), source.clone());
            findings.add("gpu_layers", Some(0), source);
        }
        Some(_) => {
            let libraries = process.device_libraries.as_deref().unwrap_or_default();
            findings.add("device", interface(libraries), at("device_libraries"));
        }
        None => {}
    }
    let memory = process.device_memory.as_ref().map(|regions| {
        let regions = regions
            .iter()
            .map(|m| format!("{} {}: {} bytes", m.device, m.region, m.bytes));
        Value::from(regions.collect::<Vec<_>>())
    });
    findings.add("device_memory", memory, at("device_memory"));
}

fn interface(libraries: &[String]) -> Option<&'static str> {
    const KINDS: [(&str, &[&str]); 5] = [
        ("cuda", &["libcuda", "ggml-cuda", "libcublas"]),
        ("vulkan", &["libvulkan", "ggml-vulkan"]),
        (
            "rocm",
            &["libamdhip64", "libhsa-runtime64", "ggml-hip", "librocblas"],
        ),
        ("sycl", &["libsycl", "libze_loader", "ggml-sycl"]),
        ("opencl", &["libOpenCL", "ggml-opencl"]),
    ];
    let seen = |parts: &[&str]| {
        libraries
            .iter()
            .any(|l| parts.iter().any(|p| l.contains(p)))
    };
    let mut kinds = KINDS.iter().filter(|(_, parts)| seen(parts));
    let (first, second) = (kinds.next(), kinds.next());
    first.filter(|_| second.is_none()).map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_is_named_only_where_there_is_one() {
        let of = |libraries: &[&str]| {
            let owned: Vec<String> = libraries.iter().map(|l| (*l).to_owned()).collect();
            interface(&owned)
        };
        assert_eq!(of(&["/x/libggml-cuda.so", "/y/libcuda.so.1"]), Some("cuda"));
        assert_eq!(of(&["/x/libvulkan.so.1"]), Some("vulkan"));
        assert_eq!(of(&["/x/libvulkan.so.1", "/y/libcuda.so.1"]), None);
        assert_eq!(of(&[]), None);
    }
}
