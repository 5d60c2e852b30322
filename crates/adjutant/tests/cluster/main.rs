//! Several real nodes on one PostgreSQL: any of them answers, follows, decides and stops whatever runs on any other, and takes
//! it over when that one dies. Nothing here is waited for by the clock: every wait is for something that can be seen.
//!
//! `ADJUTANT_TEST_POSTGRES` names a server on which databases may be made and dropped.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on stops")]
#![allow(dead_code, reason = "the house and its client serve the other tests, too")]

use house::Base;

mod chaos;
#[path = "../cli/api/client.rs"]
mod client;
#[path = "../cli/api/contract.rs"]
mod contract;
#[path = "../cli/house.rs"]
mod house;
mod money;
mod nodes;
mod share;
mod takeover;
mod upgrade;

/// What every house here stands on.
const BASE: Base = Base::Postgres;
