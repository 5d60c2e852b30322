//! The run machine and the guard's verdict, through their public door: given these events, this is the step.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that unwraps says what it expects")]

mod approvals;
mod calls;
mod commands;
mod doubt;
mod given;
mod judge;
mod limits;
mod money;
mod permits;
mod plane;
mod play;
mod properties;
mod status;
mod stored;
mod transcript;
mod turns;
mod usual;
