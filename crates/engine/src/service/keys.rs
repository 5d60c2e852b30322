//! Keys of providers that people bring: kept sealed, shown by their last four characters, and used in a fixed order.

use std::sync::Arc;

use adjutant_core::audit::{Act, Deed};
use adjutant_core::guard::policy::AgentProblem;
use adjutant_core::id::{AgentId, KeyId, UserId, WorkspaceId};
use adjutant_core::run::event::Actor;
use adjutant_models::{ApiKey, BroughtKey, Model, ModelError};
use adjutant_store::row::{Doing, KeyChange, ProviderKeyRow};
use adjutant_store::{MasterKey, StoreError};
use secrecy::{ExposeSecret, SecretString};

use crate::audit::{AuditLog, Done};
use crate::engine::Engine;
use crate::error::EngineError;

/// Bytes of a key: longer ones are files, not keys.
const KEY_BYTES: usize = 4096;
/// Characters of a key that are shown.
const HINT: usize = 4;
/// Keys of a workspace: all of them are looked through for each call.
const KEYS: usize = 200;

/// Whose a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOwner {
    /// The workspace's: every run in it may use it.
    Workspace,
    /// A person's: the runs they start use it.
    Person(UserId),
    /// An agent's: its runs use it.
    Agent(AgentId),
}

impl KeyOwner {
    fn columns(self, workspace: WorkspaceId) -> (String, String) {
        match self {
            Self::Workspace => ("workspace".to_owned(), workspace.to_string()),
            Self::Person(id) => ("person".to_owned(), id.to_string()),
            Self::Agent(id) => ("agent".to_owned(), id.to_string()),
        }
    }
}

/// A key to be kept. Has no `Debug`, and its value is wiped once it is sealed: it must not get into a log or a core file.
pub struct NewKey {
    /// Whose it is.
    pub owner: KeyOwner,
    /// The provider it is for, by its name here.
    pub provider: String,
    /// What people call it.
    pub name: String,
    /// The key itself.
    pub value: SecretString,
    /// The hosts it may go to; that of the provider when empty.
    pub hosts: Vec<String>,
}

/// Whether everybody's runs in its workspace may be made with a key.
pub(crate) fn is_everybodys(row: &ProviderKeyRow) -> bool {
    row.kind == "workspace"
}

/// Whether a run of an agent for a person may be made with a key.
pub(crate) fn is_usable(row: &ProviderKeyRow, agent: Option<AgentId>, person: UserId) -> bool {
    match row.kind.as_str() {
        "agent" => agent.is_some_and(|agent| row.subject == agent.to_string()),
        "person" => row.subject == person.to_string(),
        _ if is_everybodys(row) => true,
        // A kind that a newer version made: not ours to use.
        _ => false,
    }
}

impl Engine {
    /// Keeps a key.
    ///
    /// # Errors
    /// When it is no key, the provider takes none, or its name is taken.
    pub async fn add_key(
        &self,
        workspace: WorkspaceId,
        by: UserId,
        new: NewKey,
    ) -> Result<ProviderKeyRow, EngineError> {
        let value = checked(new.value.expose_secret())?;
        let named = (1..=100).contains(&new.name.trim().chars().count());
        if !named {
            return Err(EngineError::Invalid("give the key a name of 1 to 100 characters".to_owned()));
        }
        let Some(host) = self.models().host(&new.provider) else {
            return Err(EngineError::Invalid(format!("there is no provider `{}` that takes a key", new.provider)));
        };
        if self.store().provider_keys(workspace).await?.len() >= KEYS {
            return Err(EngineError::Invalid(format!("a workspace keeps at most {KEYS} keys")));
        }
        let hosts = if new.hosts.is_empty() { vec![host] } else { new.hosts };
        if !hosts.iter().all(|host| is_host(host)) {
            return Err(EngineError::Invalid("a host is a name such as api.openai.com".to_owned()));
        }
        let (kind, subject) = new.owner.columns(workspace);
        let row = ProviderKeyRow {
            id: self.env().id(),
            workspace,
            kind,
            subject,
            provider: new.provider,
            name: new.name.trim().to_owned(),
            hint: hint(value),
            hosts,
            created_by: by,
            created_at: self.env().now(),
            rotated_at: None,
        };
        let sealed = self.store().seal_key(&row, value.as_bytes()).await?;
        self.change_key(by, "added", &row, KeyChange::Add(Box::new(row.clone()), sealed)).await?;
        Ok(row)
    }

