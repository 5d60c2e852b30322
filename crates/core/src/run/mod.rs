//! A run: commands are asked, events are recorded, the state is their fold, the step is what comes next.

pub mod chain;
