//! Templates: files in the notebook's `/templates` folder with two variables, `{{date}}` and `{{title}}`.

use adjutant_core::guard::path::NotePath;
use adjutant_core::guard::scope::{Action, Kind};
use adjutant_core::time::Time;
use adjutant_core::tool::ToolOutcome;
use jiff::tz::TimeZone;

use super::{Exists, allowed, failed, notebook, path};
use crate::notebook::FileError;
use crate::world::World;

/// The folder templates live in.
pub(super) const FOLDER: &str = "/templates";

/// The text of a template. Reading it obeys the scope and the rules like any other reading.
pub(super) async fn load(world: &World, name: &str) -> Result<String, ToolOutcome> {
    let folder = path(FOLDER)?;
    let path = folder.child(name).map_err(|invalid| {
        ToolOutcome::failed(format!("`{}` is not the name of a template: {invalid}.", name.escape_debug()))
    })?;
    allowed(world, Action::Read, &path, Kind::File, Exists::Yes)?;
    let looked = path.clone();
    match notebook(world)?.run(move |notebook| notebook.read(&looked)).await {
        Ok(content) => Ok(content.text().map_err(|error| failed(&path, &error))?.to_owned()),
        Err(FileError::NotFound) => Err(missing(world, &folder, name).await),
        Err(error) => Err(failed(&path, &error)),
    }
}

/// Says which templates there are, as far as the agent may read them.
async fn missing(world: &World, folder: &NotePath, name: &str) -> ToolOutcome {
    let looked = folder.clone();
    let listing = match notebook(world) {
        Ok(notebook) => notebook.run(move |notebook| notebook.list(&looked)).await.unwrap_or_default(),
        Err(outcome) => return outcome,
    };
    let names: Vec<&str> = listing
        .entries
        .iter()
        .filter(|entry| entry.kind == Kind::File)
        .filter(|entry| allowed(world, Action::Read, &entry.path, Kind::File, Exists::Yes).is_ok())
        .filter_map(|entry| entry.path.name())
        .take(20)
        .collect();
    let known = if names.is_empty() { "there are none".to_owned() } else { format!("there are: {}", names.join(", ")) };
    ToolOutcome::failed(format!("There is no template `{name}` in {folder}; {known}. Nothing was created."))
}

/// The template with its variables filled in: one pass, so that a title cannot bring in a variable.
pub(super) fn fill(template: &str, date: &str, title: &str) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(at) = rest.find("{{") {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let (value, taken) = match from.find("}}").map(|end| (from[2..end].trim(), end + 2)) {
            Some(("date", taken)) => (date, taken),
            Some(("title", taken)) => (title, taken),
            // Other braces belong to the text.
            Some(_) | None => ("{{", 2),
        };
        out.push_str(value);
        rest = &from[taken..];
    }
    out.push_str(rest);
    out
}

/// What a file is called without its ending.
pub(super) fn title_of(path: &NotePath) -> &str {
    let name = path.name().unwrap_or_default();
    match name.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        Some(_) | None => name,
    }
}

/// The day it is in a zone, and the days before it, as `2026-01-30`.
pub(super) fn days(now: Time, zone: &TimeZone, count: usize) -> Vec<String> {
    let stamp = jiff::Timestamp::from_millisecond(now.millis()).unwrap_or_default();
    std::iter::successors(Some(stamp.to_zoned(zone.clone()).date()), |date| date.yesterday().ok())
        .take(count)
        .map(|date| date.to_string())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_in_once_and_other_braces_stay() {
        let template = "# {{title}}\n{{ date }} {{other}} {{ {{title}} }} {{";
        assert_eq!(fill(template, "2026-01-30", "{{date}}"), "# {{date}}\n2026-01-30 {{other}} {{ {{date}} }} {{");
    }

    #[test]
    fn the_title_is_the_name_without_its_ending() {
        for (path, title) in
            [("/a/Plan for May.md", "Plan for May"), ("/a.b.md", "a.b"), ("/.env", ".env"), ("/x", "x")]
        {
            assert_eq!(title_of(&NotePath::parse(path).unwrap()), title);
        }
    }

    #[test]
    fn the_date_is_the_one_of_the_zone() {
        let now: Time = "2026-03-01T23:30:00Z".parse().unwrap();
        assert_eq!(days(now, &TimeZone::UTC, 3), ["2026-03-01", "2026-02-28", "2026-02-27"]);
        assert_eq!(days(now, &TimeZone::get("Europe/Berlin").unwrap(), 1), ["2026-03-02"]);
    }
}
