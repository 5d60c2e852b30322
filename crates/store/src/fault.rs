//! Dying on purpose: at a named point, the nth time it is reached, as if the power had gone. Only with the feature `faults`,
//! which the tests of crashes switch on; the shipped binary has points that do nothing.

/// A place where a process may be told to die.
#[cfg(not(feature = "faults"))]
pub(crate) const fn point(_name: &str) {}

/// A place where a process may be told to die.
///
/// `ADJUTANT_FAULT=commit.before:7` names the point and which time is the last one. `ADJUTANT_FAULT_TRACE=FILE` keeps the
/// name of every point that is reached, one to a line, so that a test knows how many there are.
#[cfg(feature = "faults")]
pub(crate) fn point(name: &str) {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    // Read here and nowhere else: a setting would have to pass through every room of the house for a test's sake.
    static WANTED: LazyLock<Option<(String, u64)>> = LazyLock::new(|| {
        let wanted = std::env::var("ADJUTANT_FAULT").ok()?;
        let (point, nth) = wanted.rsplit_once(':')?;
        Some((point.to_owned(), nth.parse().ok()?))
    });
    static REACHED: AtomicU64 = AtomicU64::new(0);

    trace(name);
    let Some((point, nth)) = WANTED.as_ref() else { return };
    if point == name && REACHED.fetch_add(1, Ordering::Relaxed) + 1 == *nth {
        die();
    }
}

#[cfg(feature = "faults")]
fn trace(name: &str) {
    use std::io::Write as _;
    let Ok(file) = std::env::var("ADJUTANT_FAULT_TRACE") else { return };
    let kept = std::fs::OpenOptions::new().create(true).append(true).open(file);
    // A line that is missing makes the test count too few points, which it notices.
    let _ = kept.and_then(|mut file| writeln!(file, "{name}"));
}

/// Ends the process without any chance to tidy up.
#[cfg(feature = "faults")]
fn die() -> ! {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    loop {
        // Nothing more may happen here, however late the signal comes.
        std::thread::park();
    }
}
