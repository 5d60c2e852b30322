//! The stories, by what they are about.

mod approvals;
