//! Describing the machine and what runs on it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::machine::machine;
use super::{CheckoutFacts, HostFacts};
use crate::archive::utc_rfc3339;

/// Logical CPUs that this process may run on.
pub(super) fn logical_cpus() -> Option<u32> {
    let cpus = std::thread::available_parallelism().ok()?;
    u32::try_from(cpus.get()).ok()
}

impl HostFacts {
    /// Reads everything that this machine shows of itself. `folder` is where git is asked;
    /// `versions` are those of other programs that the caller knows.
    pub fn collect(folder: &Path, versions: BTreeMap<String, String>) -> Self {
        Self {
            schema: "1.0".to_owned(),
            utc: utc_rfc3339(std::time::SystemTime::now()),
            harness_version: env!("CARGO_PKG_VERSION").to_owned(),
            checkout: checkout(folder),
            versions,
            ..machine().describe()
        }
    }

    /// What this machine does not show, by the names of `host.json`; the checkout, which is no
    /// matter of the machine, left out.
    pub fn not_shown(&self) -> Vec<String> {
        // A struct of plain fields serialises to an object.
        let Ok(Value::Object(fields)) = serde_json::to_value(self) else {
            return Vec::new();
        };
        let absent = |value: &Value| match value {
            Value::Null => true,
            Value::Array(all) => all.is_empty(),
            Value::String(text) => text.is_empty(),
            _ => false,
        };
        let names = fields.iter().filter(|(name, value)| {
            !matches!(
                name.as_str(),
                "checkout" | "schema" | "utc" | "harness_version"
            ) && absent(value)
        });
        names.map(|(name, _)| name.clone()).collect()
    }
}

/// Git's view of a folder; absent outside a checkout or without git.
fn checkout(folder: &Path) -> Option<CheckoutFacts> {
    let git = |args: &[&str]| {
        let out = Command::new("git")
            .arg("-C")
            .arg(folder)
            .args(args)
            .output()
            .ok()?;
        out.status
            .success()
            .then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "HEAD"])?;
    let dirty = !git(&["status", "--porcelain"])?.is_empty();
    Some(CheckoutFacts { commit, dirty })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_kernel_and_memory() {
        let facts = HostFacts::collect(Path::new("."), BTreeMap::new());
        assert!(facts.kernel.is_some());
        assert!(facts.memory_bytes.is_some_and(|b| b > 1 << 20));
    }
}
