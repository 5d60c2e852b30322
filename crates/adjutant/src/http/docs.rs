//! `/docs`: the API for people, written by the server itself: no script, nothing from elsewhere.

use std::fmt::Write;

use serde_json::Value;

/// Writes the description of the API as a page.
pub(super) fn render(document: &Value) -> String {
    let mut page = String::from(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>Adjutant API</title><h1>Adjutant API</h1>",
    );
    let text = |value: &Value| escaped(value.as_str().unwrap_or_default());
    let _ = write!(page, "<p>{}</p>", text(&document["info"]["description"]));
    page.push_str("<p>For programs: <a href=\"/api/v1/openapi.json\">openapi.json</a> (OpenAPI 3.1).</p>");
    for tag in document["tags"].as_array().into_iter().flatten() {
        let _ = write!(page, "<h2>{}</h2><p>{}.</p>", text(&tag["name"]), text(&tag["description"]));
        for (path, item) in document["paths"].as_object().into_iter().flatten() {
            for (method, operation) in item.as_object().into_iter().flatten() {
                if operation["tags"][0] == tag["name"] {
                    write_operation(&mut page, document, path, method, operation);
                }
            }
        }
    }
    page.push_str("</html>\n");
    page
}

fn write_operation(page: &mut String, document: &Value, path: &str, method: &str, operation: &Value) {
    let summary = [&operation["summary"], &operation["description"]].into_iter().find_map(Value::as_str);
    let _ = write!(
        page,
        "<details><summary><code>{} {}</code> {}</summary>",
        method.to_uppercase(),
        escaped(path),
        escaped(summary.unwrap_or_default())
    );
    if let Some(more) = operation["description"].as_str().filter(|more| Some(*more) != summary) {
        let _ = write!(page, "<p>{}</p>", escaped(more));
    }
    let mut rows = String::new();
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let word = |name: &str| escaped(parameter[name].as_str().unwrap_or_default());
        let _ = write!(rows, "<li><code>{}</code> ({}): {}</li>", word("name"), word("in"), word("description"));
    }
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    write_fields(&mut rows, document, body);
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        let named = response["$ref"].as_str().and_then(|path| path.rsplit('/').next());
        let response = named.map_or(response, |name| &document["components"]["responses"][name]);
        let about = escaped(response["description"].as_str().unwrap_or_default());
        let _ = write!(rows, "<li>answers <code>{status}</code>: {about}</li>");
    }
    let _ = write!(page, "<ul>{rows}</ul></details>");
}

/// The fields of a body, one line each.
fn write_fields(rows: &mut String, document: &Value, schema: &Value) {
    let named =
        schema["$ref"].as_str().or_else(|| schema["oneOf"].as_array()?.iter().find_map(|one| one["$ref"].as_str()));
    let Some(name) = named.and_then(|path| path.rsplit('/').next()) else { return };
    let schema = &document["components"]["schemas"][name];
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (field, about) in schema["properties"].as_object().into_iter().flatten() {
        let need = if required.contains(&field.as_str()) { "needed" } else { "may be left out" };
        let words = escaped(about["description"].as_str().unwrap_or_default());
        let _ = write!(rows, "<li><code>{}</code> (body, {need}): {words}</li>", escaped(field));
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_every_operation_and_nothing_of_it_is_markup() {
        let document = serde_json::json!({
            "info": {"description": "a <b> & c"}, "tags": [{"name": "runs", "description": "Runs"}],
            "paths": {"/runs/{run}": {"get": {"tags": ["runs"], "description": "One <run>.",
                "responses": {"200": {"description": "It"}}}}},
        });
        let page = render(&document);
        assert!(page.contains("GET /runs/{run}") && page.contains("One &lt;run&gt;."), "{page}");
        assert!(page.contains("a &lt;b&gt; &amp; c") && !page.contains("<script"), "{page}");
    }
}
