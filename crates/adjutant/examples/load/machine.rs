//! What a process has used, as the operating system counts it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Processor time of a process in milliseconds, its threads included.
pub(crate) fn cpu(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name of the program may hold blanks, so counting starts behind it.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or_default();
    // Ticks of 10 ms, the constant of every Linux that we know.
    (ticks(11) + ticks(12)) * 10.0
}

/// The same of this process, which is the client.
pub(crate) fn own_cpu() -> f64 {
    cpu(std::process::id())
}

/// Memory of a process that is really there.
pub(crate) fn rss_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap_or_default()
}

/// The most memory that a process had while it was watched.
pub(crate) struct Highest {
    most: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
}

impl Highest {
    pub(crate) fn watch(pid: u32) -> Self {
        let (most, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (seen, end) = (Arc::clone(&most), Arc::clone(&over));
        std::thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                seen.fetch_max(rss_kib(pid), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        Self { most, over }
    }

    pub(crate) fn stop(self) -> u64 {
        self.over.store(true, Ordering::Relaxed);
        self.most.load(Ordering::Relaxed)
    }
}
