//! Major page faults of this process, all threads.

/// Faults since the process began; `None` where the system does not say.
pub(super) fn major_faults() -> Option<u64> {
    parse(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

/// `majflt`, field 12 of `/proc/PID/stat` (proc(5)). The command's name, field 2, may hold spaces
/// and brackets, so fields count from the last bracket.
fn parse(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(9)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_right_field_is_read() {
        let stat = "7 (a b) c) S 1 7 7 0 -1 4194304 1234 5678 91 2 3 4 5 6 20 0 1 0 9 0 0";
        assert_eq!(parse(stat), Some(91));
        assert_eq!(parse("nonsense"), None);
    }
}
