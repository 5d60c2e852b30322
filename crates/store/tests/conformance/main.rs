//! One suite for every back end: what holds on SQLite holds on PostgreSQL and in the simulation, word for word.
//!
//! PostgreSQL takes part when `ADJUTANT_TEST_POSTGRES` names a server on which databases may be made and dropped.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

#[macro_use]
mod world;
mod fixture;

mod access;
mod agents;
mod audit;
mod branch;
mod erase;
mod faults;
mod group;
mod inbox;
mod log;
mod money;
mod nodes;
mod open;
mod queue;
mod rates;
mod removal;
mod retention;
mod rules;
mod search;
mod start;
mod tables;
