//! The files of a notebook, for people: through the same confined layer as an agent's, recorded before they are changed, with
//! what was there before kept. What no agent may touch (P14) is not served to people either.

mod history;

pub use history::{NoteAuthor, NoteChange, NoteHistory};

use std::sync::Arc;

use adjutant_core::audit::{Act, Deed};
use adjutant_core::content::Hash;
use adjutant_core::guard::path::NotePath;
use adjutant_core::guard::scope::{Caps, FolderEntry, Kind, Scope, ScopeSpec};
use adjutant_core::id::{NotebookId, UserId, WorkspaceId};
use adjutant_core::limits::KEPT_FILE_BYTES;
use adjutant_core::run::event::Actor;
use adjutant_store::row::{Block, MarkRow};
use adjutant_tools::notebook::{Entry, FileContent, Listing, State};
use adjutant_tools::{FileError, Freshness, HandleError, Hit, refresh};

use crate::audit::{AuditLog, Done};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::handles;
use crate::marks::is_brought;

/// A place in a notebook of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotePlace {
    /// The tenant.
    pub workspace: WorkspaceId,
    /// The notebook.
    pub notebook: NotebookId,
    /// The path in it.
    pub path: NotePath,
}

/// Which state of a file somebody means to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meant {
    /// Nothing may be there.
    Absent,
    /// This content.
    Content(Hash),
    /// Whatever is there.
    Whatever,
}

/// A file that was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedNote {
    /// What is there now.
    pub entry: Entry,
    /// The hash of its content.
    pub hash: Hash,
    /// Whether nothing was there before.
    pub is_new: bool,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotesFound {
    /// The files, best first.
    pub hits: Vec<Hit>,
    /// Whether recent changes may be missing.
    pub behind: bool,
}

impl NotePlace {
    fn failed(&self, why: FileError) -> EngineError {
        EngineError::File { path: self.path.to_string(), why }
    }

    fn refuse_sealed(&self) -> Result<(), EngineError> {
        if self.path.is_sealed() { Err(self.failed(FileError::NotFound)) } else { Ok(()) }
    }

    fn refuse_fixed(&self) -> Result<(), EngineError> {
        self.refuse_sealed()?;
        if self.path.is_read_only() { Err(self.failed(FileError::Reserved)) } else { Ok(()) }
    }

    fn act(&self, deed: Deed, user: UserId) -> Act {
        Act::new(deed, Some(Actor::User(user)), self.path.to_string())
            .with("notebook", self.notebook.to_string())
            .with("path", self.path.to_string())
    }
}

impl Engine {
    async fn at<T: Send + 'static>(
        &self,
        place: &NotePlace,
        job: impl FnOnce(&adjutant_tools::Notebook, &NotePath) -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, EngineError> {
        let files = self.notebook(place.workspace, place.notebook).await?.files;
        let path = place.path.clone();
        files.run(move |notebook| job(notebook, &path)).await.map_err(|why| place.failed(why))
    }

    /// What is known of a file or folder without reading it.
    ///
    /// # Errors
    /// When nothing is there that may be seen.
    pub async fn note(&self, place: &NotePlace) -> Result<Entry, EngineError> {
        place.refuse_sealed()?;
        self.at(place, |notebook, path| notebook.metadata(path)).await
    }

    /// What a folder holds.
    ///
    /// # Errors
    /// When there is no such folder.
    pub async fn list_notes(&self, place: &NotePlace) -> Result<Listing, EngineError> {
        place.refuse_sealed()?;
        let mut listing = self.at(place, |notebook, path| notebook.list(path)).await?;
        listing.entries.retain(|entry| !entry.path.is_sealed());
        Ok(listing)
    }

    /// The content of a file.
    ///
    /// # Errors
    /// When there is no such file, or it is too large.
    pub async fn read_note(&self, place: &NotePlace) -> Result<FileContent, EngineError> {
        place.refuse_sealed()?;
        self.at(place, |notebook, path| notebook.read_at_most(path, KEPT_FILE_BYTES)).await
    }

