//! An error with what it came from, for those who run the server: its own words say how to react, the last cause says why.

use std::error::Error;
use std::fmt;

/// The error and its causes, one after the other, as one line.
#[must_use]
pub const fn causes(error: &dyn Error) -> impl fmt::Display {
    Causes(error)
}

struct Causes<'a>(&'a dyn Error);

impl fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut next = self.0.source();
        while let Some(cause) = next {
            write!(f, ": {cause}")?;
            next = cause.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Told(&'static str, #[source] Option<Box<Told>>);

    #[test]
    fn every_cause_is_named_in_its_order() {
        let error =
            Told("the database failed", Some(Box::new(Told("no answer", Some(Box::new(Told("cut off", None)))))));
        assert_eq!(causes(&error).to_string(), "the database failed: no answer: cut off");
    }
}
