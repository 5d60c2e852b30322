//! Lists come in pages: as many as were asked for, and a cursor to go on from. The cursor is the id of the last one, so that a
//! page stays right while things are added.

use axum::Json;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::problem::Problem;

const USUAL: u32 = 50;
const MOST: u32 = 200;

/// How much of a list, and from where.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Slice {
    /// How many, from 1 to 200.
    #[param(default = 50, minimum = 1, maximum = 200)]
    pub(super) limit: Option<u32>,
    /// `next_cursor` of the page before.
    pub(super) cursor: Option<String>,
}

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Page<T> {
    /// The things, in order.
    data: Vec<T>,
    /// Where the next page begins; none when this is the last.
    next_cursor: Option<String>,
    /// Whether there is more.
    has_more: bool,
}

/// How many to show.
///
/// # Errors
/// 422 when it is none or too many.
pub(super) fn limit(asked: Option<u32>) -> Result<u32, Problem> {
    match asked.unwrap_or(USUAL) {
        fine @ 1..=MOST => Ok(fine),
        _ => Err(Problem::invalid("A page has 1 to 200 entries. Nothing was read.").error("limit", "is out of range")),
    }
}

/// Puts a page together from one more than was asked for.
pub(super) fn page<R, T>(
    mut rows: Vec<R>,
    limit: u32,
    cursor: impl Fn(&R) -> String,
    show: impl Fn(&R) -> T,
) -> Json<Page<T>> {
    let has_more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let next_cursor = rows.last().filter(|_| has_more).map(cursor);
    Json(Page { data: rows.iter().map(show).collect(), next_cursor, has_more })
}

/// A whole list that is short by nature.
pub(super) fn all<T>(data: Vec<T>) -> Json<Page<T>> {
    Json(Page { data, next_cursor: None, has_more: false })
}

/// Part of a list whose cursor is not the id of its last entry.
pub(super) fn part<T>(data: Vec<T>, next_cursor: Option<String>) -> Json<Page<T>> {
    Json(Page { data, has_more: next_cursor.is_some(), next_cursor })
}
