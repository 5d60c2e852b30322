//! The plain tables in memory: tenants, chats, agents, values, marks.

use adjutant_core::id::{AgentId, ChatId, NotebookId, RunId, UserId, WorkspaceId};
use adjutant_core::label::Labelled;

use super::{Memory, State};
use crate::row::{AgentRow, ChatFilter, ChatRow, Doing, MarkRow, NotebookRow, Owner, Switch, UserRow, WorkspaceRow};
use crate::{Health, Readiness, StoreError};

fn taken(what: &str) -> StoreError {
    StoreError::Conflict(format!("this {what} is taken"))
}

fn knows_nobody() -> StoreError {
    StoreError::other("the simulated store knows nobody who signs in")
}

impl State {
    pub(super) fn assert_workspace(&self, workspace: WorkspaceId) -> Result<(), StoreError> {
        let there = self.workspaces.get(&workspace).is_some_and(|row| !row.is_closed());
        if there { Ok(()) } else { Err(StoreError::NotFound) }
    }

    /// A run that is still driven by this claim.
    pub(super) fn assert_owned(&self, Owner { run, node, epoch }: Owner) -> Result<(), StoreError> {
        let owned = self.runs.get(&run).is_some_and(|row| row.owner == Some(node) && row.epoch == epoch);
        if owned { Ok(()) } else { Err(StoreError::Stale { fenced: true }) }
    }

    /// Whether something can be done, so that it can be recorded as done.
    pub(super) fn may_do(&self, workspace: WorkspaceId, doing: &Doing) -> Result<(), StoreError> {
        match doing {
            Doing::SaveAgent(row) => self.may_save_agent(row, row.version.saturating_sub(1)),
            Doing::DeleteAgent(id, version) => {
                let current = self.agents.get(&(workspace, *id)).and_then(|versions| versions.last());
                let same = current.is_some_and(|row| row.version == *version);
                if same { Ok(()) } else { Err(StoreError::Stale { fenced: false }) }
            }
            Doing::RemoveRule(id) => self.rules.get(&(workspace, *id)).map(drop).ok_or(StoreError::NotFound),
            Doing::StartWaiting(run) => {
                let waits = self.waiting.get(&(workspace, *run)).is_some_and(|row| !row.failed);
                if waits { Ok(()) } else { Err(StoreError::NotFound) }
            }
            Doing::AddNotebook(row) => self.may_add_notebook(row),
            Doing::RenameNotebook(id, slug) => self.may_rename_notebook(workspace, *id, slug),
            Doing::RemoveNotebook(id) => self.may_remove_notebook(workspace, *id),
            Doing::CloseWorkspace(id) => self.may_close_workspace(*id),
            Doing::SaveWorkspace(row) => {
                let known = self.workspaces.get(&row.id).ok_or(StoreError::NotFound)?;
                if known.version + 1 == row.version { Ok(()) } else { Err(StoreError::Stale { fenced: false }) }
            }
            Doing::Halt(switch) => {
                let turns = switch.value.is_some() || self.instance.contains_key(&switch.key);
                if turns { Ok(()) } else { Err(StoreError::NotFound) }
            }
            // Money is looked at where it is taken.
            Doing::Spend(_) => Ok(()),
            Doing::Admit(_) | Doing::AddWorkspace(_) | Doing::Key(_) | Doing::ReplaceMaster(_) => Err(knows_nobody()),
        }
    }

    pub(super) fn carry_out(&mut self, workspace: WorkspaceId, doing: Doing) {
        match doing {
            Doing::SaveAgent(row) => self.put_agent(*row),
            Doing::DeleteAgent(id, _) => {
                self.agents.remove(&(workspace, id));
            }
            Doing::RemoveRule(id) => {
                self.rules.remove(&(workspace, id));
            }
            Doing::StartWaiting(run) => {
                self.waiting.remove(&(workspace, run));
            }
            Doing::AddNotebook(row) => {
                self.notebooks.insert((workspace, row.id), *row);
            }
            Doing::RenameNotebook(id, slug) => {
                self.notebooks.entry((workspace, id)).and_modify(|row| row.slug = slug);
                self.workspaces.entry(workspace).and_modify(|row| row.version += 1);
            }
            Doing::RemoveNotebook(id) => self.remove_notebook(workspace, id),
            Doing::CloseWorkspace(id) => self.close_workspace(id),
            Doing::SaveWorkspace(row) => {
                self.workspaces.insert(row.id, *row);
            }
            Doing::Halt(Switch { key, value }) => match value {
                Some(value) => drop(self.instance.insert(key, value)),
                None => drop(self.instance.remove(&key)),
            },
            // Money is taken elsewhere; the others were refused before.
            Doing::Spend(_) | Doing::Admit(_) | Doing::AddWorkspace(_) | Doing::Key(_) | Doing::ReplaceMaster(_) => {}
        }
    }

