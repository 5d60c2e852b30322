//! Searching the audit: rows by their columns, then what was recorded by its words. Page by page, newest first.

use adjutant_core::audit::filter::Wanted;
use adjutant_core::id::{RunId, UserId, WorkspaceId};
use adjutant_core::run::chain::StreamId;
use adjutant_core::time::Time;
use adjutant_store::row::{AuditFilter, AuditPlace, AuditRow};
use serde::Serialize;

use super::AuditLog;
use super::entry::{AuditEntry, Names, Redaction};
use crate::engine::Engine;
use crate::error::EngineError;

/// Rows read at a time.
const ROWS: u32 = 200;
/// Rows that one page looks at before it comes back with what it has.
const SCAN: usize = 10_000;

/// One page of a search.
#[derive(Debug, Clone, Serialize)]
pub struct AuditPage {
    /// The entries, newest first.
    pub data: Vec<AuditEntry>,
    /// Where the next page begins.
    pub next_cursor: Option<String>,
    /// Whether there may be more.
    pub has_more: bool,
}

/// What a page is cut to.
#[derive(Debug, Clone)]
pub struct PageOf {
    /// Entries at the most.
    pub limit: usize,
    /// Where it begins: `next_cursor` of the page before.
    pub cursor: Option<String>,
    /// Whether secrets are replaced.
    pub redaction: Redaction,
    /// Which logs are searched.
    pub logs: LogsOf,
}

/// Which logs a search reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogsOf {
    /// Those of the workspace.
    Workspace,
    /// That of the instance, too: for its owner.
    AndInstance,
}

impl Engine {
    /// Searches the audit of a workspace, and that of the instance if it is asked for.
    ///
    /// # Errors
    /// When a name stands for nothing, the cursor is not one, or the store cannot be read.
    pub async fn search_audit(
        &self,
        workspace: WorkspaceId,
        wanted: &Wanted,
        page: &PageOf,
    ) -> Result<AuditPage, EngineError> {
        let mut filter = self.audit_filter(workspace, wanted).await?;
        filter.before = page.cursor.as_deref().map(read_cursor).transpose()?;
        let names = self.audit_names(workspace).await?;
        let (mut data, mut scanned) = (Vec::new(), 0);
        loop {
            let rows = self.newest(workspace, &filter, page.logs).await?;
            let last = rows.len() < ROWS as usize;
            for row in rows {
                let place = row.place();
                filter.before = Some(place);
                scanned += 1;
                if let Some(entry) = self.admitted(workspace, wanted, row, &names, page.redaction).await? {
                    data.push(entry);
                }
                if data.len() == page.limit || scanned == SCAN {
                    return Ok(AuditPage { data, next_cursor: Some(cursor_of(place)), has_more: true });
                }
            }
            if last {
                return Ok(AuditPage { data, next_cursor: None, has_more: false });
            }
        }
    }

    /// The next rows of both logs, newest first.
    async fn newest(
        &self,
        workspace: WorkspaceId,
        filter: &AuditFilter,
        logs: LogsOf,
    ) -> Result<Vec<AuditRow>, EngineError> {
        let mut rows = self.store().audit(Some(workspace), filter, ROWS).await?;
        let about_runs =
            filter.agent.is_some() || filter.run.is_some() || filter.tool.is_some() || filter.verdict.is_some();
        if !about_runs && logs == LogsOf::AndInstance {
            rows.extend(self.store().audit(None, filter, ROWS).await?);
        }
        let order = |row: &AuditRow| (row.time, row.stream.to_string(), row.seq);
        rows.sort_by_key(|row| std::cmp::Reverse(order(row)));
        rows.truncate(ROWS as usize);
        Ok(rows)
    }

    async fn admitted(
        &self,
        workspace: WorkspaceId,
        wanted: &Wanted,
        row: AuditRow,
        names: &Names,
        redaction: Redaction,
    ) -> Result<Option<AuditEntry>, EngineError> {
        let on_path = |path: &adjutant_core::audit::filter::PathWanted| {
            row.target.as_deref().is_some_and(|target| path.admits(target))
        };
        if wanted.path.as_ref().is_some_and(|path| !on_path(path)) {
            return Ok(None);
        }
        let tenant = if row.stream == StreamId::System { AuditLog::Instance.tenant() } else { workspace };
        let event = self.store().events(tenant, row.stream, row.seq - 1, 1).await?.pop();
        let entry = AuditEntry::new(row, event.as_ref(), names, redaction);
        Ok(wanted.texts.iter().all(|text| entry.mentions(text)).then_some(entry))
    }

    /// The columns that a search asks for.
    async fn audit_filter(&self, workspace: WorkspaceId, wanted: &Wanted) -> Result<AuditFilter, EngineError> {
        let agent = match &wanted.agent {
            Some(name) => Some(self.find_agent(workspace, name).await?.id),
            None => None,
        };
        let run = match &wanted.run {
            Some(text) => Some(text.parse::<RunId>().map_err(|bad| EngineError::Invalid(bad.to_string()))?),
            None => None,
        };
        Ok(AuditFilter {
            kinds: wanted.kinds.clone(),
            actor: match &wanted.by {
                Some(name) => Some(self.actor_named(name).await?),
                None => None,
            },
            agent,
            run,
            tool: wanted.tool.clone(),
            target: None,
            verdict: wanted.verdict.clone(),
            is_error: wanted.failed,
            since: wanted.since,
            until: wanted.until,
            before: None,
        })
    }

    async fn actor_named(&self, name: &str) -> Result<String, EngineError> {
        if name == "clock" || name.starts_with("rule ") || name.parse::<UserId>().is_ok() {
            return Ok(name.to_owned());
        }
        let user = self.store().user_by_name(name).await?.ok_or_else(|| EngineError::not_found("person", name))?;
        Ok(user.id.to_string())
    }

    async fn audit_names(&self, workspace: WorkspaceId) -> Result<Names, EngineError> {
        let agents = self.store().agents(workspace).await?;
        let people = self.store().users().await?;
        Ok(Names {
            agents: agents.into_iter().map(|row| (row.id, row.slug)).collect(),
            people: people.into_iter().map(|row| (row.id.to_string(), row.name)).collect(),
        })
    }
}

pub(crate) fn cursor_of(place: AuditPlace) -> String {
    format!("{}.{}.{}", place.time.millis(), place.stream, place.seq)
}

pub(crate) fn read_cursor(text: &str) -> Result<AuditPlace, EngineError> {
    let mut parts = text.split('.');
    let place = || {
        Some(AuditPlace {
            time: Time::from_millis(parts.next()?.parse().ok()?),
            stream: parts.next()?.parse().ok()?,
            seq: parts.next()?.parse().ok()?,
        })
    };
    let mut place = place;
    place().ok_or_else(|| EngineError::Invalid(format!("`{text}` is not the cursor of a page")))
}
