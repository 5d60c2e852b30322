//! The guard: the one place that answers allow, ask or deny for an effect.

pub mod address;
pub mod arguments;
pub mod check;
pub mod cron;
pub mod filter;
pub mod host;
pub mod judge;
mod location;
pub mod mail;
mod markdown;
pub mod mention;
pub mod meta;
mod operation;
pub mod path;
pub mod pattern;
pub mod permit;
pub mod plane;
pub mod policy;
pub mod rate;
pub mod redact;
pub mod rule;
pub mod scope;
mod spec;
pub mod survey;
mod words;
