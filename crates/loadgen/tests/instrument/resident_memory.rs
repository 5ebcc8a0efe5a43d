//! Peak resident memory of this process.

/// Resets the peak and returns it; `None` if the kernel does not allow it.
pub fn reset_peak_kib() -> Option<u64> {
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    peak_kib()
}

pub fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}
