//! The first start: workspace `home` with notebook `welcome` and agent `guide`, owned by the first user.

use adjutant_core::audit::{Act, Deed};
use adjutant_core::id::{NotebookId, UserId, WorkspaceId};
use adjutant_core::run::event::Actor;
use adjutant_models::demo::sample_files;
use adjutant_store::StoreError;
use adjutant_store::row::{Doing, NotebookRow, UserRow, WorkspaceRow};
use adjutant_tools::FileError;

use crate::audit::{AuditLog, Done};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::service::Role;
use crate::service::templates::guide;

/// Set once the home workspace has everything it starts with.
const MADE: &str = "home";

/// Where a person without any set-up works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Home {
    /// The owner.
    pub user: UserId,
    /// The workspace `home`.
    pub workspace: WorkspaceId,
}

impl Engine {
    /// The home workspace; made, with its samples, at the first start. A start that died on the way is finished by the
    /// next one, and what a person removed later is not made again.
    ///
    /// # Errors
    /// When the store or the notebook's folder cannot be used.
    pub async fn home(&self) -> Result<Home, EngineError> {
        let user = self.first_user().await?;
        let workspace = self.home_workspace().await?;
        if self.store().meta_get(MADE).await?.is_none() {
            match self.furnish(workspace, user).await {
                // Another node begins at the same time and was faster; what it has not made yet is made now.
                Err(
                    EngineError::Store(StoreError::Conflict(_) | StoreError::Stale { .. }) | EngineError::Taken { .. },
                ) => self.furnish(workspace, user).await?,
                other => other?,
            }
            self.store().meta_set_if_absent(MADE, b"1").await?;
        }
        Ok(Home { user, workspace })
    }

    async fn first_user(&self) -> Result<UserId, EngineError> {
        // Whoever set the instance up may go by another name than the one it begins with.
        if let Some(owner) = self.store().owner().await? {
            return Ok(owner.id);
        }
        if let Some(user) = self.store().user_by_name("admin").await? {
            return Ok(user.id);
        }
        let row = UserRow { id: self.env().id(), name: "admin".to_owned(), created_at: self.env().now() };
        match self.store().create_user(&row).await {
            // Another node starts at the same time and was faster.
            Err(StoreError::Conflict(_)) => {
                let user = self.store().user_by_name("admin").await?;
                user.map(|user| user.id).ok_or_else(|| EngineError::not_found("user", "admin"))
            }
            other => Ok(other.map(|()| row.id)?),
        }
    }

    async fn home_workspace(&self) -> Result<WorkspaceId, EngineError> {
        if let Some(workspace) = self.store().workspace_by_slug("home").await? {
            return Ok(workspace.id);
        }
        let row = WorkspaceRow::new(self.env().id(), "home", "Home", self.env().now());
        match self.store().create_workspace(&row).await {
            Err(StoreError::Conflict(_)) => {
                let workspace = self.store().workspace_by_slug("home").await?;
                workspace.map(|workspace| workspace.id).ok_or_else(|| EngineError::not_found("workspace", "home"))
            }
            other => Ok(other.map(|()| row.id)?),
        }
    }

    /// Its first admin, notebook, samples and agent; each step can be done again.
    async fn furnish(&self, workspace: WorkspaceId, user: UserId) -> Result<(), EngineError> {
        self.store().put_member(workspace, user, Role::Admin.word(), self.env().now()).await?;
        let notebook = match self.store().notebook_by_slug(workspace, "welcome").await? {
            Some(notebook) => notebook.id,
            None => {
                let row = self.new_notebook(workspace, "welcome")?;
                self.store().create_notebook(&row).await?;
                row.id
            }
        };
        self.fill_samples(workspace, notebook).await?;
        if self.store().agent_by_slug(workspace, "guide").await?.is_none() {
            self.save_agent(workspace, Actor::User(user), guide(), 0).await?;
        }
        Ok(())
    }

    /// Makes a managed notebook with its folder.
    ///
    /// # Errors
    /// When the name is taken or the folder cannot be made.
    pub async fn create_notebook(
        &self,
        workspace: WorkspaceId,
        by: UserId,
        slug: &str,
    ) -> Result<NotebookId, EngineError> {
        let row = self.new_notebook(workspace, slug)?;
        let act = Act::new(Deed::SettingChanged, Some(Actor::User(by)), format!("notebook `{slug}` made"));
        let act = act.with("notebook", row.id.to_string());
        let done = Done { doing: Some(Doing::AddNotebook(Box::new(row.clone()))), ..Done::default() };
        match self.audit_done(AuditLog::Workspace(workspace), act, done).await {
            Err(EngineError::Store(StoreError::Conflict(_))) => {
                Err(EngineError::Invalid(format!("there is a notebook `{slug}` already")))
            }
            other => other.map(|_| row.id),
        }
    }

    /// Gives a notebook another short name. Agents whose scope names the old one do not reach it any more.
    ///
    /// # Errors
    /// When there is none, or the name is taken.
    pub async fn rename_notebook(
        &self,
        workspace: WorkspaceId,
        by: UserId,
        id: NotebookId,
        slug: &str,
    ) -> Result<NotebookRow, EngineError> {
        let missing = || EngineError::not_found("notebook", id);
        let row = self.store().notebook(workspace, id).await?.ok_or_else(missing)?;
        if row.slug == slug {
            return Ok(row);
        }
        let summary = format!("notebook `{}` renamed to `{slug}`", row.slug);
        let act = Act::new(Deed::SettingChanged, Some(Actor::User(by)), summary).with("notebook", id.to_string());
        let done = Done { doing: Some(Doing::RenameNotebook(id, slug.to_owned())), ..Done::default() };
        match self.audit_done(AuditLog::Workspace(workspace), act, done).await {
            Ok(_) => Ok(NotebookRow { slug: slug.to_owned(), ..row }),
            Err(EngineError::Store(StoreError::Conflict(_))) => {
                Err(EngineError::Taken { what: "notebook", name: slug.to_owned() })
            }
            Err(EngineError::Store(StoreError::NotFound)) => Err(missing()),
            Err(error) => Err(error),
        }
    }

    /// A managed notebook that is to be recorded. Its folder is there first: a row without one could not be opened.
    pub(super) fn new_notebook(&self, workspace: WorkspaceId, slug: &str) -> Result<NotebookRow, EngineError> {
        let (id, created_at) = (self.env().id(), self.env().now());
        let row = NotebookRow { id, workspace, slug: slug.to_owned(), linked: None, created_at };
        std::fs::create_dir_all(self.notebook_folder(row.id))
            .map_err(|why| EngineError::Notebook { name: slug.to_owned(), why: why.to_string() })?;
        Ok(row)
    }

    async fn fill_samples(&self, workspace: WorkspaceId, id: NotebookId) -> Result<(), EngineError> {
        let notebook = self.notebook(workspace, id).await?.files;
        for (path, text) in sample_files() {
            let failed = |why: String| EngineError::Notebook { name: "welcome".to_owned(), why };
            let path = adjutant_core::guard::path::NotePath::parse(path).map_err(|why| failed(why.to_string()))?;
            match notebook.create(&path, text.as_bytes()) {
                Ok(()) | Err(FileError::Exists) => {}
                Err(why) => return Err(failed(why.to_string())),
            }
        }
        Ok(())
    }
}
