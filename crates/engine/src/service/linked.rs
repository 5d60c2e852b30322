//! Linked notebooks: a folder that a person has already, worked on where it is. Only the owner of the instance links one, and
//! never a folder that would give agents what Adjutant itself is made of.

use std::path::{Path, PathBuf};

use adjutant_core::audit::{Act, Deed};
use adjutant_core::guard::policy::{is_slug, slug_of};
use adjutant_core::id::{UserId, WorkspaceId};
use adjutant_core::run::event::Actor;
use adjutant_store::StoreError;
use adjutant_store::row::{Doing, NotebookRow};
use adjutant_tools::Notebook;

use crate::audit::{AuditLog, Done};
use crate::engine::Engine;
use crate::error::EngineError;

/// A folder of the host that is to become a notebook.
#[derive(Debug, Clone)]
pub struct NewLink {
    /// Where it is: an absolute path.
    pub folder: PathBuf,
    /// Its short name; made from the name of the folder when none is given.
    pub slug: Option<String>,
    /// What Adjutant itself keeps: its data directory, its settings, its key. The folder holds none of it, nor lies in it.
    pub own: Vec<PathBuf>,
}

impl Engine {
    /// Links a folder as a notebook, and records who did it, in one transaction. Whoever calls this has made sure that it is
    /// the owner of the instance who asks.
    ///
    /// # Errors
    /// When the folder cannot be one, is linked already, or the short name cannot be used.
    pub async fn link_notebook(
        &self,
        workspace: WorkspaceId,
        by: UserId,
        link: NewLink,
    ) -> Result<NotebookRow, EngineError> {
        let folder = linkable(&link)?;
        let slug = link.slug.unwrap_or_else(|| folder_slug(&folder));
        if !is_slug(&slug) {
            return Err(invalid(format!(
                "`{slug}` is no short name: it has up to 39 small letters, digits, - and _; name another"
            )));
        }
        for known in self.store().workspaces().await? {
            let mut rows = self.store().notebooks(known.id).await?.into_iter();
            if let Some(row) = rows.find(|row| row.linked.as_deref() == Some(&folder)) {
                return Err(EngineError::Taken {
                    what: "notebook on the folder",
                    name: format!("{folder} ({})", row.slug),
                });
            }
        }
        let row = NotebookRow {
            id: self.env().id(),
            workspace,
            slug,
            linked: Some(folder.clone()),
            created_at: self.env().now(),
        };
        let act = Act::new(
            Deed::SettingChanged,
            Some(Actor::User(by)),
            format!("notebook `{}` linked to {folder}", row.slug),
        )
        .with("notebook", row.id.to_string())
        .with("folder", folder);
        let done = Done { doing: Some(Doing::AddNotebook(Box::new(row.clone()))), ..Done::default() };
        match self.audit_done(AuditLog::Workspace(workspace), act, done).await {
            Err(EngineError::Store(StoreError::Conflict(_))) => {
                Err(EngineError::Taken { what: "notebook", name: row.slug })
            }
            other => other.map(|_| row),
        }
    }
}

/// The one true name of a folder that may be linked.
fn linkable(link: &NewLink) -> Result<String, EngineError> {
    let given = &link.folder;
    let shown = given.display();
    if !given.is_absolute() {
        return Err(invalid(format!("`{shown}` is no absolute path, such as /home/you/notes")));
    }
    let folder = given.canonicalize().map_err(|why| invalid(format!("`{shown}` cannot be linked: {why}")))?;
    if !folder.is_dir() {
        return Err(invalid(format!("`{shown}` is not a folder")));
    }
    if folder.parent().is_none() {
        return Err(invalid("the whole machine cannot be a notebook; name a folder".to_owned()));
    }
    for own in &link.own {
        let own = own.canonicalize().unwrap_or_else(|_| own.clone());
        if own.starts_with(&folder) || folder.starts_with(&own) {
            let own = own.display();
            return Err(invalid(format!(
                "`{shown}` cannot be linked: an agent there could reach what Adjutant itself keeps in {own}"
            )));
        }
    }
    Notebook::open(&folder).map_err(|why| invalid(format!("`{shown}` cannot be opened: {why}")))?;
    let name = folder.to_str().map(str::to_owned);
    name.ok_or_else(|| invalid(format!("`{shown}` cannot be linked: its name is no UTF-8")))
}

fn folder_slug(folder: &str) -> String {
    let name = Path::new(folder).file_name().and_then(|name| name.to_str());
    name.map(slug_of).filter(|slug| !slug.is_empty()).unwrap_or_else(|| "folder".to_owned())
}

fn invalid(why: String) -> EngineError {
    EngineError::Invalid(why)
}
