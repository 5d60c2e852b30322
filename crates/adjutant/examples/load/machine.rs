//! What a process has used, as the operating system counts it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Milliseconds of a tick, the constant of every Linux that we know.
const TICK: f64 = 10.0;

/// What the system counts of a process, from its parent on.
fn counted(pid: u32) -> Option<Vec<f64>> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program may hold blanks, so counting starts behind it and its state.
    let fields = stat.rsplit(')').next()?.split_whitespace().skip(1);
    Some(fields.map(|text| text.parse().unwrap_or_default()).collect())
}

/// Processor time of a process in milliseconds, its threads included.
pub(crate) fn cpu(pid: u32) -> f64 {
    counted(pid).and_then(|fields| Some(fields.get(10..12)?.iter().sum::<f64>() * TICK)).unwrap_or_default()
}

/// The same of the parent of a process and of all its children, those that are gone included; none where it is not on this machine.
pub(crate) fn family_cpu(child: u32) -> Option<f64> {
    let parent = *counted(child)?.first()?;
    let mut ticks = 0.0;
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
        let Some((pid, fields)) = pid.and_then(|pid| Some((pid, counted(pid)?))) else { continue };
        if f64::from(pid) == parent {
            ticks += fields.get(10..14)?.iter().sum::<f64>();
        } else if fields.first() == Some(&parent) {
            ticks += fields.get(10..12)?.iter().sum::<f64>();
        }
    }
    Some(ticks * TICK)
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
