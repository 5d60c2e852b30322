//! Where log lines go: through the redactor, whoever wrote them (rule R1).

use std::io::{self, Write};

use adjutant_core::guard::redact::{Mode, redact};

/// Writes lines without their secrets.
pub(super) struct CleanLog<W>(pub(super) W);

impl<W: Write> Write for CleanLog<W> {
    // A line comes in one piece, so that a secret cannot be cut in two.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(line) {
            Ok(text) => self.0.write_all(redact(text, Mode::Standard).as_bytes())?,
            Err(_) => self.0.write_all(line)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for Kept {
        type Writer = CleanLog<Self>;

        fn make_writer(&self) -> Self::Writer {
            CleanLog(self.clone())
        }
    }

    #[test]
    fn a_secret_in_a_log_line_is_not_written() {
        let kept = Kept::default();
        let key = ["a7Bq", "9xLm", "2Zt4", "Kw8c"].concat().repeat(2);
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(kept.clone()).finish();
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(token = "password=correct-horse-battery", "a call failed: Authorization: Bearer {key}");
        });
        let line = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        assert!(line.contains("a call failed") && line.contains("[REDACTED"), "{line}");
        assert!(!line.contains("correct-horse") && !line.contains(&key), "{line}");
    }
}
