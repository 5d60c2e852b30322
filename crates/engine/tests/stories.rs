//! Stories of whole runs through the embeddable door: scripted model, real SQLite, real files.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on stops")]

mod story;
