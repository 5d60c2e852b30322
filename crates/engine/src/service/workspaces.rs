//! Workspaces: making one, and what is set for all of it.

use std::collections::BTreeSet;

use adjutant_core::audit::{Act, Deed};
use adjutant_core::guard::filter::{self, FilterEntry};
use adjutant_core::guard::policy::{is_slug, parse_seconds};
use adjutant_core::id::{UserId, WorkspaceId};
use adjutant_core::routing::{DEFAULT, Wanted};
use adjutant_core::run::event::Actor;
use adjutant_store::StoreError;
use adjutant_store::row::{Doing, WorkspaceRow};

use crate::audit::{AuditLog, Done};
use crate::current::{workspace_filter, workspace_tools};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::service::templates::guide;

/// How long something is kept of which nothing else is said.
pub const FOREVER: &str = "forever";
/// The word for all providers there are.
pub const ALL_PROVIDERS: &str = "*";
/// Providers that a list may name.
const MOST_PROVIDERS: usize = 64;
/// Characters of a name.
const LONGEST_NAME: usize = 100;
/// The word for every tool there is.
pub const ALL_TOOLS: &str = "*";

/// What is to be set for a workspace; what is none stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspaceChange {
    /// Its name.
    pub name: Option<String>,
    /// The time zone of its days and months.
    pub time_zone: Option<String>,
    /// What texts may hold, for all its agents, after what each filters itself.
    pub content_filter: Option<Vec<FilterEntry>>,
    /// How long what was said in runs that have ended is kept, such as `90d`, or `forever`.
    pub keep_runs: Option<String>,
    /// The tools and toolsets there are for its agents; `*` is all.
    pub tools: Option<BTreeSet<String>>,
    /// The providers whose models may be asked, by name; `*` is all of them.
    pub allowed_providers: Option<Vec<String>>,
    /// The model of its agents that leave it to the default; `default` is the instance's own.
    pub default_model: Option<String>,
}

impl Engine {
    /// Makes a workspace, with one notebook and the agent `guide`, that belongs to a person.
    ///
    /// # Errors
    /// When the short name cannot be used or is taken.
    pub async fn create_workspace(
        &self,
        user: UserId,
        slug: &str,
        name: &str,
        time_zone: &str,
    ) -> Result<WorkspaceRow, EngineError> {
        if !is_slug(slug) {
            return Err(EngineError::Invalid(format!(
                "`{slug}` is no short name: small letters, digits and -, beginning with a letter"
            )));
        }
        let fresh = WorkspaceRow::new(self.env().id(), slug, "", self.env().now());
        let said = WorkspaceChange {
            name: Some(name.to_owned()),
            time_zone: Some(time_zone.to_owned()),
            ..WorkspaceChange::default()
        };
        let row = said.apply(&fresh)?;
        let notebook = self.new_notebook(row.id, "notes")?;
        let new = self.store().new_tenant(&row, user, &notebook).await?;
        let act = Act::new(Deed::WorkspaceMade, Some(Actor::User(user)), format!("{} ({slug})", row.name))
            .with("workspace", row.id.to_string())
            .with("notebook", notebook.id.to_string());
        let done = Done { doing: Some(Doing::AddWorkspace(Box::new(new))), ..Done::default() };
        self.audit_done(AuditLog::Instance, act, done).await.map_err(|error| match error {
            EngineError::Store(StoreError::Conflict(_)) => {
                EngineError::Taken { what: "workspace", name: slug.to_owned() }
            }
            other => other,
        })?;
        // Whoever comes in finds somebody to talk to.
        self.save_agent(row.id, Actor::User(user), guide(), 0).await?;
        Ok(row)
    }

    /// Sets something for a whole workspace. It counts from the next step of every run on.
    ///
    /// # Errors
    /// When it cannot be used, or somebody else changed the workspace meanwhile: then nothing is changed.
    pub async fn change_workspace(
        &self,
        workspace: WorkspaceId,
        by: UserId,
        change: WorkspaceChange,
    ) -> Result<WorkspaceRow, EngineError> {
        let before = self.store().workspace(workspace).await?;
        let before = before.ok_or_else(|| EngineError::not_found("workspace", workspace))?;
        self.know_tools(&change)?;
        let after = change.apply(&before)?;
        let changed = change.words(&before, &after)?;
        if changed.is_empty() {
            return Ok(before);
        }
        let row = WorkspaceRow { version: before.version + 1, ..after };
        let act = Act::new(Deed::SettingChanged, Some(Actor::User(by)), changed.join("; "));
        let act = act.with("content_filter", row.content_filter.clone()).with("tools", row.tools.clone());
        let act = act.with("providers", row.providers.clone()).with("default_model", row.default_model.clone());
        let done = Done { doing: Some(Doing::SaveWorkspace(Box::new(row.clone()))), ..Done::default() };
        self.audit_done(AuditLog::Workspace(workspace), act, done).await?;
        if row.keep_runs != before.keep_runs {
            self.kept_otherwise().notify_one();
        }
        Ok(row)
    }

