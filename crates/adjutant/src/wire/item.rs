//! An inbox item: what waits for a person, or what a person decided, as far as its reader has read the log of its run.

use adjutant_core::guard::redact::{Form, Mode, redact_as, redact_value};
use adjutant_core::id::CallId;
use adjutant_core::run::event::{ApprovalDecided, Event, GrantScope};
use adjutant_core::run::state::{Approval, Call, State};
use adjutant_engine::Card;
use adjutant_engine::store::row::ApprovalRow;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::event::{ALLOWED_DECISIONS, ALLOWED_OUTCOMES, labels};
use super::moment::Moment;
use super::texts::Texts;

/// Characters of what the agent was answering.
const CONTEXT: usize = 200;

/// An inbox item: something that waits for a person, or that a person decided.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Item {
    id: String,
    /// `call`, `in_doubt` or `budget`.
    kind: String,
    workspace_id: String,
    run_id: String,
    chat_id: String,
    agent_id: String,
    call_id: Option<String>,
    /// `pending`, `approved`, `rejected`, `expired` or `superseded`.
    status: String,
    tool_name: Option<String>,
    /// One line: what would happen, or what is known.
    pub(crate) summary: Option<String>,
    /// `low`, `medium` or `high`.
    risk: Option<String>,
    /// Why it asks.
    reason: Option<String>,
    /// The rule that asks.
    rule: Option<String>,
    created_at: Moment,
    /// When silence counts as no.
    expires_at: Option<Moment>,
    decided_at: Option<Moment>,
    decision: Option<String>,
    decided_by: Option<String>,
    /// Whether you may decide it now. Only over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) may_decide: Option<bool>,
    /// What a yes adds, where a budget is used up.
    #[serde(skip_serializing_if = "Option::is_none")]
    raise_usd: Option<f64>,
    /// The model whose price is not known, where a yes lets it be asked without counting it.
    #[serde(skip_serializing_if = "Option::is_none")]
    unpriced_model: Option<String>,
    /// The arguments that a person put in place of what was asked. Never in lists.
    #[schema(value_type = Option<Object>)]
    edited_arguments: Option<Value>,
    /// What a person added to the decision. Never in lists.
    message: Option<String>,
    /// The rule that a yes for longer than this call has written. Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule_written: Option<RuleWritten>,
    /// What the agent was answering, cut short. Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    context_summary: Option<String>,
    /// The arguments that would run. This and what follows is not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Value>,
    /// What would change.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
    /// What a decision is bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    /// What the run has seen so far: `private`, `untrusted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<Vec<&'static str>>,
    /// Where what is untrusted came from: calls that read it before this was asked, attached files, and an earlier run of the
    /// chat, each in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    sources: Option<Vec<String>>,
    /// What may be answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_decisions: Option<Vec<&'static str>>,
    /// How far a yes may reach.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>)]
    pub(crate) allowed_scopes: Option<Vec<GrantScope>>,
    /// Where a yes would hold that lasts longer than this call.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    place: Option<Value>,
    /// Whether secrets are hidden here, each behind its kind and length; `reveal` shows them to whoever may decide.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    hidden: bool,
}

/// A rule that an answer has written: it can be taken back under `/rules`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct RuleWritten {
    id: String,
    /// The rule in one line.
    says: String,
    /// When it ends by itself.
    expires_at: Option<Moment>,
}

/// What becomes of the secrets in what is asked (rule R1). What a decision is bound to is the real thing either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Secrets {
    /// Each shows its kind and its length.
    Hidden,
    /// They are shown: somebody who may decide asked for them.
    Shown,
}

/// The events that tell an inbox item: what is asked or in doubt, and what was decided.
pub(crate) fn events_of(approval: &Approval) -> Vec<Event> {
    let asked = approval.asked.clone().map(Event::from);
    let doubt = approval.doubt.clone().map(Event::from);
    let decided = approval.decided.clone().map(|(decided, _)| Event::from(decided));
    [asked, doubt, decided].into_iter().flatten().collect()
}

/// What the row of an inbox item says; nothing where it was erased.
pub(crate) fn card(row: &ApprovalRow) -> Option<Card> {
    serde_json::from_str(&row.card).ok()
}

/// An inbox item in full: what its row says, and what the log of its run says about it.
pub(crate) fn item(row: &ApprovalRow, state: &State, texts: &Texts, secrets: Secrets) -> Item {
    let asks = state.approvals.get(&row.id);
    let shown = |text: &str| match secrets {
        Secrets::Hidden => hide(text),
        Secrets::Shown => text.to_owned(),
    };
    let decided = asks.and_then(|approval| approval.decided.as_ref()).map(|(decided, _)| decided);
    let edited = |decided: &ApprovalDecided| {
        let text = texts.of(decided.arguments.as_ref()?);
        Some(arguments(&if secrets == Secrets::Hidden { hide_arguments(&text) } else { text }))
    };
    let written = decided.and_then(|decided| decided.rule.as_deref()).map(|rule| RuleWritten {
        id: rule.id.to_string(),
        says: shown(&rule.in_words()),
        expires_at: rule.expires_at.map(Moment::from),
    });
    let is_untrusted = |approval: &&Approval| approval.asked.as_ref().is_some_and(|asked| asked.labels.untrusted);
    let order = state.start.as_ref().and_then(|start| start.user_message.as_ref());
    Item {
        edited_arguments: decided.and_then(edited),
        message: decided.and_then(|decided| decided.message.as_deref()).map(shown),
        rule_written: written,
        context_summary: order.map(|text| shown(&text.text()).chars().take(CONTEXT).collect()),
        sources: asks.filter(is_untrusted).map(|approval| sources(state, approval)),
        ..approval(row, asks, texts, secrets)
    }
}

