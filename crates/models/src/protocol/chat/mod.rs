//! The chat completions protocol with streaming and tool calls, as the original speaks it and most others do.

mod body;
mod read;

pub(crate) use self::body::body;
pub(crate) use self::read::ChatReader;

#[cfg(test)]
mod tests;
