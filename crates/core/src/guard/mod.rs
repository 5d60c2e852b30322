//! The guard: the one place that answers allow, ask or deny for an effect.

mod operation;
pub mod path;
pub mod pattern;
pub mod scope;
mod spec;
