//! `version`: which Adjutant this is.

use serde_json::json;

use super::Context;
use crate::failure::Exit;

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(super) fn execute(context: &Context) -> Exit {
    let document =
        json!({"name": "adjutant", "version": VERSION, "os": std::env::consts::OS, "arch": std::env::consts::ARCH});
    context.print(&document, || vec![format!("adjutant {VERSION}")]);
    Exit::Done
}
