//! The HTTP API once more, on PostgreSQL: the same tests, word for word, in houses that stand on another database.
//!
//! `ADJUTANT_TEST_POSTGRES` names a server on which databases may be made and dropped.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on stops")]
#![allow(dead_code, reason = "the house and its client serve the other tests, too")]

use house::Base;

#[path = "../cli/api/mod.rs"]
mod api;
#[path = "../cli/backup.rs"]
mod backup;
#[path = "../cli/house.rs"]
mod house;
#[path = "../cli/keys.rs"]
mod keys;

/// What every house here stands on.
const BASE: Base = Base::Postgres;