    /// Gives a key another value; its id, its uses and its budget stay.
    ///
    /// # Errors
    /// When there is no such key, or the value is none.
    pub async fn rotate_key(
        &self,
        workspace: WorkspaceId,
        by: UserId,
        id: KeyId,
        value: &SecretString,
    ) -> Result<ProviderKeyRow, EngineError> {
        let value = checked(value.expose_secret())?;
        let known = self.key_row(workspace, id).await?;
        let row = ProviderKeyRow { hint: hint(value), rotated_at: Some(self.env().now()), ..known };
        let sealed = self.store().seal_key(&row, value.as_bytes()).await?;
        self.change_key(by, "rotated", &row, KeyChange::Rotate(Box::new(row.clone()), sealed)).await?;
        Ok(row)
    }

    /// Forgets a key.
    ///
    /// # Errors
    /// When there is none.
    pub async fn remove_key(&self, workspace: WorkspaceId, by: UserId, id: KeyId) -> Result<(), EngineError> {
        let row = self.key_row(workspace, id).await?;
        self.change_key(by, "removed", &row, KeyChange::Remove(id)).await
    }

    /// Gives the instance another master key: each data key is wrapped anew, and that is recorded, in one transaction. This
    /// engine keeps the old one and has to be closed. Says how many data keys there are.
    ///
    /// # Errors
    /// When a node is alive, or nothing is sealed.
    pub async fn replace_master_key(&self, by: UserId, new: &MasterKey) -> Result<usize, EngineError> {
        let keys = self.store().rewrap(new).await?;
        let count = keys.count();
        let act = Act::new(Deed::SettingChanged, Some(Actor::User(by)), "the master key was replaced")
            .with("data_keys", count);
        let done = Done { doing: Some(Doing::ReplaceMaster(keys)), ..Done::default() };
        self.audit_done(AuditLog::Instance, act, done).await?;
        Ok(count)
    }

    /// A key without its value.
    ///
    /// # Errors
    /// When there is none.
    pub async fn key_row(&self, workspace: WorkspaceId, id: KeyId) -> Result<ProviderKeyRow, EngineError> {
        let rows = self.store().provider_keys(workspace).await?;
        rows.into_iter().find(|row| row.id == id).ok_or_else(|| EngineError::not_found("key", id))
    }

    /// The key that a call of a provider is made with: the one that is named for the run or by its agent, the agent's, the
    /// person's, the workspace's; none is the operator's. Where the key that is named for this provider may not be used, or a key
    /// that is named is gone, nobody else pays in its place. One for another provider counts for that one alone.
    pub(crate) async fn key_for(
        &self,
        workspace: WorkspaceId,
        agent: Option<AgentId>,
        person: UserId,
        named: &[Option<KeyId>],
        model: &str,
    ) -> Result<Option<KeyId>, EngineError> {
        let provider = model.split('/').next().unwrap_or_default();
        if self.models().host(provider).is_none() {
            return Ok(None);
        }
        let rows = self.store().provider_keys(workspace).await?;
        for id in named.iter().flatten() {
            match rows.iter().find(|row| row.id == *id) {
                Some(row) if row.provider != provider => {}
                Some(row) if is_usable(row, agent, person) => return Ok(Some(*id)),
                Some(_) | None => return Err(EngineError::Model(unusable(*id))),
            }
        }
        let of = |owner: KeyOwner| {
            let (kind, subject) = owner.columns(workspace);
            let mine = |row: &&ProviderKeyRow| row.provider == provider && row.kind == kind && row.subject == subject;
            rows.iter().filter(mine).map(|row| row.id).max()
        };
        let order = [agent.map(KeyOwner::Agent), Some(KeyOwner::Person(person)), Some(KeyOwner::Workspace)];
        Ok(order.into_iter().flatten().find_map(of))
    }

    /// Whether a key that is named for a run may be used for it.
    ///
    /// # Errors
    /// When it may not, or is none.
    pub(crate) async fn check_key(
        &self,
        workspace: WorkspaceId,
        agent: AgentId,
        person: UserId,
        key: Option<KeyId>,
    ) -> Result<(), EngineError> {
        let Some(id) = key else { return Ok(()) };
        let rows = self.store().provider_keys(workspace).await?;
        let usable = rows.iter().any(|row| row.id == id && is_usable(row, Some(agent), person));
        if usable { Ok(()) } else { Err(EngineError::not_found("key", id)) }
    }

    /// Whether a key that an agent names may ever be used by it: by somebody's runs, if not by everybody's.
    ///
    /// # Errors
    /// [`EngineError::InvalidAgent`] when it may not, or is none.
    pub(crate) async fn check_agent_key(
        &self,
        workspace: WorkspaceId,
        agent: AgentId,
        key: Option<KeyId>,
    ) -> Result<(), EngineError> {
        let Some(id) = key else { return Ok(()) };
        let rows = self.store().provider_keys(workspace).await?;
        let of_another = |row: &ProviderKeyRow| row.kind == "agent" && row.subject != agent.to_string();
        if rows.iter().any(|row| row.id == id && !of_another(row)) {
            return Ok(());
        }
        let detail = format!("there is no key `{id}` that it could use");
        Err(EngineError::InvalidAgent(vec![AgentProblem { field: "provider_key_id".to_owned(), detail }]))
    }

