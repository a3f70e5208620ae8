//! A process as `/proc` shows it: threads, affinity, mapped files, devices.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::host::now_ns;
use crate::host::process::{DeviceMemory, MappedFile, ProcessFacts, ThreadGroup};

/// Smaller files tell nothing about what a server does.
const LARGE_BYTES: u64 = 1 << 20;

/// Parts of the names of libraries that drive accelerators.
const DEVICE_LIBRARIES: &[&str] = &[
    "libcuda.",
    "libcudart.",
    "libcublas.",
    "libnvidia-ml.",
    "libvulkan.",
    "libamdhip64.",
    "libhsa-runtime64.",
    "librocblas.",
    "libze_loader.",
    "libsycl.",
    "libOpenCL.",
    "ggml-cuda",
    "ggml-vulkan",
    "ggml-hip",
    "ggml-sycl",
    "ggml-opencl",
    "ggml-cann",
    "ggml-musa",
];

/// Where device files of accelerators lie.
const DEVICE_FILES: &[&str] = &[
    "/dev/nvidia",
    "/dev/dri/",
    "/dev/kfd",
    "/dev/accel",
    "/dev/dxg",
    "/dev/davinci",
    "/dev/mali",
];

/// Looks at a process; what is not shown, or gone, is absent.
pub(super) fn inspect(pid: u32) -> ProcessFacts {
    let folder = PathBuf::from(format!("/proc/{pid}"));
    let maps = fs::read_to_string(folder.join("maps")).ok();
    let status = fs::read_to_string(folder.join("status")).ok();
    let open = links(&folder.join("fd"));
    ProcessFacts {
        taken_ns: now_ns(),
        threads: threads(&folder.join("task")),
        cpus_allowed: status
            .as_deref()
            .and_then(|s| field(s, "Cpus_allowed_list:")),
        nice: fs::read_to_string(folder.join("stat"))
            .ok()
            .as_deref()
            .and_then(nice),
        mapped: maps.as_deref().map(large),
        device_libraries: maps.as_deref().map(drivers),
        devices: open.map(|open| {
            let device = |path: &String| DEVICE_FILES.iter().any(|d| path.starts_with(d));
            let devices: BTreeSet<String> = open.into_iter().filter(device).collect();
            devices.into_iter().collect()
        }),
        device_memory: device_memory(&folder.join("fdinfo")),
    }
}

fn field(status: &str, key: &str) -> Option<String> {
    let value = status.lines().find_map(|l| l.strip_prefix(key))?;
    Some(value.trim().to_owned())
}

/// The 19th field of `stat`, counted after the name, which may hold spaces.
fn nice(stat: &str) -> Option<i32> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19 - 3)?.parse().ok()
}

fn threads(folder: &Path) -> Option<Vec<ThreadGroup>> {
    let mut groups: BTreeMap<(String, String), u32> = BTreeMap::new();
    for entry in fs::read_dir(folder).ok()?.flatten() {
        // A thread may end between being listed and being read.
        let Ok(status) = fs::read_to_string(entry.path().join("status")) else {
            continue;
        };
        let name = field(&status, "Name:").unwrap_or_default();
        let cpus = field(&status, "Cpus_allowed_list:").unwrap_or_default();
        *groups.entry((name, cpus)).or_default() += 1;
    }
    let groups = groups
        .into_iter()
        .map(|((name, cpus_allowed), count)| ThreadGroup {
            name,
            cpus_allowed,
            count,
        });
    Some(groups.collect())
}

/// Files of a `maps` listing: path, and bytes between its first and last address.
fn files(maps: &str) -> BTreeMap<&str, u64> {
    let mut found: BTreeMap<&str, u64> = BTreeMap::new();
    for line in maps.lines() {
        let mut fields = line.splitn(6, ' ');
        let range = fields.next().and_then(|r| r.split_once('-'));
        let Some(path) = fields.nth(4).map(str::trim_start) else {
            continue;
        };
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let bytes = range.and_then(|(from, to)| hex(to)?.checked_sub(hex(from)?));
        if let (Some(bytes), true) = (bytes, path.starts_with('/')) {
            *found.entry(path).or_default() += bytes;
        }
    }
    found
}

fn large(maps: &str) -> Vec<MappedFile> {
    let files = files(maps).into_iter();
    let large = files.filter(|(path, bytes)| *bytes >= LARGE_BYTES && !path.starts_with("/dev/"));
    large
        .map(|(path, bytes)| MappedFile {
            path: path.to_owned(),
            bytes,
        })
        .collect()
}

fn drivers(maps: &str) -> Vec<String> {
    let is_driver = |path: &&str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        DEVICE_LIBRARIES.iter().any(|part| name.contains(part))
    };
    let paths = files(maps).into_keys();
    paths.filter(is_driver).map(str::to_owned).collect()
}

/// What a folder's links point to; absent where it cannot be listed.
fn links(folder: &Path) -> Option<Vec<String>> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let targets = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    Some(targets.map(|t| t.to_string_lossy().into_owned()).collect())
}

