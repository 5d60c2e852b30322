//! Files that a run wrote after it had read untrusted content: marked before they are written, and noticed when they are
//! read (rule I1). The mark is about the content, so a member who changes the file ends it.

use adjutant_core::content::Hash;
use adjutant_core::guard::arguments;
use adjutant_core::guard::judge::{keys, sources, touches};
use adjutant_core::guard::path::NotePath;
use adjutant_core::id::{CallId, NotebookId};
use adjutant_core::label::Labels;
use adjutant_core::run::event::CallStarted;
use adjutant_core::run::state::Call;
use adjutant_core::tool::{Category, Resource, Touch};

use crate::driver::Driver;
use crate::error::EngineError;
use crate::service::ATTACHMENTS;

/// What a call told of files.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Heard<'a> {
    /// What was asked for, taken from these files as they were then.
    Result(&'a [(String, Option<Hash>)]),
    /// Why it could not be done, in words that may quote what was met.
    Failure,
}

/// Whether a path lies where things from outside are kept.
pub(crate) fn is_brought(path: &NotePath) -> bool {
    format!("{path}/").starts_with(ATTACHMENTS)
}

impl Driver {
    /// Marks what a call is meant to leave behind, in the very append that announces it: nobody can read it unmarked. What is
    /// changed by a run that read nothing untrusted stays marked if it was: a part of it may be what it was.
    pub(crate) async fn mark_intended(&mut self, started: &CallStarted) {
        if self.state().labels.untrusted || self.changes_marked(started).await || self.is_made_of_marked(started).await
        {
            let intended = started.intended.iter().flat_map(|target| &target.0);
            let contents: Vec<_> = intended.filter_map(|(path, hash)| Some((path.clone(), (*hash)?))).collect();
            self.mark(contents);
        }
    }

    async fn changes_marked(&self, started: &CallStarted) -> bool {
        let Some(notebook) = self.state().start.as_ref().and_then(|start| start.notebook) else { return false };
        for (path, before) in &started.target.0 {
            let Some(before) = before else { continue };
            match self.engine.store().marks(self.log.workspace, notebook, path).await {
                Ok(marks) if !marks.iter().any(|mark| mark.path == *path && mark.hash == *before) => {}
                Ok(_) => return true,
                Err(error) => {
                    tracing::warn!(run = %self.log.run, %error, "marks cannot be read; what is changed stays marked");
                    return true;
                }
            }
        }
        false
    }

    /// Whether a file that goes into what the call writes is marked, such as a template.
    async fn is_made_of_marked(&self, started: &CallStarted) -> bool {
        let Some(notebook) = self.state().start.as_ref().and_then(|start| start.notebook) else { return false };
        let tool = self.engine.tools().get(&started.tool);
        let arguments = arguments::parse(&started.arguments.text());
        let sources = tool.zip(arguments.ok()).map(|(tool, arguments)| sources(tool.spec(), &arguments));
        for source in sources.unwrap_or_default() {
            match self.is_marked(notebook, source.as_str()).await {
                Ok(false) => {}
                Ok(true) => return true,
                Err(error) => {
                    tracing::warn!(run = %self.log.run, %error, "marks cannot be read; what is made counts as untrusted");
                    return true;
                }
            }
        }
        false
    }

    /// Marks what a call left behind: what its tool did not say beforehand is marked with its result.
    pub(crate) fn mark_made(&mut self, labels: Labels, resources: &[Resource]) {
        if self.state().labels.join(labels).untrusted {
            let files = resources.iter().filter(|made| made.kind == "file");
            self.mark(files.filter_map(|made| Some((made.path.clone(), made.after?))).collect());
        }
    }

    fn mark(&mut self, contents: Vec<(String, Hash)>) {
        let Some(notebook) = self.state().start.as_ref().and_then(|start| start.notebook) else { return };
        for (path, hash) in contents.into_iter().filter(|(path, _)| path.starts_with('/')) {
            self.log.mark(notebook, path, hash);
        }
    }

