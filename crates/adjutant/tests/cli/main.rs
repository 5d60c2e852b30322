//! The real binary, as a person and a script use it: stories over one data directory and many processes.

mod agents;
mod house;
mod programs;
mod runs;
mod server;
mod terminal;
mod trouble;