    fn may_save_agent(&self, row: &AgentRow, expected_version: u64) -> Result<(), StoreError> {
        self.assert_workspace(row.workspace)?;
        let current = self.agents.get(&(row.workspace, row.id)).map_or(0, |versions| versions.len() as u64);
        if current != expected_version {
            return Err(StoreError::Stale { fenced: false });
        }
        let mut others = self.agents.values().filter_map(|versions| versions.last());
        if others.any(|old| old.workspace == row.workspace && old.slug == row.slug && old.id != row.id) {
            return Err(taken("slug"));
        }
        Ok(())
    }

    fn may_add_notebook(&self, row: &NotebookRow) -> Result<(), StoreError> {
        self.assert_workspace(row.workspace)?;
        let mut others = self.notebooks.values().filter(|old| old.workspace == row.workspace);
        if others.any(|old| old.id == row.id || old.slug == row.slug) {
            return Err(taken("notebook"));
        }
        Ok(())
    }

    fn may_rename_notebook(&self, workspace: WorkspaceId, id: NotebookId, slug: &str) -> Result<(), StoreError> {
        let mut others = self.notebooks.values().filter(|row| row.workspace == workspace && row.id != id);
        match self.notebooks.contains_key(&(workspace, id)) {
            false => Err(StoreError::NotFound),
            true if others.any(|row| row.slug == slug) => Err(taken("notebook")),
            true => Ok(()),
        }
    }

    fn put_agent(&mut self, row: AgentRow) {
        let versions = self.agents.entry((row.workspace, row.id)).or_default();
        let created_by = versions.first().map_or(row.created_by, |first| first.created_by);
        versions.push(AgentRow { created_by, ..row });
    }
}

impl Memory {
    pub(crate) fn create_workspace(&self, row: &WorkspaceRow) -> Result<(), StoreError> {
        let mut state = self.state();
        if state.workspaces.values().any(|old| old.id == row.id || old.slug == row.slug) {
            return Err(taken("workspace"));
        }
        state.workspaces.insert(row.id, row.clone());
        Ok(())
    }

    pub(crate) fn workspaces(&self) -> Result<Vec<WorkspaceRow>, StoreError> {
        Ok(self.state().workspaces.values().cloned().collect())
    }

    pub(crate) fn workspace(&self, id: WorkspaceId) -> Result<Option<WorkspaceRow>, StoreError> {
        Ok(self.state().workspaces.get(&id).filter(|row| !row.is_closed()).cloned())
    }

    pub(crate) fn workspace_by_slug(&self, slug: &str) -> Result<Option<WorkspaceRow>, StoreError> {
        Ok(self.state().workspaces.values().find(|row| row.slug == slug && !row.is_closed()).cloned())
    }

    pub(crate) fn create_user(&self, row: &UserRow) -> Result<(), StoreError> {
        let mut state = self.state();
        if state.users.values().any(|old| old.id == row.id || old.name == row.name) {
            return Err(taken("user"));
        }
        state.users.insert(row.id, row.clone());
        Ok(())
    }

    pub(crate) fn users(&self) -> Result<Vec<UserRow>, StoreError> {
        Ok(self.state().users.values().cloned().collect())
    }

    pub(crate) fn user_by_name(&self, name: &str) -> Result<Option<UserRow>, StoreError> {
        Ok(self.state().users.values().find(|row| row.name == name).cloned())
    }

    pub(crate) fn create_notebook(&self, row: &NotebookRow) -> Result<(), StoreError> {
        let mut state = self.state();
        state.may_add_notebook(row)?;
        state.notebooks.insert((row.workspace, row.id), row.clone());
        Ok(())
    }

    pub(crate) fn notebooks(&self, workspace: WorkspaceId) -> Result<Vec<NotebookRow>, StoreError> {
        let state = self.state();
        Ok(state.notebooks.values().filter(|row| row.workspace == workspace).cloned().collect())
    }

