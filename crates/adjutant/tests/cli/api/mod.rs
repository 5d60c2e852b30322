//! The HTTP API, over loopback, against the real server.

mod agents;
mod attach;
mod audit;
mod chats;
pub(crate) mod client;
mod compat;
mod contract;
mod crowd;
mod door;
mod embed;
mod events;
mod files;
mod flow;
mod frame;
mod halt;
mod inbox;
mod money;
mod once;
mod overload;
mod retention;
mod runs;
mod secrets;
pub(crate) mod traces;
mod walk;
mod workspaces;
