//! The real binary, killed with SIGKILL wherever it can hurt, on both databases. Whatever was promised must hold afterwards:
//! no effect twice, none lost without a word, one result for each call, and a record that verifies.
//!
//! PostgreSQL takes part when `ADJUTANT_TEST_POSTGRES` names a server on which databases may be made and dropped.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on stops")]

mod bell;
mod checks;
mod erasing;
mod house;
mod matrix;
mod moving;
mod outside;
mod recovery;
mod restoring;
