//! Whether a change may still be made: asked right before it is, because what led there may have taken a while.

use std::fmt;
use std::sync::Arc;

use super::FileError;

/// Whether whoever acts here may still do so. Without one, always.
#[derive(Clone, Default)]
pub struct Fence(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Fence" } else { "Fence (open)" })
    }
}

impl Fence {
    /// A fence that stays open while this says so.
    pub fn new(is_open: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(is_open)))
    }

    /// Whether it is open now.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.0.as_ref().is_none_or(|is_open| is_open())
    }

    /// Lets a change through, or fails when it comes too late.
    pub(super) fn pass(&self) -> Result<(), FileError> {
        if self.is_open() { Ok(()) } else { Err(FileError::TooLate) }
    }
}