    /// Whether a content of a file was written by a run that had read untrusted content.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn is_note_untrusted(&self, place: &NotePlace, hash: Hash) -> Result<bool, EngineError> {
        let marks = self.store().marks(place.workspace, place.notebook, place.path.as_str()).await?;
        Ok(marks.iter().any(|mark| mark.path == place.path.as_str() && mark.hash == hash))
    }

    /// Makes or replaces a file. A person's act: it is recorded first, with what was there before, and it ends the mark of
    /// untrusted content, because they vouch for what they save.
    ///
    /// # Errors
    /// When something else is there than was meant, or it cannot be written; then nothing is changed.
    pub async fn save_note(
        &self,
        place: &NotePlace,
        user: UserId,
        bytes: Vec<u8>,
        meant: Meant,
    ) -> Result<SavedNote, EngineError> {
        place.refuse_fixed()?;
        let before = self.meant(place, meant).await?;
        let (after, was) = (Hash::of(&bytes), before.as_ref().map(|content| content.hash));
        let act = place.act(Deed::FileSaved, user).with("before", word(was)).with("after", word(Some(after)));
        self.recorded_change(place, user, act, before, move |notebook, path| match was {
            Some(was) if was == after => Ok(()),
            Some(was) => notebook.replace(path, &bytes, was).map(drop),
            None => notebook.create(path, &bytes),
        })
        .await?;
        self.store().clear_marks(place.workspace, place.notebook, place.path.as_str()).await?;
        Ok(SavedNote { entry: self.note(place).await?, hash: after, is_new: was.is_none() })
    }

    /// Makes an empty folder.
    ///
    /// # Errors
    /// When something is there already.
    pub async fn create_folder(&self, place: &NotePlace, user: UserId) -> Result<Entry, EngineError> {
        place.refuse_fixed()?;
        let act = place.act(Deed::FileSaved, user).with("folder", true);
        self.recorded_change(place, user, act, None, |notebook, path| notebook.create_folder(path)).await?;
        self.note(place).await
    }

    /// Deletes a file, or an empty folder.
    ///
    /// # Errors
    /// When something else is there than was meant, or the folder holds something.
    pub async fn delete_note(&self, place: &NotePlace, user: UserId, meant: Meant) -> Result<(), EngineError> {
        place.refuse_fixed()?;
        if self.note(place).await?.kind == Kind::Dir {
            let act = place.act(Deed::FileDeleted, user).with("folder", true);
            return self.recorded_change(place, user, act, None, |notebook, path| notebook.delete_folder(path)).await;
        }
        let before = self.meant(place, meant).await?.ok_or_else(|| place.failed(FileError::NotFound))?;
        let was = before.hash;
        let act = place.act(Deed::FileDeleted, user).with("before", word(Some(was)));
        self.recorded_change(place, user, act, Some(before), move |notebook, path| notebook.delete(path, was).map(drop))
            .await
    }

    /// Moves a file to where nothing is. One that is cut off in between leaves both.
    ///
    /// # Errors
    /// When there is no such file, or something is where it shall go.
    pub async fn move_note(
        &self,
        place: &NotePlace,
        user: UserId,
        to: NotePath,
        meant: Meant,
    ) -> Result<SavedNote, EngineError> {
        place.refuse_fixed()?;
        let goal = NotePlace { path: to.clone(), ..place.clone() };
        goal.refuse_fixed()?;
        let before = self.meant(place, meant).await?.ok_or_else(|| place.failed(FileError::NotFound))?;
        if self.is_note_untrusted(place, before.hash).await? {
            let why =
                format!("{} holds what a run wrote from untrusted content; look at it and save it first", place.path);
            return Err(EngineError::Invalid(why));
        }
        let was = before.hash;
        let act = place.act(Deed::FileMoved, user).with("to", to.to_string()).with("before", word(Some(was)));
        let bytes = before.bytes.clone();
        // Where it came from said what it is; where it goes, only a mark does.
        let mark = MarkRow { notebook: place.notebook, path: to.to_string(), hash: was };
        let marks = if is_brought(&place.path) && !is_brought(&to) { vec![mark] } else { Vec::new() };
        let job = move |notebook: &adjutant_tools::Notebook, path: &NotePath| {
            notebook.create(&to, &bytes)?;
            notebook.delete(path, was).map(drop)
        };
        self.recorded_change_marked(place, user, act, (Some(before), marks), job).await?;
        Ok(SavedNote { entry: self.note(&goal).await?, hash: was, is_new: true })
    }

    /// Searches the names and the text of a notebook; whatever is called like it comes first.
    ///
    /// # Errors
    /// When the index or the notebook cannot be used.
    pub async fn search_notes(
        &self,
        workspace: WorkspaceId,
        notebook: NotebookId,
        query: &str,
        limit: usize,
    ) -> Result<NotesFound, EngineError> {
        let open = self.notebook(workspace, notebook).await?;
        let index = handles::index(self.store(), workspace, Some(notebook));
        let unusable = |error: HandleError| EngineError::Notebook { name: open.slug.clone(), why: error.to_string() };
        let fresh = refresh(index.as_ref(), &everything(), self.env().now(), &open.files).await.map_err(unusable)?;
        let paths = index.state().await.map_err(unusable)?.into_keys();
        let held = index.search(query, limit).await.map_err(unusable)?;
        let seen = |hit: &Hit| NotePath::parse(&hit.path).is_ok_and(|path| !path.is_sealed());
        let hits = called_like(query, paths, held).into_iter().filter(seen).take(limit).collect();
        Ok(NotesFound { hits, behind: fresh == Freshness::Behind })
    }

    /// What is there, if it is what was meant; none where nothing is.
    async fn meant(&self, place: &NotePlace, meant: Meant) -> Result<Option<FileContent>, EngineError> {
        let state = self.at(place, |notebook, path| notebook.state_at_most(path, KEPT_FILE_BYTES)).await?;
        match (state, meant) {
            (State::Folder, _) => Err(place.failed(FileError::IsFolder)),
            (State::File(_), Meant::Absent) => Err(place.failed(FileError::Exists)),
            (State::File(content), Meant::Content(hash)) if content.hash != hash => {
                Err(place.failed(FileError::Changed))
            }
            (State::File(content), Meant::Content(_) | Meant::Whatever) => Ok(Some(content)),
            (State::Absent, Meant::Absent | Meant::Whatever) => Ok(None),
            (State::Absent, Meant::Content(_)) => Err(place.failed(FileError::NotFound)),
        }
    }

    async fn recorded_change(
        &self,
        place: &NotePlace,
        user: UserId,
        act: Act,
        before: Option<FileContent>,
        job: impl FnOnce(&adjutant_tools::Notebook, &NotePath) -> Result<(), FileError> + Send + 'static,
    ) -> Result<(), EngineError> {
        self.recorded_change_marked(place, user, act, (before, Vec::new()), job).await
    }

    /// Records a change with what is there before and what is marked by it, then makes it; one that was not made is recorded,
    /// too.
    async fn recorded_change_marked(
        &self,
        place: &NotePlace,
        user: UserId,
        act: Act,
        (before, marks): (Option<FileContent>, Vec<MarkRow>),
        job: impl FnOnce(&adjutant_tools::Notebook, &NotePath) -> Result<(), FileError> + Send + 'static,
    ) -> Result<(), EngineError> {
        let log = AuditLog::Workspace(place.workspace);
        let keepsake = before.map(|content| Block { hash: content.hash, bytes: content.bytes });
        let done = Done { blocks: keepsake.into_iter().collect(), marks, ..Done::default() };
        let recorded = self.audit_done(log, act, done).await?;
        match self.at(place, job).await {
            // It is there; only a power cut could still take it away.
            Ok(()) | Err(EngineError::File { why: FileError::Unconfirmed(_), .. }) => Ok(()),
            Err(error) => {
                let kept = place.act(Deed::FileKept, user).with("of", recorded.seq).with("why", error.to_string());
                self.audit(log, kept).await?;
                Err(error)
            }
        }
    }
}

