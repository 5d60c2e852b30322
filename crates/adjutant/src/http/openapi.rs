//! The description of the API, generated from the handlers, and a page to read it offline.

use axum::Json;
use axum::extract::State;
use axum::response::Html;
use serde_json::Value;
use utoipa::OpenApi;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ArrayItems, ObjectBuilder, Type};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{ContentBuilder, Header, Ref, RefOr, Required, ResponseBuilder, Schema};

use super::document::Document;

const INTRODUCTION: &str = "Adjutant runs AI agents that act only on your authority. Sign in with a cookie (a browser) or \
    with `Authorization: Bearer adj_…` (a program). Errors are RFC 9457 problems that say what happened, what was not done, \
    and what to do next. Unknown request fields are refused; ignore unknown response fields. Send an `Idempotency-Key` with \
    a POST to make sending it again safe.";

/// A problem (RFC 9457).
#[derive(utoipa::ToSchema)]
#[schema(as = Problem)]
#[allow(dead_code, reason = "describes what `Problem` writes")]
pub(super) struct ProblemShape {
    /// A page of this server about the kind of problem.
    r#type: String,
    /// The kind in words.
    title: String,
    /// The status of the answer.
    status: u16,
    /// What happened, and what was not done.
    detail: String,
    /// The kind as a word that programs may rely on. `/problems/{code}` says what it means.
    #[schema(example = "not_found")]
    code: String,
    /// What to do next.
    hint: Option<String>,
    /// Finds the request in the server's log.
    trace_id: Option<String>,
    /// What is wrong, and where.
    errors: Option<Vec<Flaw>>,
    /// The run that keeps the chat busy.
    run_id: Option<String>,
    /// When a budget begins anew.
    resumes_at: Option<crate::wire::Moment>,
    /// What was decided before.
    decision: Option<EarlierDecision>,
    /// What the item shows now, where the decision was about something older.
    approval: Option<crate::wire::Item>,
}

/// What was decided before.
#[derive(utoipa::ToSchema)]
#[allow(dead_code, reason = "describes what `Problem` writes")]
struct EarlierDecision {
    /// `approve`, `reject`, …
    decision: String,
    /// Who decided.
    decided_by: String,
    /// How far it reaches.
    scope: String,
}

/// One thing that is wrong.
#[derive(utoipa::ToSchema)]
#[allow(dead_code, reason = "describes what `Problem` writes")]
struct Flaw {
    /// A JSON pointer, or the name of a parameter.
    pointer: String,
    /// What is wrong there.
    detail: String,
}

#[derive(OpenApi)]
#[openapi(
    info(title = "Adjutant", version = "1", description = INTRODUCTION, license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")),
    components(schemas(ProblemShape)),
    tags(
        (name = "sign-in", description = "Coming in and going out"),
        (name = "people", description = "Yourself, others, and tokens"),
        (name = "workspaces", description = "Tenants and their members"),
        (name = "notebooks", description = "Folder trees of files"),
        (name = "files", description = "What is in a notebook"),
        (name = "agents", description = "Versioned configurations"),
        (name = "chats", description = "Threads of runs"),
        (name = "runs", description = "Executions and their events"),
        (name = "approvals", description = "What waits for a person"),
        (name = "rules", description = "Standing answers"),
        (name = "tools", description = "What agents can call"),
        (name = "audit", description = "Who did what"),
        (name = "models", description = "What can be asked, and what it costs"),
        (name = "money", description = "What was spent, and what may be"),
        (name = "settings", description = "The instance, and its stop switch"),
        (name = "older clients", description = "The same things under other names: an interaction is a run, a session a chat"),
        (name = "events", description = "What changes, as it happens"),
    )
)]
struct Base;

/// The document before any handler is in it.
pub(super) fn base() -> utoipa::openapi::OpenApi {
    Base::openapi()
}

/// Says how to sign in, and that every operation may answer with a problem.
pub(super) fn finish(mut document: utoipa::openapi::OpenApi) -> utoipa::openapi::OpenApi {
    let components = document.components.get_or_insert_default();
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("A token: adj_…")).build();
    components.add_security_scheme("token", SecurityScheme::Http(bearer));
    let cookie =
        ApiKeyValue::with_description("adj", "Set by signing in; called `__Host-adj` where `public_url` is https");
    components.add_security_scheme("cookie", SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
    document.security = Some(vec![
        utoipa::openapi::SecurityRequirement::new("token", Vec::<String>::new()),
        utoipa::openapi::SecurityRequirement::new("cookie", Vec::<String>::new()),
    ]);
    let elsewhere = ResponseBuilder::new()
        .description("The stream of the run that a request with the same Idempotency-Key started: see `Location`")
        .header("Location", header(WHERE))
        .build();
    for (status, description) in PROBLEMS {
        components.responses.insert(problem_name(status), RefOr::T(problem(description)));
    }
    name_entries(components);
    document.servers = Some(vec![utoipa::openapi::Server::new("/")]);
    // What stands for several parts of a path in the router is one parameter for everybody else.
    let paths = std::mem::take(&mut document.paths.paths);
    document.paths.paths = paths.into_iter().map(|(path, item)| (path.replace("{*", "{"), item)).collect();
    for (path, item) in &mut document.paths.paths {
        let others = [&mut item.put, &mut item.delete, &mut item.patch].into_iter().flatten();
        let others = others.map(|operation| (Method::Changes, operation));
        let operations = item.get.as_mut().map(|operation| (Method::Reads, operation)).into_iter().chain(others);
        let operations = operations.chain(item.post.as_mut().map(|operation| (Method::Posts, operation)));
        for (method, operation) in operations {
            let is_post = method == Method::Posts;
            let streams = operation.responses.responses.values().any(|response| match response {
                RefOr::T(response) => response.content.contains_key("text/event-stream"),
                RefOr::Ref(_) => false,
            });
            if streams && is_post {
                operation.responses.responses.insert("303".to_owned(), RefOr::T(elsewhere.clone()));
                locate(operation);
            }
            refuse(operation, method, path, streams);
            ask_by_header(operation, is_post, streams);
        }
    }
    document
}