    pub(crate) fn notebook(&self, workspace: WorkspaceId, id: NotebookId) -> Result<Option<NotebookRow>, StoreError> {
        Ok(self.state().notebooks.get(&(workspace, id)).cloned())
    }

    pub(crate) fn notebook_by_slug(
        &self,
        workspace: WorkspaceId,
        slug: &str,
    ) -> Result<Option<NotebookRow>, StoreError> {
        let state = self.state();
        Ok(state.notebooks.values().find(|row| row.workspace == workspace && row.slug == slug).cloned())
    }

    pub(crate) fn create_chat(&self, row: &ChatRow) -> Result<(), StoreError> {
        let mut state = self.state();
        state.assert_workspace(row.workspace)?;
        if state.chats.contains_key(&(row.workspace, row.id)) {
            return Err(taken("chat"));
        }
        state.chats.insert((row.workspace, row.id), row.clone());
        Ok(())
    }

    pub(crate) fn chat(&self, workspace: WorkspaceId, id: ChatId) -> Result<Option<ChatRow>, StoreError> {
        Ok(self.state().chats.get(&(workspace, id)).cloned())
    }

    pub(crate) fn chats(
        &self,
        workspace: WorkspaceId,
        filter: &ChatFilter,
        limit: u32,
    ) -> Result<Vec<ChatRow>, StoreError> {
        let wanted = |row: &&ChatRow| {
            row.workspace == workspace
                && filter.agent.is_none_or(|agent| row.agent == agent)
                && filter.before.is_none_or(|before| row.id < before)
                && filter.visible_to.is_none_or(|person| row.shared || row.owner == person)
        };
        Ok(self.state().chats.values().rev().filter(wanted).take(limit as usize).cloned().collect())
    }

    pub(crate) fn agent(&self, workspace: WorkspaceId, id: AgentId) -> Result<Option<AgentRow>, StoreError> {
        Ok(self.state().agents.get(&(workspace, id)).and_then(|versions| versions.last()).cloned())
    }

    pub(crate) fn agent_by_slug(&self, workspace: WorkspaceId, slug: &str) -> Result<Option<AgentRow>, StoreError> {
        let found = self.agents(workspace)?.into_iter().find(|row| row.slug == slug);
        Ok(found)
    }

    pub(crate) fn agents(&self, workspace: WorkspaceId) -> Result<Vec<AgentRow>, StoreError> {
        let state = self.state();
        let current = state.agents.values().filter_map(|versions| versions.last());
        Ok(current.filter(|row| row.workspace == workspace).cloned().collect())
    }

    pub(crate) fn agent_version(
        &self,
        workspace: WorkspaceId,
        id: AgentId,
        version: u64,
    ) -> Result<Option<AgentRow>, StoreError> {
        let state = self.state();
        let mut versions = state.agents.get(&(workspace, id)).into_iter().flatten();
        Ok(versions.find(|row| row.version == version).cloned())
    }

    pub(crate) fn agent_versions(&self, workspace: WorkspaceId, id: AgentId) -> Result<Vec<AgentRow>, StoreError> {
        let state = self.state();
        Ok(state.agents.get(&(workspace, id)).into_iter().flatten().rev().cloned().collect())
    }

    pub(crate) fn chat_by_alias(
        &self,
        workspace: WorkspaceId,
        owner: UserId,
        alias: &str,
    ) -> Result<Option<ChatRow>, StoreError> {
        let state = self.state();
        let named =
            |row: &&ChatRow| row.workspace == workspace && row.owner == owner && row.alias.as_deref() == Some(alias);
        Ok(state.chats.values().find(named).cloned())
    }

    pub(crate) fn change_chat(&self, row: &ChatRow) -> Result<bool, StoreError> {
        let mut state = self.state();
        let Some(chat) = state.chats.get_mut(&(row.workspace, row.id)) else { return Ok(false) };
        (chat.title, chat.shared) = (row.title.clone(), row.shared);
        (chat.model, chat.metadata) = (row.model.clone(), row.metadata.clone());
        Ok(true)
    }

    pub(crate) fn delete_chat(
        &self,
        workspace: WorkspaceId,
        id: ChatId,
        tip: Option<RunId>,
    ) -> Result<bool, StoreError> {
        let mut state = self.state();
        let same = state.chats.get(&(workspace, id)).is_some_and(|chat| chat.tip == tip);
        Ok(same && state.chats.remove(&(workspace, id)).is_some())
    }