    /// What hearing of files adds: untrusted, if one of them is marked. Also where the run is so already: what is heard is shown
    /// to the model as what it is, each time (rule I3). What cannot be found out counts as marked, because a
    /// run may always be more careful than it has to be.
    pub(crate) async fn heard_labels(&self, call: &CallId, heard: Heard<'_>) -> Labels {
        match self.has_heard_marked(call, heard).await {
            Ok(false) => Labels::NONE,
            Ok(true) => Labels::UNTRUSTED,
            Err(error) => {
                tracing::warn!(run = %self.log.run, %error, "marks cannot be read; what was read counts as untrusted");
                Labels::UNTRUSTED
            }
        }
    }

    async fn has_heard_marked(&self, id: &CallId, heard: Heard<'_>) -> Result<bool, EngineError> {
        let Some(notebook) = self.state().start.as_ref().and_then(|start| start.notebook) else { return Ok(false) };
        let Some(call) = self.state().call(id) else { return Ok(false) };
        let reads = |tool: &std::sync::Arc<dyn adjutant_tools::Tool>| tool.spec().category == Category::FileRead;
        let reads = self.engine.tools().get(&call.tool).is_some_and(reads);
        let read = match heard {
            Heard::Result(_) if !reads => return Ok(false),
            Heard::Result(read) => read,
            // What changes a file tells nothing of what is in it, unless it says why it could not.
            Heard::Failure => &[],
        };
        if self.was_marked(notebook, read).await? {
            return Ok(true);
        }
        let mut paths: Vec<_> = self.touches(call).into_iter().map(|touch| touch.path).collect();
        if reads && paths.is_empty() {
            // A search names no path: it looks through everything.
            paths.push("/".to_owned());
            let files = self.open_notebook(notebook).await?.files;
            let folder = NotePath::parse(ATTACHMENTS).ok();
            let brought = tokio::task::spawn_blocking(move || {
                folder.is_some_and(|folder| files.list(&folder).is_ok_and(|listing| !listing.entries.is_empty()))
            });
            if brought.await.unwrap_or(true) {
                return Ok(true);
            }
        }
        for path in paths {
            // What was brought from outside is nobody's own, whoever kept it there.
            if NotePath::parse(&path).is_ok_and(|path| is_brought(&path)) || self.is_marked(notebook, &path).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether one of these files was marked as it was read: it may be another by now, or gone (rule F3). Of one that nobody
    /// has the hash of, any mark counts.
    async fn was_marked(&self, notebook: NotebookId, read: &[(String, Option<Hash>)]) -> Result<bool, EngineError> {
        for (path, hash) in read {
            let marks = self.engine.store().marks(self.log.workspace, notebook, path).await?;
            if marks.iter().any(|mark| mark.path == *path && hash.is_none_or(|hash| mark.hash == hash)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the content of a file, or of one below a folder, is marked.
    async fn is_marked(&self, notebook: NotebookId, path: &str) -> Result<bool, EngineError> {
        let marks = self.engine.store().marks(self.log.workspace, notebook, path).await?;
        if marks.is_empty() {
            return Ok(false);
        }
        let files = self.open_notebook(notebook).await?.files;
        let there = move |path: &str, hash| {
            let state = NotePath::parse(path).ok().and_then(|path| files.state(&path).ok());
            state.is_some_and(|state| state.hash() == Some(hash))
        };
        let found = tokio::task::spawn_blocking(move || marks.iter().any(|mark| there(&mark.path, mark.hash)));
        // A look that failed found nothing out.
        Ok(found.await.unwrap_or(true))
    }

    /// What a call may meet others on: its paths, and what it keeps.
    pub(crate) fn meets(&self, call: &Call) -> Vec<Touch> {
        let mut met = self.touches(call);
        let tool = self.engine.tools().get(&call.tool);
        if let Some((tool, arguments)) = tool.zip(arguments::parse(&call.arguments.text()).ok()) {
            met.extend(keys(tool.spec(), &arguments));
        }
        met
    }

    /// The paths that a call reads or changes.
    pub(crate) fn touches(&self, call: &Call) -> Vec<Touch> {
        let tool = self.engine.tools().get(&call.tool);
        let arguments = arguments::parse(&call.arguments.text());
        let Some((tool, arguments)) = tool.zip(arguments.ok()) else { return Vec::new() };
        let mut touched = touches(tool.spec(), &arguments);
        let sources = sources(tool.spec(), &arguments).into_iter();
        touched.extend(sources.map(|path| Touch { path: path.as_str().to_owned(), changes: false }));
        touched
    }
}
