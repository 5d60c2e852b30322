//! What is asked of arguments beside their schema: web and mail addresses, single lines, options of commands, ids and
//! memory keys (T7, T9). Every element of a list is judged.

use std::collections::BTreeSet;

use serde_json::Value;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

use super::{Question, Verdict, shown};
use crate::guard::host::{HostPolicy, HostSpec, Method, NetCaps, Url};
use crate::guard::scope::Denied;
use crate::guard::{mail, plane};
use crate::tool::ToolSpec;

/// What of the world outside its notebook an agent reaches. The default reaches nothing.
#[derive(Debug, Clone)]
pub struct Outside {
    /// The hosts it may talk to.
    pub hosts: HostPolicy,
    /// The domains it may write mail to.
    pub mail_domains: BTreeSet<String>,
    /// Ids of things that are its own.
    pub own_ids: BTreeSet<String>,
    /// Memory keys that may not be written, beside those that nobody may write.
    pub reserved_memory: BTreeSet<String>,
}

impl Default for Outside {
    fn default() -> Self {
        Self {
            hosts: HostPolicy::compile(&HostSpec::default()),
            mail_domains: BTreeSet::new(),
            own_ids: BTreeSet::new(),
            reserved_memory: BTreeSet::new(),
        }
    }
}

/// What is asked of one text.
type Check<'a> = dyn Fn(&str) -> Result<(), Denied> + 'a;

/// The first argument that is not allowed (check 5).
pub(super) fn not_allowed(question: &Question<'_>, spec: &ToolSpec, arguments: &Value) -> Option<Verdict> {
    let outside = question.outside;
    let checks = &*spec.checks;
    let url = |text: &str| {
        // What a request does to the other side is the tool's own flag and level; here it is about where it goes.
        let anything = NetCaps { read: true, write: true };
        Url::parse(text).and_then(|url| outside.hosts.check_url(&url, Method::Get, anything))
    };
    let email = |text: &str| mail::check(text, outside.mail_domains.iter().map(String::as_str));
    let own = |text: &str| match outside.own_ids.contains(text) {
        true => Ok(()),
        false => Err(Denied::firm("T7", "own_id", "it is not an id of this agent's own things".to_owned())),
    };
    let key = |text: &str| {
        let words = plane::RESERVED_MEMORY.iter().copied();
        match plane::is_reserved_key(text, words.chain(outside.reserved_memory.iter().map(String::as_str))) {
            false => Ok(()),
            true => Err(Denied::firm("T9", "reserved_key", "this memory key is reserved".to_owned())),
        }
    };
    let lists: [(&[_], &Check<'_>); 6] = [
        (&checks.urls, &url),
        (&checks.emails, &email),
        (&checks.single_line, &single_line),
        (&checks.no_option, &no_option),
        (&checks.own_ids, &own),
        (&checks.memory_keys, &key),
    ];
    lists.into_iter().find_map(|(names, check)| {
        names.iter().find_map(|name| {
            let reason = |denied: Denied| {
                let reason = format!("`{}` is not allowed: {}.", shown(name), denied.reason);
                Verdict::deny(denied.rule, reason, denied.smallest_grant)
            };
            match texts(arguments, name) {
                Some(texts) => texts.into_iter().find_map(|text| check(text).err()).map(reason),
                None => {
                    Some(Verdict::deny("T7", format!("`{}` must be a text, or a list of texts.", shown(name)), None))
                }
            }
        })
    })
}

/// The texts in an argument; none where it is anything else, because what cannot be judged is not allowed.
fn texts<'a>(arguments: &'a Value, name: &str) -> Option<Vec<&'a str>> {
    match arguments.get(name) {
        Some(Value::String(text)) => Some(vec![text]),
        Some(Value::Array(items)) => items.iter().map(Value::as_str).collect(),
        Some(Value::Null) | None => Some(Vec::new()),
        Some(Value::Bool(_) | Value::Number(_) | Value::Object(_)) => None,
    }
}

/// No control character, no line or paragraph separator.
fn single_line(text: &str) -> Result<(), Denied> {
    let breaks = |letter: char| {
        matches!(
            letter.general_category(),
            GeneralCategory::Control | GeneralCategory::LineSeparator | GeneralCategory::ParagraphSeparator
        )
    };
    if text.chars().any(breaks) {
        return Err(Denied::firm("T7", "single_line", "it must be one line without control characters".to_owned()));
    }
    Ok(())
}

/// What is handed to a command must not read as one of its options (X2).
fn no_option(text: &str) -> Result<(), Denied> {
    if text.starts_with('-') {
        return Err(Denied::firm("T7", "option", "it may not begin with `-`".to_owned()));
    }
    Ok(())
}