/// What was untrusted when this was asked: the calls that had read it, each the tool and the path or the address it looked at,
/// the files that came with the message, and what was said before it.
fn sources(state: &State, approval: &Approval) -> Vec<String> {
    let beside = state.turns.iter().find(|turn| turn.calls.iter().any(|call| call.id == approval.call));
    let earlier = |id: &CallId| {
        let calls = beside.iter().flat_map(|turn| &turn.calls);
        calls.take_while(|call| call.id != approval.call).any(|call| call.id == *id)
    };
    let read = |call: &&Call| {
        let told = call.ended.as_ref().is_some_and(|(ended, _, at)| ended.labels.untrusted && *at <= approval.asked_at);
        // A refusal that quotes what was met counts from the judgement on, before the call has its end.
        told || call.judged.as_ref().is_some_and(|judged| judged.labels.untrusted) && earlier(&call.id)
    };
    let words = |call: &Call| {
        let given = arguments(&call.arguments.text());
        // What only reads has no target, but it says where it looked.
        let place = ["path", "url"].into_iter().find_map(|name| given[name].as_str().map(hide));
        [Some(call.tool.clone()), place].into_iter().flatten().collect::<Vec<_>>().join(" ")
    };
    let files = state.start.iter().flat_map(|start| &start.attachments);
    let attached: Vec<_> =
        files.filter(|file| file.labels.untrusted).map(|file| format!("attached {}", file.path)).collect();
    let before = state.start.as_ref().filter(|start| start.labels.untrusted).and_then(|start| start.base);
    // The labels that a run begins with are those of its files as well: with such files it is not known whose they are.
    let perhaps = if attached.is_empty() { "" } else { "perhaps " };
    let before = before.map(|base| format!("{perhaps}earlier in this chat (run {})", base.run));
    state.calls().filter(read).map(words).chain(attached).chain(before).collect()
}

/// An inbox item; with what is asked or in doubt, where the caller has read it from the run's log.
pub(crate) fn approval(row: &ApprovalRow, approval: Option<&Approval>, texts: &Texts, secrets: Secrets) -> Item {
    let asked = approval.and_then(|approval| approval.asked.as_ref());
    let doubt = approval.and_then(|approval| approval.doubt.as_ref());
    let would_run = asked.map(|asked| &asked.arguments).or_else(|| doubt.and_then(|doubt| doubt.arguments.as_ref()));
    let card = card(row);
    let ask = card.as_ref().and_then(|card| card.ask.as_ref());
    let word = |pick: fn(&Card) -> &String| card.as_ref().map(pick).cloned();
    let item = Item {
        id: row.id.to_string(),
        kind: row.kind.clone(),
        workspace_id: row.workspace.to_string(),
        run_id: row.run.to_string(),
        chat_id: row.chat.to_string(),
        agent_id: row.agent.to_string(),
        call_id: row.call.as_ref().map(ToString::to_string),
        status: row.status.clone(),
        tool_name: row.tool.clone(),
        summary: word(|card| &card.summary),
        risk: word(|card| &card.risk),
        reason: word(|card| &card.reason),
        rule: word(|card| &card.rule),
        created_at: row.created_at.into(),
        expires_at: row.expires_at.map(Moment::from),
        decided_at: row.decided_at.map(Moment::from),
        decision: card.as_ref().and_then(|card| card.decision.clone()),
        decided_by: card.as_ref().and_then(|card| card.decided_by.clone()),
        may_decide: None,
        raise_usd: ask.filter(|ask| ask.unpriced.is_none()).map(|ask| ask.raise.dollars()),
        unpriced_model: ask.and_then(|ask| ask.unpriced.clone()),
        edited_arguments: None,
        message: None,
        rule_written: None,
        context_summary: None,
        arguments: would_run.map(|text| arguments(&texts.of(text))),
        diff: asked.and_then(|asked| asked.diff.as_ref()).map(|diff| texts.of(diff)),
        fingerprint: asked.map(|asked| asked.fingerprint.to_string()),
        labels: asked.map(|asked| labels(asked.labels)),
        sources: None,
        allowed_decisions: asked.map(|_| ALLOWED_DECISIONS.to_vec()).or(doubt.map(|_| ALLOWED_OUTCOMES.to_vec())),
        allowed_scopes: asked.map(|asked| asked.allowed_scopes.clone()),
        place: asked.and_then(|asked| asked.place.as_ref()).map(|place| json!(place)),
        hidden: false,
    };
    match secrets {
        Secrets::Shown => item,
        Secrets::Hidden => item.hide(),
    }
}

impl Item {
    fn hide(self) -> Self {
        let (summary, diff) = (self.summary.as_deref().map(hide), self.diff.as_deref().map(hide));
        let (arguments, place) = (self.arguments.as_ref().map(hide_value), self.place.as_ref().map(hide_value));
        let same = summary == self.summary && diff == self.diff && arguments == self.arguments && place == self.place;
        Self { hidden: !same, summary, diff, arguments, place, ..self }
    }
}

/// A text without its secrets, each behind its kind and length.
pub(crate) fn hide(text: &str) -> String {
    redact_as(text, Mode::Standard, Form::Sized).into_owned()
}

pub(super) fn hide_value(value: &Value) -> Value {
    let mut value = value.clone();
    redact_value(&mut value, Mode::Standard, Form::Sized);
    value
}

/// The text of arguments without their secrets; the same text where there are none.
pub(crate) fn hide_arguments(text: &str) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(value) => {
            let hidden = hide_value(&value);
            if hidden == value { text.to_owned() } else { hidden.to_string() }
        }
        Err(_) => hide(text),
    }
}

/// Arguments as JSON where they are, as text where they are not.
pub(crate) fn arguments(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}
