//! Energy and power as the kernel shows them: RAPL by powercap, GPUs and boards by hwmon.

use std::fs;
use std::path::{Path, PathBuf};

use super::proc::{number, text};
use crate::host::{EnergyCounter, PowerReading};

/// Energy counters, and the power of devices that count no energy. Absent where there is none that
/// may be read.
pub(super) fn read() -> (Option<Vec<EnergyCounter>>, Option<Vec<PowerReading>>) {
    let (mut counters, mut power) = hwmon(Path::new("/sys/class/hwmon"));
    counters.extend(powercap(Path::new("/sys/class/powercap")));
    counters.sort_by(|a, b| a.device.cmp(&b.device));
    power.sort_by(|a, b| a.device.cmp(&b.device));
    (
        (!counters.is_empty()).then_some(counters),
        (!power.is_empty()).then_some(power),
    )
}

/// Zones of a powercap folder: whole packages and `psys`, and DRAM, which lies in a package's
/// folder and is not in its count. Cores and integrated GPUs are part of their package's count.
fn powercap(folder: &Path) -> Vec<EnergyCounter> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let zones = entries.flatten().filter_map(|entry| {
        let file = entry.file_name().to_string_lossy().into_owned();
        // Through the MMIO interface the same counters come again.
        let zone = file.strip_prefix("intel-rapl:")?;
        let name = text(entry.path().join("name"))?;
        let device = match zone.split_once(':') {
            None => name,
            Some((package, _)) if name == "dram" => format!("dram-{package}"),
            Some(_) => return None,
        };
        Some(EnergyCounter {
            device,
            microjoules: number(entry.path().join("energy_uj"))?,
            range_microjoules: number(entry.path().join("max_energy_range_uj")),
        })
    });
    zones.collect()
}

/// Of each hwmon device its energy counters, else its power.
fn hwmon(folder: &Path) -> (Vec<EnergyCounter>, Vec<PowerReading>) {
    let (mut counters, mut power) = (Vec::new(), Vec::new());
    let Ok(entries) = fs::read_dir(folder) else {
        return (counters, power);
    };
    for path in entries.flatten().map(|e| e.path()) {
        let name = text(path.join("name")).unwrap_or_default();
        let place = place(&path).unwrap_or_default();
        let device = |channel: &str| {
            let label = text(path.join(format!("{channel}_label")));
            let parts = [Some(name.clone()), Some(place.clone()), label];
            let parts: Vec<String> = parts
                .into_iter()
                .flatten()
                .filter(|p| !p.is_empty())
                .collect();
            parts.join(" ")
        };
        let before = counters.len();
        for channel in channels(&path, "energy", "_input") {
            if let Some(microjoules) = number(path.join(format!("{channel}_input"))) {
                counters.push(EnergyCounter {
                    device: device(&channel),
                    microjoules,
                    range_microjoules: None,
                });
            }
        }
        if counters.len() > before {
            continue;
        }
        for ending in ["_average", "_input"] {
            let found = channels(&path, "power", ending);
            for channel in &found {
                if let Some(microwatts) = number(path.join(format!("{channel}{ending}"))) {
                    power.push(PowerReading {
                        device: device(channel),
                        microwatts,
                    });
                }
            }
            if !found.is_empty() {
                break;
            }
        }
    }
    (counters, power)
}

/// The bus address of a hwmon device.
fn place(hwmon: &Path) -> Option<String> {
    let device = fs::read_link(hwmon.join("device")).ok()?;
    Some(device.file_name()?.to_string_lossy().into_owned())
}

/// `energy1`, `energy2` ... of which the folder has a file with this ending.
fn channels(folder: &PathBuf, stem: &str, ending: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<String> = entries
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let channel = name.strip_suffix(ending)?;
            let digits = channel.strip_prefix(stem)?;
            let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            is_number.then(|| channel.to_owned())
        })
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn packages_and_dram_are_counted_and_their_parts_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let zone = |name: &'static str, uj: &'static str| [("name", name), ("energy_uj", uj)];
        for (place, files) in [
            ("intel-rapl:0", zone("package-0\n", "1000\n")),
            ("intel-rapl:0:0", zone("core", "500")),
            ("intel-rapl:0:1", zone("dram", "70")),
            ("intel-rapl-mmio:0", zone("package-0", "1000")),
        ] {
            write(&folder.path().join(place), &files);
        }
        let range = [("max_energy_range_uj", "262143328850\n")];
        write(&folder.path().join("intel-rapl:0"), &range);
        let mut found = powercap(folder.path());
        found.sort_by(|a, b| a.device.cmp(&b.device));
        assert_eq!(found.len(), 2);
        assert_eq!(
            (found[0].device.as_str(), found[0].microjoules),
            ("dram-0", 70)
        );
        assert_eq!(found[1].device, "package-0");
        assert_eq!(found[1].range_microjoules, Some(262_143_328_850));
    }

    #[test]
    fn a_counter_is_taken_before_power_and_an_average_before_a_moment() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        write(
            &at("hwmon0"),
            &[
                ("name", "xe"),
                ("energy1_input", "90"),
                ("power1_input", "5"),
            ],
        );
        write(
            &at("hwmon1"),
            &[
                ("name", "amdgpu"),
                ("power1_average", "7000000"),
                ("power1_input", "9"),
                ("power1_label", "PPT"),
            ],
        );
        write(&at("hwmon2"), &[("name", "nvme"), ("temp1_input", "40000")]);
        let (counters, power) = hwmon(folder.path());
        assert_eq!(counters.len(), 1);
        assert_eq!(
            (counters[0].device.as_str(), counters[0].microjoules),
            ("xe", 90)
        );
        assert_eq!(power.len(), 1);
        assert_eq!(
            (power[0].device.as_str(), power[0].microwatts),
            ("amdgpu PPT", 7_000_000)
        );
        assert_eq!(powercap(folder.path()), []);
    }
}
