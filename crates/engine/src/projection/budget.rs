//! The inbox row of a run that asks for money.

use adjutant_core::id::ApprovalId;
use adjutant_core::run::event::{Paused, RunStarted};
use adjutant_core::run::state::{BudgetItem, Settled};
use adjutant_store::row::ApprovalRow;

use super::{Card, actor};

pub(super) fn row(start: &RunStarted, id: ApprovalId, item: &BudgetItem, pause: Option<&Paused>) -> ApprovalRow {
    let settled = item.settled.as_ref().map(|(settled, _)| settled);
    let (status, decision, decided_by) = match settled {
        None => ("pending", None, None),
        Some(Settled::Raised { by, .. } | Settled::Allowed { by }) => {
            ("approved", Some("approve".to_owned()), Some(actor(by)))
        }
        Some(Settled::Refused { by }) => ("rejected", Some("reject".to_owned()), Some(actor(by))),
        Some(Settled::Superseded) => ("superseded", None, None),
    };
    let reason = match &item.ask.unpriced {
        None => "The run holds until there is money for its next model call.",
        Some(_) => "The run holds until somebody says whether to ask a model whose price is not known.",
    };
    let card = Card {
        summary: item.ask.summary(),
        risk: "low".to_owned(),
        reason: reason.to_owned(),
        rule: "budget".to_owned(),
        decision,
        decided_by,
        initiator: Some(start.initiator),
        ask: Some(item.ask.clone()),
    };
    ApprovalRow {
        id,
        workspace: start.workspace,
        run: start.run,
        chat: start.chat,
        agent: start.agent,
        call: None,
        kind: "budget".to_owned(),
        status: status.to_owned(),
        tool: None,
        created_at: item.asked_at,
        expires_at: pause.filter(|_| item.is_pending()).and_then(|pause| pause.until),
        decided_at: item.settled.as_ref().map(|(_, at)| *at),
        card: serde_json::to_string(&card).unwrap_or_default(),
    }
}