    /// The simulation has no doors, so nobody signs in there.
    #[allow(clippy::unused_self, reason = "it stands beside the databases' own")]
    pub(crate) fn no_sign_in<T>(&self) -> Result<T, StoreError> {
        Err(knows_nobody())
    }

    pub(crate) fn kv_set(
        &self,
        workspace: WorkspaceId,
        agent: AgentId,
        key: &str,
        value: &Labelled,
        owner: Owner,
    ) -> Result<(), StoreError> {
        let mut state = self.state();
        state.assert_workspace(workspace)?;
        state.assert_owned(owner)?;
        state.kv.insert((workspace, agent, key.to_owned()), value.clone());
        Ok(())
    }

    pub(crate) fn kv_get(
        &self,
        workspace: WorkspaceId,
        agent: AgentId,
        key: &str,
    ) -> Result<Option<Labelled>, StoreError> {
        Ok(self.state().kv.get(&(workspace, agent, key.to_owned())).cloned())
    }

    pub(crate) fn kv_delete(
        &self,
        workspace: WorkspaceId,
        agent: AgentId,
        key: &str,
        owner: Owner,
    ) -> Result<bool, StoreError> {
        let mut state = self.state();
        state.assert_owned(owner)?;
        Ok(state.kv.remove(&(workspace, agent, key.to_owned())).is_some())
    }

    pub(crate) fn kv_list(
        &self,
        workspace: WorkspaceId,
        agent: AgentId,
        prefix: &str,
        limit: u32,
    ) -> Result<Vec<(String, Labelled)>, StoreError> {
        let state = self.state();
        let from = state.kv.range((workspace, agent, prefix.to_owned())..);
        let mine = from.take_while(|(key, _)| (key.0, key.1) == (workspace, agent) && key.2.starts_with(prefix));
        Ok(mine.take(limit as usize).map(|(key, value)| (key.2.clone(), value.clone())).collect())
    }

    pub(crate) fn marks(
        &self,
        workspace: WorkspaceId,
        notebook: NotebookId,
        path: &str,
    ) -> Result<Vec<MarkRow>, StoreError> {
        let folder = crate::marks::below(path).0;
        let wanted = |row: &MarkRow| row.notebook == notebook && (row.path == path || row.path.starts_with(&folder));
        let state = self.state();
        let mine = state.marks.iter().filter(|(of, row)| *of == workspace && wanted(row));
        Ok(mine.map(|(_, row)| row.clone()).collect())
    }

    pub(crate) fn clear_marks(
        &self,
        workspace: WorkspaceId,
        notebook: NotebookId,
        path: &str,
    ) -> Result<(), StoreError> {
        let kept = |of: WorkspaceId, row: &MarkRow| of != workspace || row.notebook != notebook || row.path != path;
        self.state().marks.retain(|(of, row)| kept(*of, row));
        Ok(())
    }

    pub(crate) fn meta_get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.state().instance.get(key).cloned())
    }

    pub(crate) fn meta_set_if_absent(&self, key: &str, value: &[u8]) -> Result<Vec<u8>, StoreError> {
        Ok(self.state().instance.entry(key.to_owned()).or_insert_with(|| value.to_vec()).clone())
    }

    pub(crate) fn meta_replace(&self, key: &str, value: &[u8]) -> Result<bool, StoreError> {
        Ok(self.state().instance.get_mut(key).map(|kept| *kept = value.to_vec()).is_some())
    }

    pub(crate) fn meta_set(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        self.state().instance.insert(key.to_owned(), value.to_vec());
        Ok(())
    }

    #[allow(clippy::unused_self, reason = "it stands beside the databases' own")]
    pub(crate) fn health(&self) -> Result<Health, StoreError> {
        let (version, journal) = ("sim".to_owned(), "none".to_owned());
        Ok(Health { backend: "memory", version, schema: 0, writable: true, journal, bytes: 0, sealed: false })
    }

    #[allow(clippy::unused_self, reason = "it stands beside the databases' own")]
    pub(crate) const fn readiness(&self) -> Result<Readiness, StoreError> {
        Ok(Readiness { backend: "memory", schema: 0, writable: true })
    }

    #[allow(clippy::unused_self, reason = "it stands beside the databases' own")]
    pub(crate) const fn check_integrity(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
