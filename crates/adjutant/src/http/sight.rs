//! Whether somebody who was shown a run may still see it: rights end while streams and long requests go on.

use std::time::Duration;

use adjutant_core::id::{ChatId, RunId, UserId};
use adjutant_engine::EngineError;
use adjutant_engine::store::row::RunRow;

use super::door::{Access, Signed};
use super::problem::Problem;
use super::server::{Credential, Server};

/// How often it is looked. Together with how long callers are believed it stays below the second within which a revocation
/// cuts, also where the revocation happened at another node.
pub(super) const RECHECK: Duration = Duration::from_millis(600);

/// Somebody's sight of one run.
pub(super) struct Sight {
    credential: Credential,
    access: Access,
    run: RunId,
    /// Who started it; and the chat, whose sharing lets others read it.
    initiator: UserId,
    chat: ChatId,
}

impl Sight {
    pub(super) fn of(signed: &Signed, access: Access, row: &RunRow) -> Self {
        let credential = signed.credential.clone();
        Self { credential, access, run: row.id, initiator: row.initiator, chat: row.chat }
    }

    /// Whether they may read on, by what they are now and by what the chat is now.
    ///
    /// # Errors
    /// 401 when they are nobody any more, 404 when it is not theirs to see.
    pub(super) async fn lasts(&self, server: &Server) -> Result<(), Problem> {
        let caller = match server.caller(&self.credential).await {
            Ok(caller) => caller,
            // A database that is away for a moment says nothing about anybody.
            Err(EngineError::Store(_)) => return Ok(()),
            Err(other) => return Err(other.into()),
        };
        let gone = || Problem::not_found("run", &self.run.to_string());
        let role = caller.role(self.access.workspace).ok_or_else(gone)?;
        if (Access { role, ..self.access }).may_see(self.initiator, false) {
            return Ok(());
        }
        match server.engine.store().chat(self.access.workspace, self.chat).await {
            Ok(chat) if chat.as_ref().is_some_and(|chat| chat.shared) => Ok(()),
            Ok(_) => Err(gone()),
            Err(_) => Ok(()),
        }
    }
}
