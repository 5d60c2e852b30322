//! The HTTP API, over loopback, against the real server.

pub(crate) mod client;
mod door;
mod events;
mod files;
mod frame;
mod inbox;
mod once;
mod runs;
mod walk;
