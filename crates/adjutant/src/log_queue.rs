//! What a server says on standard error goes through a queue, and a thread of its own writes it: whoever does not read it
//! holds up nobody. When the queue is full, lines are left out and counted, and the next one that is written says how many.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use crate::config::LogFormat;

/// Lines that wait to be written: some seconds of a busy server, a few megabytes at the most.
const LINES: usize = 4096;
/// How long the lines so far may take to be written when somebody waits for them.
const LAST: Duration = Duration::from_secs(1);

static QUEUE: OnceLock<Queue> = OnceLock::new();

/// Lines on their way to standard error.
struct Queue {
    lines: SyncSender<Item>,
    /// Lines that were left out, ever.
    lost: AtomicU64,
}

enum Item {
    Line(Vec<u8>),
    /// Answered when everything before it is written.
    Mark(SyncSender<()>),
}

/// Sends everything through the queue from now on. Without a thread to write it, nothing changes.
pub(crate) fn start(format: LogFormat) {
    let (lines, waiting) = sync_channel(LINES);
    let thread = std::thread::Builder::new().name("log".to_owned());
    if thread.spawn(move || write_out(&waiting, &mut io::stderr(), format, lost)).is_ok() {
        // A second start in one process would only happen in a test, and there the first one serves.
        let _ = QUEUE.set(Queue { lines, lost: AtomicU64::new(0) });
    }
}

/// Lines of the log that were left out because nobody read them in time.
pub(crate) fn lost() -> u64 {
    QUEUE.get().map_or(0, |queue| queue.lost.load(Ordering::Relaxed))
}

/// Lets what was said so far be written, within reason.
pub(crate) fn drain() {
    let Some(queue) = QUEUE.get() else { return };
    let (tell, written) = sync_channel(1);
    if queue.lines.try_send(Item::Mark(tell)).is_ok() {
        let _ = written.recv_timeout(LAST);
    }
}

impl Queue {
    /// A piece of text that is written as one.
    fn put(&self, text: Vec<u8>) {
        match self.lines.try_send(Item::Line(text)) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Where one line is written: into the queue, or where there is none, to standard error.
pub(crate) struct Writer;

impl Write for Writer {
    // A line comes in one piece.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match QUEUE.get() {
            Some(queue) => queue.put(line.to_vec()),
            None => io::stderr().write_all(line)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_out(waiting: &Receiver<Item>, out: &mut impl Write, format: LogFormat, lost: impl Fn() -> u64) {
    let mut said = 0;
    for item in waiting {
        let missing = lost() - said;
        if missing > 0 {
            said += missing;
            // What cannot be written has nobody to be told to.
            let text = format!("{missing} log lines were left out: they were not read in time");
            let _ = match format {
                LogFormat::Text => writeln!(out, "{text}"),
                LogFormat::Json => writeln!(out, "{}", serde_json::json!({"level": "WARN", "message": text})),
            };
        }
        match item {
            Item::Line(line) => {
                let _ = out.write_all(&line).and_then(|()| out.flush());
            }
            Item::Mark(tell) => {
                let _ = tell.send(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_find_no_room_are_counted_and_the_next_line_says_so() {
        let (lines, waiting) = sync_channel(2);
        let queue = Queue { lines, lost: AtomicU64::new(0) };
        for text in ["one\n", "two\n", "three\n", "four\n"] {
            queue.put(text.into());
        }
        let lost = queue.lost.load(Ordering::Relaxed);
        drop(queue);
        let mut out = Vec::new();
        write_out(&waiting, &mut out, LogFormat::Text, || lost);
        let out = String::from_utf8(out).unwrap();
        assert_eq!(out, "2 log lines were left out: they were not read in time\none\ntwo\n");
    }
}
