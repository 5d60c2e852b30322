//! From what a person types to the thing they mean: an id, or as much of one as no other has.

use adjutant_core::guard::rule::Rule;
use adjutant_core::id::{ApprovalId, RuleId, RunId};
use adjutant_engine::store::row::{ApprovalFilter, ApprovalRow, RunFilter};

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

/// The run a person means.
///
/// # Errors
/// When there is none, or more than one.
pub(super) async fn run(instance: &Instance, text: &str) -> Result<RunId, Failure> {
    let wanted = typed(RunId::PREFIX, text);
    if let Ok(id) = wanted.parse() {
        return Ok(id);
    }
    let none =
        || Failure::not_found(format!("There is no run `{text}`.")).hint("adjutant runs ls shows the runs there are");
    // Ids begin with their moment, so all that begin alike lie side by side.
    let before = padded(RunId::PREFIX, &wanted, MOST).parse().map_err(|_| none())?;
    let filter = RunFilter { before: Some(before), superseded: true, ..RunFilter::default() };
    let rows = instance.engine.store().runs(instance.home.workspace, &filter, 2).await?;
    let ids: Vec<RunId> = rows.iter().map(|row| row.id).filter(|id| id.to_string().starts_with(&wanted)).collect();
    only(&ids, text).ok_or_else(none)?
}

/// The inbox item a person means.
///
/// # Errors
/// When there is none, or more than one.
pub(super) async fn approval(instance: &Instance, text: &str) -> Result<ApprovalRow, Failure> {
    let wanted = typed(ApprovalId::PREFIX, text);
    let none = || {
        Failure::not_found(format!("There is no inbox item `{text}`.")).hint("adjutant inbox shows what waits for you")
    };
    let (store, workspace) = (instance.engine.store(), instance.home.workspace);
    if let Ok(id) = wanted.parse::<ApprovalId>() {
        return store.approval(workspace, id).await?.ok_or_else(none);
    }
    let after = padded(ApprovalId::PREFIX, &wanted, LEAST).parse().map_err(|_| none())?;
    let filter = ApprovalFilter { after: Some(after), ..ApprovalFilter::default() };
    let rows = store.approvals(workspace, &filter, 2).await?;
    let rows: Vec<ApprovalRow> = rows.into_iter().filter(|row| row.id.to_string().starts_with(&wanted)).collect();
    only(&rows, text).ok_or_else(none)?
}

/// The rule a person means.
///
/// # Errors
/// When there is none, or more than one.
pub(super) async fn rule(instance: &Instance, text: &str) -> Result<Rule, Failure> {
    let wanted = typed(RuleId::PREFIX, text);
    let none = || {
        Failure::not_found(format!("There is no rule `{text}`.")).hint("adjutant rules ls shows the rules there are")
    };
    let mut rules = instance.engine.rules(instance.home.workspace).await?;
    rules.retain(|rule| rule.id.to_string().starts_with(&wanted));
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
