//! The lock of a data directory: one process at a time. It is the operating system's, so it ends with the process, however
//! that ends; the file's text only says who holds it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::failure::{Exit, Failure};

const NAME: &str = "lock";

/// The data directory belongs to this process while this lives.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Lock {
    /// Takes the lock. `what` is told to whoever comes next.
    pub(crate) fn take(data: &Path, what: &str) -> Result<Self, Failure> {
        let path = data.join(NAME);
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
        let mut file = opened.map_err(|error| super::unusable(&path, &error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(data, &mut file)),
            Err(TryLockError::Error(error)) => return Err(super::unusable(&path, &error)),
        }
        let noted =
            file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{} {what}", std::process::id()));
        noted.map_err(|error| super::unusable(&path, &error))?;
        Ok(Self(file))
    }

    /// Tells more to whoever comes next.
    pub(crate) fn note(&self, what: &str) {
        let mut file = &self.0;
        let noted =
            file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{} {what}", std::process::id()));
        if let Err(error) = noted {
            // The lock itself holds; only its text is out of date.
            tracing::debug!(%error, "the text of the lock could not be written");
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing alone would not end it while a child process that is just being started still has a copy of the handle.
        let _ = self.0.unlock();
    }
}

fn in_use(data: &Path, file: &mut File) -> Failure {
    let mut text = String::new();
    // Who holds it is a courtesy: without it the message only says less.
    let _ = file.take(200).read_to_string(&mut text);
    let (pid, what) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    let holder = match (pid.parse::<u32>(), what) {
        (Ok(pid), "") => format!("process {pid}"),
        (Ok(pid), what) => format!("process {pid} (adjutant {what})"),
        (Err(_), _) => "another process".to_owned(),
    };
    Failure::new(
        Exit::Other,
        "in_use",
        format!("The data directory {} is in use by {holder}. Nothing was done.", data.display()),
    )
    .hint("wait for it or stop it (Ctrl-C in its terminal), or work in another directory with --data DIR")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_one_is_told_who_has_it_and_the_next_one_gets_it() {
        let folder = tempfile::tempdir().unwrap();
        let held = Lock::take(folder.path(), "serve").unwrap();
        let refused = Lock::take(folder.path(), "run").unwrap_err();
        let holder = format!("in use by process {} (adjutant serve)", std::process::id());
        assert!(refused.message.contains(&holder), "{}", refused.message);
        held.note("serve on http://127.0.0.1:7878");
        assert!(Lock::take(folder.path(), "run").unwrap_err().message.contains("serve on http://127.0.0.1:7878"));
        drop(held);
        Lock::take(folder.path(), "run").unwrap();
    }
}