    /// A model, called with a stored key where there is one. The value is opened here and goes to its hosts and nowhere else.
    ///
    /// # Errors
    /// [`EngineError::Model`] when there is no such model, or the key is not for it; those of the store when nobody can look at the
    /// moment, which says nothing about the model.
    pub(crate) async fn keyed_model(
        &self,
        workspace: WorkspaceId,
        name: &str,
        key: Option<KeyId>,
    ) -> Result<Arc<dyn Model>, EngineError> {
        let Some(id) = key else { return self.model(name).map_err(EngineError::Model) };
        let key = self.opened(workspace, id).await?;
        self.models().model_with(name, key).map_err(EngineError::Model)
    }

    /// A stored key, opened.
    pub(super) async fn opened(&self, workspace: WorkspaceId, id: KeyId) -> Result<BroughtKey, EngineError> {
        let found = self.store().provider_key(workspace, id).await.map_err(|error| unopened(id, error))?;
        let (row, value) = found.ok_or_else(|| broken(id, "it is gone"))?;
        let key = ApiKey::brought(&value, &row.hosts).ok_or_else(|| broken(id, "it is no text"))?;
        Ok(BroughtKey { id: id.to_string(), key })
    }

    /// Changes a key and records it, in one transaction.
    async fn change_key(
        &self,
        by: UserId,
        what: &str,
        row: &ProviderKeyRow,
        change: KeyChange,
    ) -> Result<(), EngineError> {
        let about = format!("key `{}` for {} {what}", row.name, row.provider);
        let act = Act::new(Deed::SettingChanged, Some(Actor::User(by)), about)
            .with("key", row.id.to_string())
            .with("owner", row.kind.clone())
            .with("hosts", row.hosts.clone());
        let done = Done { doing: Some(Doing::Key(change)), ..Done::default() };
        match self.audit_done(AuditLog::Workspace(row.workspace), act, done).await {
            Err(EngineError::Store(StoreError::NotFound)) => Err(EngineError::not_found("key", row.id)),
            other => {
                self.held_keys().forget(row.id);
                other.map(drop)
            }
        }
    }
}

fn unusable(id: KeyId) -> ModelError {
    ModelError::Broken { message: format!("the key {id} that is named for this is gone, or somebody else's") }
}

fn broken(id: KeyId, why: &str) -> EngineError {
    EngineError::Model(ModelError::Broken { message: format!("the stored key {id} cannot be used: {why}") })
}

/// Why a key was not opened: it is damaged, or nobody can look at the moment.
fn unopened(id: KeyId, error: StoreError) -> EngineError {
    match error {
        StoreError::Corrupt(_) | StoreError::WrongKey => broken(id, &error.to_string()),
        StoreError::Stale { .. }
        | StoreError::Conflict(_)
        | StoreError::UsedUp(_)
        | StoreError::Overspent(_)
        | StoreError::NotFound
        | StoreError::Unavailable(_)
        | StoreError::NewerSchema { .. }
        | StoreError::OtherBuild
        | StoreError::Full(_)
        | StoreError::ReadOnly(_)
        | StoreError::Other(_) => EngineError::Store(error),
    }
}

/// The key without blanks around it.
fn checked(value: &str) -> Result<&str, EngineError> {
    let value = value.trim();
    let visible = value.bytes().all(|byte| byte.is_ascii_graphic());
    if value.len() < 8 || value.len() > KEY_BYTES || !visible {
        return Err(EngineError::Invalid("a key is 8 to 4096 visible characters without blanks".to_owned()));
    }
    Ok(value)
}

/// The last characters: enough to tell keys apart, and none of a short one.
fn hint(value: &str) -> String {
    if value.len() < 4 * HINT { String::new() } else { value[value.len() - HINT..].to_owned() }
}

fn is_host(host: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':' | b'[' | b']');
    (1..=253).contains(&host.len()) && host.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_cannot_be_reached_says_nothing_about_a_key() {
        let id: KeyId = "key_01kg75gs87f048g2081040g208".parse().unwrap();
        let away = StoreError::Unavailable(Arc::new(std::io::Error::other("gone for lunch")));
        assert!(matches!(unopened(id, away), EngineError::Store(StoreError::Unavailable(_))));
        let moved = unopened(id, StoreError::Corrupt("a value does not open".to_owned()));
        assert!(matches!(moved, EngineError::Model(ModelError::Broken { .. })), "{moved}");
    }
}
