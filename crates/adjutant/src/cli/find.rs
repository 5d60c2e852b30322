//! From what a person types to the thing they mean: an id, or as much of one as no other has.

use adjutant_core::guard::rule::Rule;
use adjutant_core::id::{ApprovalId, ChatId, RuleId, RunId};
use adjutant_engine::store::row::{ApprovalFilter, ApprovalRow, RunFilter};

use serde_json::Value;

use crate::failure::Failure;
use crate::instance::Instance;

/// The smallest and the largest id, in text.
const LEAST: &str = "00000000000000000000000000";
const MOST: &str = "7zzzzzzzzzzzzzzzzzzzzzzzzz";

/// The smallest or the largest id that begins like this, in text.
fn padded(prefix: &str, text: &str, with: &str) -> String {
    let rest = text.strip_prefix(prefix).unwrap_or(text);
    format!("{prefix}{rest}{}", with.get(rest.len()..).unwrap_or_default())
}

/// What was typed, without the mark of a text cut short and with the prefix of its kind.
fn typed(prefix: &str, text: &str) -> String {
    let text = text.trim().trim_end_matches(['…', '.']).to_ascii_lowercase();
    if text.starts_with(prefix) { text } else { format!("{prefix}{text}") }
}

/// What was typed, as far as an id goes.
pub(super) enum Meant<T> {
    /// A whole id.
    Whole(T),
    /// The beginning of one, and the first or last id that begins so.
    Beginning(String, T),
}

/// Which end of the ids that begin alike.
#[derive(Debug, Clone, Copy)]
pub(super) enum Edge {
    First,
    Last,
}

/// A kind of id that a person may type the beginning of.
pub(super) trait Typed: std::str::FromStr {
    const PREFIX: &'static str;
    fn none(text: &str) -> Failure;
}

impl Typed for RunId {
    const PREFIX: &'static str = Self::PREFIX;

    fn none(text: &str) -> Failure {
        no_run(text)
    }
}

impl Typed for ApprovalId {
    const PREFIX: &'static str = Self::PREFIX;

    fn none(text: &str) -> Failure {
        no_approval(text)
    }
}

impl Typed for ChatId {
    const PREFIX: &'static str = Self::PREFIX;

    fn none(text: &str) -> Failure {
        no_chat(text)
    }
}

pub(super) fn no_chat(text: &str) -> Failure {
    Failure::not_found(format!("There is no chat `{text}`.")).hint("adjutant chat --continue goes on with the newest")
}

pub(super) fn no_run(text: &str) -> Failure {
    Failure::not_found(format!("There is no run `{text}`.")).hint("adjutant runs ls shows the runs there are")
}

pub(super) fn no_approval(text: &str) -> Failure {
    Failure::not_found(format!("There is no inbox item `{text}`.")).hint("adjutant inbox shows what waits for you")
}

/// What is meant by what was typed. Ids begin with their moment, so all that begin alike lie side by side.
///
/// # Errors
/// When no id begins like this.
pub(super) fn meant<T: Typed>(text: &str, edge: Edge) -> Result<Meant<T>, Failure> {
    let wanted = typed(<T as Typed>::PREFIX, text);
    if let Ok(id) = wanted.parse() {
        return Ok(Meant::Whole(id));
    }
    let fill = match edge {
        Edge::First => LEAST,
        Edge::Last => MOST,
    };
    let edge = padded(<T as Typed>::PREFIX, &wanted, fill).parse().map_err(|_| T::none(text))?;
    Ok(Meant::Beginning(wanted, edge))
}

/// The one id of a page that begins as was typed.
///
/// # Errors
/// When there is none, or more than one.
pub(super) fn only_id(page: &Value, wanted: &str, text: &str, none: fn(&str) -> Failure) -> Result<String, Failure> {
    let rows = page["data"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ids = rows.iter().filter_map(|row| row["id"].as_str()).filter(|id| id.starts_with(wanted));
    only(&ids.map(str::to_owned).collect::<Vec<_>>(), text).ok_or_else(|| none(text))?
}

/// The run a person means.
///
/// # Errors
/// When there is none, or more than one.
pub(super) async fn run(instance: &Instance, text: &str) -> Result<RunId, Failure> {
    let (wanted, before) = match meant(text, Edge::Last)? {
        Meant::Whole(id) => return Ok(id),
        Meant::Beginning(wanted, before) => (wanted, before),
    };
    let filter = RunFilter { before: Some(before), superseded: true, ..RunFilter::default() };
    let rows = instance.engine.store().runs(instance.home.workspace, &filter, 2).await?;
    let ids: Vec<RunId> = rows.iter().map(|row| row.id).filter(|id| id.to_string().starts_with(&wanted)).collect();
    only(&ids, text).ok_or_else(|| no_run(text))?
}

/// The inbox item a person means.
///
/// # Errors
/// When there is none, or more than one.
pub(super) async fn approval(instance: &Instance, text: &str) -> Result<ApprovalRow, Failure> {
    let (store, workspace) = (instance.engine.store(), instance.home.workspace);
    let (wanted, after) = match meant(text, Edge::First)? {
        Meant::Whole(id) => return store.approval(workspace, id).await?.ok_or_else(|| no_approval(text)),
        Meant::Beginning(wanted, after) => (wanted, after),
    };
    let filter = ApprovalFilter { after: Some(after), ..ApprovalFilter::default() };
    let rows = store.approvals(workspace, &filter, 2).await?;
    let rows: Vec<ApprovalRow> = rows.into_iter().filter(|row| row.id.to_string().starts_with(&wanted)).collect();
    only(&rows, text).ok_or_else(|| no_approval(text))?
}

/// The rule a person means, of all there are.
///
/// # Errors
/// When there is none, or more than one.
pub(super) fn rule<T: Clone>(mut rules: Vec<(Rule, T)>, text: &str) -> Result<(Rule, T), Failure> {
    let wanted = typed(RuleId::PREFIX, text);
    let none = || {
        Failure::not_found(format!("There is no rule `{text}`.")).hint("adjutant rules ls shows the rules there are")
    };
    rules.retain(|(rule, _)| rule.id.to_string().starts_with(&wanted));
    only(&rules, text).ok_or_else(none)?
}

/// The only one; an error when there are several, none when there is none.
fn only<T: Clone>(found: &[T], text: &str) -> Option<Result<T, Failure>> {
    match found {
        [] => None,
        [one] => Some(Ok(one.clone())),
        [_, ..] => Some(Err(
            Failure::usage(format!("`{text}` begins more than one id. Nothing was done.")).hint("type more of it")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_may_be_cut_short_and_without_its_prefix() {
        assert_eq!(typed("run_", "run_01J8…"), "run_01j8");
        assert_eq!(typed("run_", "01j8"), "run_01j8");
        for text in ["run_01j8", "run_"] {
            assert!(padded("run_", text, MOST).parse::<RunId>().is_ok());
            assert!(padded("run_", text, LEAST).parse::<RunId>().is_ok());
        }
        assert!(padded("run_", "run_nonsense!", MOST).parse::<RunId>().is_err());
    }
}