    /// A name that means nothing would take tools away from everybody, or leave them nothing by mistake.
    fn know_tools(&self, change: &WorkspaceChange) -> Result<(), EngineError> {
        let known = |name: &str| name == ALL_TOOLS || self.tools().knows(name) || self.tools().knows_toolset(name);
        match change.tools.iter().flatten().find(|name| !known(name)) {
            Some(name) => Err(EngineError::Invalid(format!("there is no tool or toolset `{name}`"))),
            None => Ok(()),
        }
    }
}

impl WorkspaceChange {
    fn apply(&self, before: &WorkspaceRow) -> Result<WorkspaceRow, EngineError> {
        let mut row = before.clone();
        if let Some(name) = &self.name {
            let name = name.trim();
            if name.is_empty() || name.chars().count() > LONGEST_NAME {
                return Err(EngineError::Invalid(format!("a workspace has a name of 1 to {LONGEST_NAME} characters")));
            }
            name.clone_into(&mut row.name);
        }
        if let Some(zone) = &self.time_zone {
            if jiff::tz::TimeZone::get(zone).is_err() {
                return Err(EngineError::Invalid(format!("`{zone}` is no time zone, such as Europe/Berlin or UTC")));
            }
            row.time_zone.clone_from(zone);
        }
        if let Some(entries) = &self.content_filter {
            let problems = filter::problems(entries);
            if !problems.is_empty() {
                let words: Vec<_> = problems.iter().map(|(field, why)| format!("{field}: {why}")).collect();
                return Err(EngineError::Invalid(format!("the content filter cannot be used: {}", words.join("; "))));
            }
            row.content_filter = serde_json::to_string(entries).map_err(|bad| EngineError::Invalid(bad.to_string()))?;
        }
        if let Some(kept) = &self.keep_runs {
            if kept != FOREVER && parse_seconds(kept).is_none_or(|seconds| seconds == 0) {
                let why = format!("`{kept}` is no span of time for which runs are kept, such as 90d, or {FOREVER}");
                return Err(EngineError::Invalid(why));
            }
            row.keep_runs = Some(kept.clone()).filter(|kept| kept != FOREVER);
        }
        if let Some(tools) = &self.tools {
            let named = serde_json::to_string(tools).map_err(|bad| EngineError::Invalid(bad.to_string()))?;
            row.tools = Some(named).filter(|_| !tools.contains(ALL_TOOLS));
        }
        if let Some(names) = &self.allowed_providers {
            let plain = |name: &String| (1..=64).contains(&name.len()) && !name.contains(['/', ' ', ',']);
            if names.len() > MOST_PROVIDERS || !names.iter().all(plain) {
                let why = format!("name up to {MOST_PROVIDERS} providers as they are configured, or {ALL_PROVIDERS}");
                return Err(EngineError::Invalid(why));
            }
            let all = names.iter().any(|name| name == ALL_PROVIDERS);
            let names: BTreeSet<_> = names.iter().collect();
            let text = serde_json::to_string(&names).map_err(|bad| EngineError::Invalid(bad.to_string()))?;
            row.providers = Some(text).filter(|_| !all);
        }
        if let Some(model) = &self.default_model {
            Wanted::of(Some(model.as_str().into()), None, None)
                .map_err(|(_, why)| EngineError::Invalid(format!("default_model: {why}")))?;
            row.default_model = Some(model.clone()).filter(|model| model != DEFAULT);
        }
        Ok(row)
    }

    /// What it changes, one line each.
    fn words(&self, before: &WorkspaceRow, after: &WorkspaceRow) -> Result<Vec<String>, EngineError> {
        let mut words = Vec::new();
        if before.name != after.name {
            words.push(format!("the workspace is called {}", after.name));
        }
        if before.time_zone != after.time_zone {
            words.push(format!("its time zone is {}", after.time_zone));
        }
        if workspace_filter(before).ok() != Some(workspace_filter(after)?) {
            let entries = self.content_filter.as_ref().map_or(0, Vec::len);
            words.push(format!("its content filter has {entries} {}", if entries == 1 { "entry" } else { "entries" }));
        }
        if before.keep_runs != after.keep_runs {
            let kept = after.keep_runs.as_deref().unwrap_or(FOREVER);
            words.push(format!("what was said in runs that have ended is kept: {kept}"));
        }
        if before.tools != after.tools {
            let named = workspace_tools(after)?.map_or_else(
                || "all".to_owned(),
                |names| if names.is_empty() { "none".to_owned() } else { Vec::from_iter(names).join(", ") },
            );
            words.push(format!("its agents have the tools: {named}"));
        }
        if before.providers != after.providers {
            let named = self.allowed_providers.as_deref().unwrap_or_default().join(", ");
            words.push(format!("the providers whose models may be asked: {named}"));
        }
        if before.default_model != after.default_model {
            let model = after.default_model.as_deref().unwrap_or("that of the instance");
            words.push(format!("its default model is {model}"));
        }
        Ok(words)
    }
}