/// What kind of method an operation is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Method {
    Reads,
    Posts,
    /// Replaces, changes or takes away.
    Changes,
}

/// Operations beside those that stream a run that begin one, or ask a provider themselves.
const ASKING: [&str; 5] =
    ["create_embeddings", "refresh_models", "resume_run", "send_session_message", "test_provider_key"];

/// Operations on what can be over: a run or a chat that was erased, a question that nobody answered in time, a link.
const PASSING: [&str; 6] = ["{run}", "{chat}", "{approval}", "/invites/accept", "/setup", "/password/renew"];

/// Operations that decide about what somebody saw.
const DECIDING: [&str; 3] = ["decide_approval", "decide_approvals", "approve_interaction"];

/// Says with which problems an operation may answer, each by its status: those that follow from what it is given and what it
/// is about, and those that may happen to any. An answer with another status is a mistake, here or there.
fn refuse(operation: &mut Operation, method: Method, path: &str, streams: bool) {
    let parameters = || {
        operation.parameters.iter().flatten().filter_map(|parameter| match parameter {
            RefOr::T(parameter) => Some(parameter),
            RefOr::Ref(_) => None,
        })
    };
    let name = operation.operation_id.as_deref().unwrap_or_default();
    // Whoever is signed in may name a workspace in a header, and is told of words behind the `?` that mean nothing.
    let is_closed = operation.security.is_none();
    let is_write = method != Method::Reads;
    let has_body = operation.request_body.is_some();
    let asks = streams && method == Method::Posts || ASKING.contains(&name);
    let may = |status: &str| match status {
        "400" | "413" | "415" => has_body,
        "401" | "403" => is_closed || is_write,
        "402" | "502" | "504" => asks,
        "404" => is_closed,
        "409" => is_write,
        "410" => PASSING.iter().any(|part| path.contains(part)),
        "412" => parameters().any(|parameter| parameter.name == "If-Match") || DECIDING.contains(&name),
        "422" => is_closed || has_body,
        "428" => parameters().any(|parameter| parameter.name == "If-Match"),
        _ => true,
    };
    let statuses: Vec<&str> = PROBLEMS.iter().map(|(status, _)| *status).filter(|status| may(status)).collect();
    for status in statuses {
        let refused = RefOr::Ref(Ref::from_response_name(problem_name(status)));
        operation.responses.responses.entry(status.to_owned()).or_insert(refused);
    }
}

/// The problems there are, by the status they come with.
const PROBLEMS: [(&str, &str); 18] = [
    ("400", "The body is no JSON, or broke off"),
    ("401", "Nobody is signed in, or the token is no good any more"),
    ("402", "There is no money left for it"),
    ("403", "You, or your token, may not do this"),
    ("404", "There is none, or none that you may see"),
    ("409", "It does not go together with what is there now, or with another use of the Idempotency-Key"),
    ("410", "It was there and is over, or what was said there was erased"),
    ("412", "It has changed since: the tag is of an older version"),
    ("413", "The body is too large"),
    ("415", "The body is of another type than this takes"),
    ("421", "The server was called by another name than its own"),
    ("422", "Something that was sent cannot be used; `errors` says what"),
    ("428", "It has to be said which version is meant, by If-Match"),
    ("429", "Too much in too short a time; see `Retry-After`"),
    ("500", "The server made a mistake; its log knows more"),
    ("502", "The model's provider refused, failed or broke off"),
    ("503", "The server has too much to do, or something that it needs is away; see `Retry-After`"),
    ("504", "The model's provider took too long"),
];

fn problem_name(status: &str) -> String {
    format!("Problem{status}")
}

fn problem(description: &str) -> utoipa::openapi::Response {
    let content = ContentBuilder::new().schema(Some(RefOr::Ref(Ref::from_schema_name("Problem")))).build();
    ResponseBuilder::new()
        .description(description)
        .content("application/problem+json", content)
        .header("Retry-After", header("Seconds after which to try again, where that helps"))
        .build()
}