/// `drm-*` lines of open device files (Linux, "DRM client usage stats"): each client once.
fn device_memory(folder: &Path) -> Option<Vec<DeviceMemory>> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let infos = entries.filter_map(|entry| fs::read_to_string(entry.path()).ok());
    let mut clients: BTreeMap<(String, String), Vec<(String, u64)>> = BTreeMap::new();
    for info in infos {
        let Some(driver) = field(&info, "drm-driver:") else {
            continue;
        };
        let place = field(&info, "drm-pdev:").unwrap_or_default();
        let client = field(&info, "drm-client-id:").unwrap_or_default();
        let device = format!("{driver} {place}").trim().to_owned();
        clients.insert((device, client), regions(&info));
    }
    let mut total: BTreeMap<(String, String), u64> = BTreeMap::new();
    for ((device, _), regions) in clients {
        for (region, bytes) in regions {
            *total.entry((device.clone(), region)).or_default() += bytes;
        }
    }
    let total = total
        .into_iter()
        .map(|((device, region), bytes)| DeviceMemory {
            device,
            region,
            bytes,
        });
    let total: Vec<DeviceMemory> = total.collect();
    (!total.is_empty()).then_some(total)
}

/// `drm-resident-vram0: 12 KiB`, or the older `drm-memory-vram: 12 KiB`.
fn regions(info: &str) -> Vec<(String, u64)> {
    let of = |prefix: &str| -> Vec<(String, u64)> {
        let lines = info.lines().filter_map(|l| l.strip_prefix(prefix));
        let parsed = lines.filter_map(|line| {
            let (region, amount) = line.split_once(':')?;
            let mut parts = amount.split_whitespace();
            let number: u64 = parts.next()?.parse().ok()?;
            let scale = match parts.next() {
                None => 1,
                Some("KiB") => 1 << 10,
                Some("MiB") => 1 << 20,
                Some(_) => return None,
            };
            Some((region.to_owned(), number * scale))
        });
        parsed.collect()
    };
    let resident = of("drm-resident-");
    if resident.is_empty() {
        of("drm-memory-")
    } else {
        resident
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_threads_and_maps_its_program() {
        let seen = inspect(std::process::id());
        let threads = seen.threads.unwrap();
        assert!(threads.iter().map(|t| t.count).sum::<u32>() >= 1);
        assert!(threads.iter().all(|t| !t.cpus_allowed.is_empty()));
        assert!(seen.cpus_allowed.is_some() && seen.nice.is_some());
        let program = std::env::current_exe().unwrap();
        let mapped = seen.mapped.unwrap();
        assert!(mapped.iter().any(|m| Path::new(&m.path) == program));
        assert_eq!(seen.device_libraries, Some(Vec::new()));
        let gone = inspect(u32::MAX);
        assert_eq!((gone.threads, gone.mapped, gone.nice), (None, None, None));
    }

    #[test]
    fn drivers_are_known_by_the_names_of_libraries() {
        let maps = "7f00-7f10 r-xp 00000000 fe:00 11    /opt/lib/libggml-cuda.so.0\n\
                    7f20-7f30 r-xp 00000000 fe:00 12    /usr/lib/libcuda.so.1\n\
                    7f40-7f50 r-xp 00000000 fe:00 13    /usr/lib/libc.so.6\n";
        let found = drivers(maps);
        assert_eq!(
            found,
            ["/opt/lib/libggml-cuda.so.0", "/usr/lib/libcuda.so.1"]
        );
    }

    #[test]
    fn a_file_in_several_pieces_is_one_file() {
        let maps = "100000-200000 r--s 00000000 fe:00 11    /m/my model.gguf\n\
                    200000-210000 r--s 00100000 fe:00 11    /m/my model.gguf\n\
                    300000-300010 r--s 00000000 fe:00 12    /m/small\n\
                    400000-900000 rw-p 00000000 00:00 0     [heap]\n";
        let found = large(maps);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].path.as_str(), found[0].bytes),
            ("/m/my model.gguf", 0x110000)
        );
    }

    #[test]
    fn memory_of_a_device_is_counted_once_a_client() {
        let folder = tempfile::tempdir().unwrap();
        let info = "pos:\t0\ndrm-driver:\tamdgpu\ndrm-client-id:\t7\ndrm-pdev:\t0000:03:00.0\n\
                    drm-memory-vram:\t512 KiB\ndrm-memory-gtt:\t2 MiB\n";
        for name in ["5", "6"] {
            fs::write(folder.path().join(name), info).unwrap();
        }
        fs::write(folder.path().join("0"), "pos:\t0\nflags:\t02\n").unwrap();
        let found = device_memory(folder.path()).unwrap();
        let seen: Vec<(&str, u64)> = found.iter().map(|m| (m.region.as_str(), m.bytes)).collect();
        assert_eq!(seen, [("gtt", 2 << 20), ("vram", 512 << 10)]);
        assert_eq!(found[0].device, "amdgpu 0000:03:00.0");
    }
}
