//! The only room that speaks SQL: the event log, its projections, queue, leases and search index.

pub mod row;
