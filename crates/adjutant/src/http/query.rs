//! What may stand behind the `?`: what the description of the API names there, and nothing else. A slip in a name must not be
//! taken for a wish that was heard.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::problem::Problem;

/// The parameters of every operation.
#[derive(Clone)]
pub(super) struct Known(Arc<BTreeMap<(String, String), BTreeSet<String>>>);

impl Known {
    /// Those that a description names, of operations below an address.
    pub(super) fn of(below: &str, document: &utoipa::openapi::OpenApi) -> Self {
        let document = serde_json::to_value(document).unwrap_or_default();
        let mut known = BTreeMap::new();
        for (path, item) in document["paths"].as_object().into_iter().flatten() {
            for (method, operation) in item.as_object().into_iter().flatten() {
                let parameters = operation["parameters"].as_array().into_iter().flatten();
                let named = parameters.filter(|parameter| parameter["in"] == "query");
                let names = named.filter_map(|parameter| parameter["name"].as_str().map(str::to_owned)).collect();
                known.insert((method.to_uppercase(), format!("{below}{path}")), names);
            }
        }
        Self(Arc::new(known))
    }

    /// The first name that means nothing there.
    fn stranger<'q>(&self, method: &Method, path: &str, query: &'q str) -> Option<&'q str> {
        let names = self.0.get(&(method.as_str().to_owned(), path.to_owned()))?;
        let asked = query.split('&').map(|pair| pair.split_once('=').map_or(pair, |(name, _)| name));
        // One that is written in another way is left to whoever reads it.
        asked.filter(|name| !name.is_empty() && !name.contains(['%', '+'])).find(|name| !names.contains(*name))
    }
}

/// Refuses a request that asks for something that nobody would hear.
pub(super) async fn check(State(known): State<Known>, request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let query = request.uri().query();
    let stranger = query.and_then(|query| known.stranger(request.method(), path, query)).map(str::to_owned);
    match stranger {
        Some(name) => Problem::invalid("Something behind the `?` means nothing here. Nothing was done.")
            .error(name, "is no parameter of this operation")
            .hint("/docs lists what can be asked for")
            .into_response(),
        None => next.run(request).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_described_may_be_asked() {
        let known = BTreeMap::from([(("GET".to_owned(), "/runs".to_owned()), BTreeSet::from(["limit".to_owned()]))]);
        let known = Known(Arc::new(known));
        let of = |path, query| known.stranger(&Method::GET, path, query);
        for fine in ["limit=1", "", "limit", "&limit=2&", "l%69mit=1"] {
            assert_eq!(of("/runs", fine), None, "{fine}");
        }
        assert_eq!(of("/runs", "limit=1&sort=up"), Some("sort"));
        assert_eq!(of("/runs", "x"), Some("x"));
        assert_eq!(of("/elsewhere", "x=1"), None);
    }
}
