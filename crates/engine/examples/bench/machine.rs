//! What this process has used, as the operating system counts it.

/// Processor time of this process, its threads included.
pub(crate) struct Use {
    pub(crate) millis: f64,
}

impl Use {
    pub(crate) fn now() -> Self {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        // The name of the program may hold blanks, so counting starts behind it.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or_default();
        // Ticks of 10 ms, the constant of every Linux that we know.
        Self { millis: (ticks(11) + ticks(12)) * 10.0 }
    }

    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self { millis: self.millis - earlier.millis }
    }
}

/// Memory that is really there.
pub(crate) fn rss_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap_or_default()
}