/// Where a run is that was started.
const WHERE: &str = "Where the run is";

fn header(description: &str) -> Header {
    HeaderBuilder::new().description(Some(description)).schema(Some(text())).build()
}

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

/// Says that what is started is told with where it is.
fn locate(operation: &mut Operation) {
    for status in ["200", "202"] {
        if let Some(RefOr::T(response)) = operation.responses.responses.get_mut(status) {
            response.headers.insert("Location".to_owned(), header(WHERE).into());
        }
    }
}

/// Says which headers an operation looks at, beside those that are its own.
fn ask_by_header(operation: &mut Operation, is_post: bool, streams: bool) {
    let is_closed = operation.security.is_none();
    let last = "The `id` of the last event that you have";
    let key = "A word of your own: sent again with it, the request is answered again and done once";
    let workspace = "The one workspace that the request is about: id or short name";
    let looked_at = [
        (streams && !is_post, "Last-Event-ID", last, text().pattern(Some("^[0-9]{1,18}$"))),
        (
            is_closed && is_post,
            "Idempotency-Key",
            key,
            text().min_length(Some(1)).max_length(Some(128)).pattern(Some("^[!-~]+$")),
        ),
        (is_closed, "Adjutant-Workspace", workspace, text()),
    ];
    for (_, name, description, schema) in looked_at.into_iter().filter(|(is_looked_at, ..)| *is_looked_at) {
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Header)
            .required(Required::False)
            .description(Some(description))
            .schema(Some(schema));
        operation.parameters.get_or_insert_default().push(RefOr::T(parameter.build()));
    }
}

/// Gives the entries of pages their names: a page of a kind of thing is described with the whole kind inside.
fn name_entries(components: &mut utoipa::openapi::Components) {
    let mut entries = Vec::new();
    for (page, schema) in &mut components.schemas {
        let Some(name) = page.strip_prefix("Page_") else { continue };
        let RefOr::T(Schema::Object(page)) = schema else { continue };
        let Some(RefOr::T(Schema::Array(list))) = page.properties.get_mut("data") else { continue };
        let named = ArrayItems::from(Ref::from_schema_name(name));
        if let ArrayItems::RefOrSchema(entry) = std::mem::replace(&mut list.items, named) {
            entries.push((name.to_owned(), *entry));
        }
    }
    for (name, entry) in entries {
        components.schemas.entry(name).or_insert(entry);
    }
}

/// The document.
pub(super) async fn json(State(document): State<Document>) -> Json<Value> {
    Json(document.value().clone())
}

/// The document as a page, without scripts and without anything from elsewhere.
pub(super) async fn page(State(document): State<Document>) -> Html<String> {
    Html(super::docs::render(document.value()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The golden copy, so that a change of the contract is seen in review.
    const GOLDEN: &str = include_str!("../../../../docs/openapi.json");

    #[test]
    fn the_description_of_the_api_is_the_one_in_the_docs() {
        let made = super::super::document();
        let golden: Value = serde_json::from_str(GOLDEN).unwrap_or_default();
        assert!(made == golden, "the API changed: write it down with `make openapi`");
    }

    #[test]
    fn every_status_that_is_described_is_one_of_a_kind_of_problem() {
        use super::super::problem::Kind;
        let made = super::super::document();
        for (place, operation) in operations(&made) {
            for status in operation["responses"].as_object().into_iter().flatten().map(|(status, _)| status) {
                let known = Kind::ALL.iter().any(|kind| kind.status().as_str() == status);
                assert!(known || status.starts_with(['2', '3']), "{place} is described to answer {status}");
            }
        }
    }

    /// Every operation of the description, with its address.
    fn operations(document: &Value) -> Vec<(String, Value)> {
        let paths = document["paths"].as_object().into_iter().flatten();
        let of = |(path, item): (&String, &Value)| {
            let item = item.as_object().cloned().unwrap_or_default();
            let path = path.clone();
            item.into_iter().map(move |(method, operation)| (format!("{method} {path}"), operation)).collect::<Vec<_>>()
        };
        paths.flat_map(of).collect()
    }

    #[test]
    fn every_operation_has_a_name_of_its_own() {
        let mut named = std::collections::BTreeMap::new();
        for (place, operation) in operations(&super::super::document()) {
            let name = operation["operationId"].as_str().unwrap_or_default().to_owned();
            assert!(!name.is_empty(), "{place} has no name");
            let other = named.insert(name.clone(), place.clone());
            assert!(other.is_none(), "{place} and {} are both called {name}", other.unwrap_or_default());
        }
    }

    #[test]
    fn every_json_answer_says_what_it_is_made_of() {
        for (place, operation) in operations(&super::super::document()) {
            for (status, response) in operation["responses"].as_object().into_iter().flatten() {
                let schema = &response["content"]["application/json"]["schema"];
                let bare = schema["type"] == "object" && schema.get("properties").is_none();
                let bare = bare || schema["items"]["type"] == "object" && schema["items"].get("properties").is_none();
                assert!(!bare, "{place} answers {status} with anything");
            }
        }
    }
}