/// What a search found in texts, after what bears all of its words in its name.
fn called_like(query: &str, paths: impl Iterator<Item = String>, held: Vec<Hit>) -> Vec<Hit> {
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let is_called = |path: &str| {
        let path = path.to_lowercase();
        words.iter().all(|word| path.contains(word))
    };
    let snippet_of = |path: &str| held.iter().find(|hit| hit.path == path).map(|hit| hit.snippet.clone());
    let mut named: Vec<Hit> = paths
        .filter(|path| is_called(path))
        .map(|path| Hit { snippet: snippet_of(&path).unwrap_or_default(), path })
        .collect();
    // The shortest is the nearest to what was typed.
    named.sort_by_key(|hit| hit.path.len());
    let only_held = held.into_iter().filter(|hit| !is_called(&hit.path));
    named.extend(only_held);
    named
}

/// The hash as it is recorded; null for nothing.
fn word(hash: Option<Hash>) -> Option<String> {
    hash.map(|hash| hash.to_string())
}

/// What a member may read: everything that is not sealed.
fn everything() -> Arc<Scope> {
    let all = ScopeSpec {
        notebooks: Some(vec!["*".to_owned()]),
        folders: Some(vec![FolderEntry::Pattern("/".to_owned())]),
        file_types: None,
        operations: None,
    };
    Arc::new(Scope::compile(&all, Caps { read: true, ..Caps::default() }))
}
