//! Where log lines go: through the redactor, whoever wrote them (rule R1).

use std::io::{self, Write};

use adjutant_core::guard::redact::{Form, Mode, redact, redact_value};
use serde_json::Value;

/// Writes lines without their secrets.
pub(super) struct CleanLog<W>(pub(super) W);

impl<W: Write> Write for CleanLog<W> {
    // A line comes in one piece, so that a secret cannot be cut in two.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(line) {
            Ok(text) => self.0.write_all(clean(text).as_bytes())?,
            Err(_) => self.0.write_all(line)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A line without its secrets. A JSON document stays one: what is taken out of its text could take a quote along.
fn clean(line: &str) -> String {
    match serde_json::from_str::<Value>(line) {
        Ok(mut document) if document.is_object() => {
            redact_value(&mut document, Mode::Standard, Form::Kind);
            format!("{document}\n")
        }
        Ok(_) | Err(_) => redact(line, Mode::Standard).into_owned(),
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

    #[test]
    fn a_line_of_json_stays_one_whatever_is_taken_out_of_it() {
        let kept = Kept::default();
        let key = ["a7Bq", "9xLm", "2Zt4", "Kw8c"].concat().repeat(2);
        let subscriber = tracing_subscriber::fmt().json().flatten_event(true).with_writer(kept.clone()).finish();
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(trace_id = "4bf9", token = "password=correct-horse-battery", "Authorization: Bearer {key}");
            tracing::warn!(said = "password: \"correct horse\"", "a \"quoted\" secret=correct-horse\\");
        });
        let lines = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        assert!(!lines.contains("correct") && !lines.contains(&key), "{lines}");
        let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((lines.len(), &lines[0]["level"], &lines[0]["trace_id"]), (2, &"WARN".into(), &"4bf9".into()));
    }
}
