//! Lists come in pages: as many as were asked for, and a cursor to go on from. The cursor is the id of the last one, so that a
//! page stays right while things are added.

use axum::Json;
use serde::{Deserialize, Serialize};
use serde_json::Value;
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

/// A list that is read whole, because it is short by nature: all of it, or in pages to whoever asks for them.
///
/// # Errors
/// 422 when the page is none, or begins after something that is not in the list.
pub(super) fn sliced<T>(data: Vec<T>, slice: &Slice, cursor: impl Fn(&T) -> String) -> Result<Json<Page<T>>, Problem> {
    let begin = match &slice.cursor {
        None if slice.limit.is_none() => return Ok(all(data)),
        None => 0,
        Some(last) => data.iter().position(|entry| cursor(entry) == *last).map(|at| at + 1).ok_or_else(|| {
            Problem::invalid("The list has no such entry any more. Nothing was read.")
                .error("cursor", "is none of its entries")
                .hint("begin again without a cursor")
        })?,
    };
    let most = limit(slice.limit)? as usize;
    let has_more = data.len() > begin.saturating_add(most);
    let data: Vec<T> = data.into_iter().skip(begin).take(most).collect();
    let next_cursor = data.last().filter(|_| has_more).map(cursor);
    Ok(Json(Page { data, next_cursor, has_more }))
}

/// The id by which pages of things that were made into JSON go on.
pub(super) fn id_of(thing: &Value) -> String {
    thing["id"].as_str().unwrap_or_default().to_owned()
}

/// A whole list that is short by nature.
pub(super) fn all<T>(data: Vec<T>) -> Json<Page<T>> {
    Json(Page { data, next_cursor: None, has_more: false })
}

/// Part of a list whose cursor is not the id of its last entry.
pub(super) fn part<T>(data: Vec<T>, next_cursor: Option<String>) -> Json<Page<T>> {
    Json(Page { data, has_more: next_cursor.is_some(), next_cursor })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(limit: Option<u32>, cursor: Option<&str>) -> Option<(Vec<u32>, Option<String>)> {
        let slice = Slice { limit, cursor: cursor.map(str::to_owned) };
        let Json(page) = sliced(vec![1, 2, 3, 4, 5], &slice, u32::to_string).ok()?;
        assert_eq!(page.has_more, page.next_cursor.is_some());
        Some((page.data, page.next_cursor))
    }

    #[test]
    fn a_short_list_comes_whole_or_in_pages() {
        assert_eq!(read(None, None), Some((vec![1, 2, 3, 4, 5], None)));
        assert_eq!(read(Some(2), None), Some((vec![1, 2], Some("2".to_owned()))));
        assert_eq!(read(Some(2), Some("2")), Some((vec![3, 4], Some("4".to_owned()))));
        assert_eq!(read(Some(2), Some("4")), Some((vec![5], None)));
        assert_eq!(read(Some(5), None), Some((vec![1, 2, 3, 4, 5], None)));
        assert_eq!(read(None, Some("5")), Some((Vec::new(), None)));
        assert_eq!((read(Some(0), None), read(Some(2), Some("9"))), (None, None));
    }
}
