//! Walking a tree: with a list of folders still to visit instead of recursion, with limits, and never through a link,
//! because each folder is opened again from the root.

use adjutant_core::guard::path::NotePath;
use adjutant_core::guard::scope::Kind;

use super::{Entry, FileError, Notebook};

/// What the visitor of a walk wants next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visit {
    /// Go on; if the entry is a folder, into it.
    Enter,
    /// Go on, but not into this folder.
    Skip,
    /// End the walk here.
    Stop,
}

/// How a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Walked {
    /// Everything was seen.
    Whole,
    /// The limit was reached or the visitor stopped it: there may be more.
    Cut,
}

impl Notebook {
    /// Visits everything below a folder, in order of path within each folder, at most `most` entries. The depth is
    /// limited by what a path can name. A folder that disappears or cannot be read while the walk goes on is passed over.
    ///
    /// # Errors
    /// Fails when the folder it starts from cannot be read.
    pub fn walk(
        &self,
        from: &NotePath,
        most: usize,
        visit: &mut dyn FnMut(&Entry) -> Visit,
    ) -> Result<Walked, FileError> {
        let mut left = most;
        let mut folders = vec![from.clone()];
        let mut first = true;
        let mut ended = Walked::Whole;
        while let Some(folder) = folders.pop() {
            let listing = match self.list_at_most(&folder, left) {
                Ok(listing) => listing,
                Err(error) if first => return Err(error),
                Err(_) => continue,
            };
            first = false;
            left = left.saturating_sub(listing.entries.len() + listing.skipped);
            if listing.cut {
                ended = Walked::Cut;
            }
            let mut below = Vec::new();
            for entry in listing.entries {
                match visit(&entry) {
                    Visit::Stop => return Ok(Walked::Cut),
                    Visit::Enter if entry.kind == Kind::Dir => below.push(entry.path),
                    Visit::Enter | Visit::Skip => {}
                }
            }
            folders.extend(below.into_iter().rev());
        }
        Ok(ended)
    }
}
