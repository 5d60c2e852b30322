//! The guard: the one place that answers allow, ask or deny for an effect.

pub mod path;
pub mod scope;
