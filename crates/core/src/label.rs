//! Information-flow labels: what a run has seen. They are joined by "or" and never shrink (rule I1).

use serde::{Deserialize, Serialize};

/// Trust × sensitivity of a piece of content, or of everything a run has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Labels {
    /// It holds a tenant's own data.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
    /// It holds content that no member wrote.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
}

impl Labels {
    /// Neither private nor untrusted.
    pub const NONE: Self = Self { private: false, untrusted: false };
    /// A tenant's own data.
    pub const PRIVATE: Self = Self { private: true, untrusted: false };
    /// Content that no member wrote.
    pub const UNTRUSTED: Self = Self { private: false, untrusted: true };

    /// Both sets together.
    #[must_use]
    pub const fn join(self, other: Self) -> Self {
        Self { private: self.private || other.private, untrusted: self.untrusted || other.untrusted }
    }

    /// Whether every label of `other` is already here.
    #[must_use]
    pub const fn covers(self, other: Self) -> bool {
        (self.private || !other.private) && (self.untrusted || !other.untrusted)
    }

    /// Whether there is no label at all.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        !self.private && !self.untrusted
    }
}

/// A text with the labels of whatever wrote it, for what is kept longer than a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labelled {
    /// The text.
    pub text: String,
    /// What had been seen by whoever wrote it.
    pub labels: Labels,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joining_never_loses_a_label() {
        let all = [Labels::NONE, Labels::PRIVATE, Labels::UNTRUSTED, Labels::PRIVATE.join(Labels::UNTRUSTED)];
        for a in all {
            for b in all {
                assert!(a.join(b).covers(a) && a.join(b).covers(b));
                assert_eq!(a.join(b), b.join(a));
            }
        }
        assert!(!Labels::PRIVATE.covers(Labels::UNTRUSTED));
    }
}
