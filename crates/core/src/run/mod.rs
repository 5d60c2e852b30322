//! A run: commands are asked, events are recorded, the state is their fold, the step is what comes next.

pub mod chain;
pub mod command;
pub mod course;
pub mod event;
pub mod output;
mod settle;
pub mod state;
pub mod status;
pub mod step;
pub mod transcript;
mod window;
