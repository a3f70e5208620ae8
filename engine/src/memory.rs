//! What the system says of its memory.

/// Bytes that could be had without swapping, page cache included; `None` where nothing tells.
pub fn available_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    available(&text)
}

fn available(meminfo: &str) -> Option<u64> {
    let value = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = value.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_available_line_is_read() {
        let text = "MemTotal:       24000 kB\nMemAvailable:   12000 kB\n";
        assert_eq!(available(text), Some(12_288_000));
        assert_eq!(available("MemTotal: 1 kB\n"), None);
    }
}
