//! The real binary, as a person and a script use it: stories over one data directory and many processes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on stops")]
#![allow(dead_code, reason = "the house and its client serve the tests on PostgreSQL, too")]

use house::Base;

mod agents;
mod api;
mod audit;
mod backup;
mod chat;
mod check;
mod house;
mod keys;
mod models;
mod money;
mod programs;
mod remote;
mod rules;
mod runs;
mod server;
mod tending;
mod terminal;
mod trouble;

/// What every house here stands on.
const BASE: Base = Base::Sqlite;
