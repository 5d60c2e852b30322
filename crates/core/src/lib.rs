//! The meaning of Adjutant: ids, messages, tools, runs, the guard. Pure: no clock, no chance, no input or output.

#![warn(clippy::wildcard_enum_match_arm)]

pub mod audit;
pub mod budget;
pub mod canonical;
pub mod causes;
pub mod content;
pub mod guard;
pub mod id;
pub mod label;
pub mod limits;
pub mod message;
pub mod money;
pub mod options;
pub mod routing;
pub mod run;
pub mod safety;
pub mod time;
pub mod tool;
