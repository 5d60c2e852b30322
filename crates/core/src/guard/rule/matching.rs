//! What a standing rule says about a call's arguments: where it acts and what it is called with. Pure; a pattern that is
//! broken matches nothing.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::canonical;
use crate::content::Hash;
use crate::guard::host::Url;
use crate::guard::path::NotePath;
use crate::guard::pattern::{Cut, Pattern};
use crate::tool::Touch;

/// The argument that says what is done at a web address.
const METHOD: &str = "method";

/// What a call is called with. Every field that is given must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Match {
    /// The paths it touches (every one, where the rule allows; any, also one it only takes text from, where it asks or
    /// denies) lie in one of these folder patterns, at any depth.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<String>,
    /// The same for plain paths of folders: what it touches is one of them, or lies directly in one and is not hidden.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub directly_in: Vec<String>,
    /// The web addresses among its arguments (every one or any, as with paths) are of these hosts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Arguments by name, each a text in which `*` stands for any run of characters. A path is compared in its normal form,
    /// a list element by element (every one or any, as with paths).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, String>,
    /// Its arguments are exactly these, by their canonical hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exactly: Option<Hash>,
}

/// How much of a call has to lie in a rule's folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Every path: what is allowed is allowed as a whole.
    Whole,
    /// Some path: what may not be touched may not be touched beside something else either.
    Part,
}

/// The paths of a call, read once and then held against many rules. What is no path stays out of every folder.
pub(super) struct Paths<'a> {
    touched: Vec<(&'a str, Option<NotePath>)>,
    sources: &'a [NotePath],
}

impl<'a> Paths<'a> {
    pub(super) fn of(touches: &'a [Touch], sources: &'a [NotePath]) -> Self {
        let touched = touches.iter().map(|touch| (touch.path.as_str(), NotePath::parse(&touch.path).ok())).collect();
        Self { touched, sources }
    }
}

/// A call as the rules see it: what several of them would work out is worked out once.
pub(super) struct Seen<'a> {
    arguments: &'a Value,
    schema: &'a Value,
    hash: OnceCell<Hash>,
    hosts: OnceCell<Vec<String>>,
    given: OnceCell<BTreeMap<&'a str, Argument<'a>>>,
    touched: Vec<Place<'a>>,
    sources: Vec<Place<'a>>,
}

/// An argument, and the normal form of it or of each of its elements: of what is a path that the call touches, or a web address.
struct Argument<'a> {
    value: &'a Value,
    normals: Vec<Option<String>>,
}

struct Place<'a> {
    path: &'a str,
    cut: Option<Cut<'a>>,
    folder: Option<&'a str>,
}

impl<'a> Place<'a> {
    fn new(path: &'a str, parsed: Option<&'a NotePath>) -> Self {
        Self { path, cut: parsed.map(Cut::new), folder: plain_folder(path) }
    }
}

impl<'a> Seen<'a> {
    pub(super) fn new(arguments: &'a Value, schema: &'a Value, paths: &'a Paths<'_>) -> Self {
        let touched = paths.touched.iter().map(|(path, parsed)| Place::new(path, parsed.as_ref()));
        let sources = paths.sources.iter().map(|path| Place::new(path.as_str(), Some(path)));
        Self::with(arguments, schema, touched.collect(), sources.collect())
    }

    /// A call that touches one path.
    pub(super) fn one(arguments: &'a Value, path: &'a NotePath) -> Self {
        Self::with(arguments, &Value::Null, vec![Place::new(path.as_str(), Some(path))], Vec::new())
    }

    const fn with(arguments: &'a Value, schema: &'a Value, touched: Vec<Place<'a>>, sources: Vec<Place<'a>>) -> Self {
        Self {
            arguments,
            schema,
            hash: OnceCell::new(),
            hosts: OnceCell::new(),
            given: OnceCell::new(),
            touched,
            sources,
        }
    }

    fn hash(&self) -> Hash {
        *self.hash.get_or_init(|| canonical::hash(self.arguments))
    }

    fn hosts(&self) -> &[String] {
        let values = || self.arguments.as_object().into_iter().flat_map(|object| object.values());
        self.hosts.get_or_init(|| values().flat_map(hosts_in).collect())
    }

    /// An argument, or what counts where the model gave none.
    fn argument(&self, name: &str) -> Option<&Argument<'a>> {
        let given = self.given.get_or_init(|| {
            let properties = self.schema.get("properties").and_then(Value::as_object);
            let defaults = properties.into_iter().flatten();
            let defaults = defaults.filter_map(|(name, property)| Some((name, property.get("default")?)));
            let written = self.arguments.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
            defaults.chain(written).map(|(name, value)| (name.as_str(), self.read(value))).collect()
        });
        given.get(name)
    }

    fn read(&self, value: &'a Value) -> Argument<'a> {
        let normal = |value: &Value| self.normal(value.as_str()?);
        Argument { value, normals: elements(value).iter().map(normal).collect() }
    }

    fn is_named(&self, name: &str, pattern: &str, reach: Reach) -> bool {
        let Some(Argument { value, normals }) = self.argument(name) else { return false };
        let mut each = elements(value).iter().zip(normals);
        let one = |(value, normal): (&Value, &Option<String>)| is_one(value, normal.as_deref(), pattern, reach);
        match (value, reach) {
            (Value::Array(items), Reach::Whole) => !items.is_empty() && each.all(one),
            (Value::Array(_), Reach::Part) => each.any(one) || is_like(pattern, &canonical::text(value)),
            (_, _) => each.all(one),
        }
    }

    /// The normal form of a path that the call touches, or of a web address.
    fn normal(&self, text: &str) -> Option<String> {
        let touched = |path: &NotePath| self.touched.iter().any(|place| place.path == path.as_str());
        let path = NotePath::parse(text).ok().filter(touched).map(|path| path.as_str().to_owned());
        path.or_else(|| Url::parse(text).ok().map(|url| url.as_str().to_owned()))
    }
}

/// Whether one value is like a pattern. A path and a web address have many spellings, and a rule is about what they lead to: an
/// allow by a pattern looks at the normal form alone, anything else at what was written as well.
fn is_one(value: &Value, normal: Option<&str>, pattern: &str, reach: Reach) -> bool {
    let Some(text) = value.as_str() else { return is_like(pattern, &canonical::text(value)) };
    let written = normal.is_none() || reach == Reach::Part || !pattern.contains('*');
    // A pattern may leave out the first slash, as a path may.
    let is_normal =
        |normal: &str| is_like(pattern, normal) || normal.strip_prefix('/').is_some_and(|rest| is_like(pattern, rest));
    (written && is_like(pattern, text)) || normal.is_some_and(is_normal)
}

impl Match {
    /// The narrow place of a lasting yes to a call: the folders of its paths, the hosts of its web addresses with the method
    /// that was used there, or its very arguments where it has neither. A hidden file is not covered by its folder, so for
    /// one the arguments count.
    #[must_use]
    pub fn of_call(arguments: &Value, touches: &[Touch], urls: &[Arc<str>]) -> Self {
        let mut hosts: Vec<String> = urls.iter().filter_map(|name| arguments.get(&**name)).flat_map(hosts_in).collect();
        // A yes to reading from a host is none to writing there.
        let method = arguments.get(METHOD).and_then(Value::as_str);
        if touches.is_empty() && !hosts.is_empty() && !method.is_some_and(|method| method.contains('*')) {
            hosts.sort_unstable();
            hosts.dedup();
            let arguments = method.map(|method| (METHOD.to_owned(), method.to_owned())).into_iter().collect();
            return Self { hosts, arguments, ..Self::default() };
        }
        let folders: Option<Vec<String>> =
            touches.iter().map(|touch| plain_folder(&touch.path).map(str::to_owned)).collect();
        match folders.filter(|folders| !folders.is_empty()) {
            Some(mut folders) => {
                folders.sort_unstable();
                folders.dedup();
                Self { directly_in: folders, ..Self::default() }
            }
            None => Self { exactly: Some(canonical::hash(arguments)), ..Self::default() },
        }
    }

    /// Whether it looks at what a call is called with, beside its paths.
    pub(super) fn looks_at_arguments(&self) -> bool {
        !self.arguments.is_empty() || self.exactly.is_some() || !self.hosts.is_empty()
    }

    /// Whether nothing is asked of the call.
    #[must_use]
    pub fn is_anything(&self) -> bool {
        *self == Self::default()
    }

    /// The folder patterns; a broken one matches nothing.
    pub(super) fn patterns(&self) -> Vec<Pattern> {
        self.folders.iter().filter_map(|text| Pattern::parse(text).ok()).collect()
    }

    pub(super) fn holds(&self, patterns: &[Pattern], call: &Seen<'_>, reach: Reach) -> bool {
        // A rule about folders says nothing about a call that touches none.
        let placed = |inside: &dyn Fn(&Place<'_>) -> bool| match reach {
            Reach::Whole => !call.touched.is_empty() && call.touched.iter().all(inside),
            Reach::Part => call.touched.iter().chain(&call.sources).any(inside),
        };
        // A hidden name has to be named to be allowed (P12), and is not safe from a no because it is hidden.
        let covers = |pattern: &Pattern, cut: &Cut<'_>| match reach {
            Reach::Whole => pattern.grants_cut(cut),
            Reach::Part => pattern.leads_to_cut(cut),
        };
        let below = |place: &Place<'_>| {
            place.cut.as_ref().is_some_and(|cut| patterns.iter().any(|pattern| covers(pattern, cut)))
        };
        let beside = |place: &Place<'_>| {
            self.directly_in.iter().any(|known| known == place.path || Some(known.as_str()) == place.folder)
        };
        let hosted = || match (reach, call.hosts()) {
            (Reach::Whole, hosts) => !hosts.is_empty() && hosts.iter().all(|host| self.hosts.contains(host)),
            (Reach::Part, hosts) => hosts.iter().any(|host| self.hosts.contains(host)),
        };
        (self.folders.is_empty() || placed(&below))
            && (self.directly_in.is_empty() || placed(&beside))
            && (self.hosts.is_empty() || hosted())
            && self.arguments.iter().all(|(name, pattern)| call.is_named(name, pattern, reach))
            && self.exactly.is_none_or(|exact| exact == call.hash())
    }

    /// The place in words, with a blank before it.
    #[must_use]
    pub fn in_words(&self) -> String {
        let mut words = String::new();
        for (how, folders) in [(" in ", &self.folders), (" directly in ", &self.directly_in)] {
            if !folders.is_empty() {
                words.extend([how, &folders.join(", ")]);
            }
        }
        if !self.hosts.is_empty() {
            words.extend([" at ", &self.hosts.join(", ")]);
        }
        for (name, pattern) in &self.arguments {
            words.extend([" with ", name, " like `", pattern, "`"]);
        }
        if self.exactly.is_some() {
            words.push_str(" with exactly these arguments");
        }
        words
    }
}

/// The hosts of the web addresses in an argument.
fn hosts_in(value: &Value) -> Vec<String> {
    let host = |value: &Value| Url::parse(value.as_str()?).ok().map(|url| url.host().to_owned());
    elements(value).iter().filter_map(host).collect()
}

/// The elements of a list; anything else is the only one.
fn elements(value: &Value) -> &[Value] {
    if let Value::Array(items) = value { items } else { std::slice::from_ref(value) }
}

/// The folder that a path lies in; none for a hidden name, which no folder speaks for (P12).
fn plain_folder(path: &str) -> Option<&str> {
    let (folder, name) = path.rsplit_once('/')?;
    let folder = if folder.is_empty() { "/" } else { folder };
    (!name.starts_with('.')).then_some(folder)
}

/// Whether a text is like a pattern in which `*` stands for any run of characters. One pass: the first place each piece
/// fits is as good as any later one.
fn is_like(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for piece in middle.split('*').filter(|piece| !piece.is_empty()) {
        let Some(at) = text.find(piece) else { return false };
        text = &text[at + piece.len()..];
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn holds(rule: &Match, arguments: &Value, touches: &[Touch], reach: Reach) -> bool {
        rule.holds(&rule.patterns(), &Seen::new(arguments, &Value::Null, &Paths::of(touches, &[])), reach)
    }

    fn touch(path: &str) -> Touch {
        Touch { path: path.to_owned(), changes: true }
    }

    #[test]
    fn a_star_stands_for_any_run_of_characters_and_the_rest_is_plain() {
        for (pattern, text) in [("draft.*", "draft."), ("*", ""), ("a*b*c", "aXbbYc"), ("*x", "xx"), ("a", "a")] {
            assert!(is_like(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("draft.*", "draft"), ("a*a", "a"), ("a*b*c", "acb"), ("a", "ab"), ("a?", "ab")] {
            assert!(!is_like(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn a_named_argument_must_be_there_and_be_like_its_pattern() {
        let rule = Match { arguments: [("key".to_owned(), "draft.*".to_owned())].into(), ..Match::default() };
        assert!(holds(&rule, &json!({"key": "draft.1"}), &[], Reach::Whole));
        assert!(!holds(&rule, &json!({"key": "final"}), &[], Reach::Whole));
        assert!(!holds(&rule, &json!({"value": "draft.1"}), &[], Reach::Whole), "a missing argument is like nothing");
        let number = Match { arguments: [("n".to_owned(), "1*".to_owned())].into(), ..Match::default() };
        assert!(
            holds(&number, &json!({"n": 12}), &[], Reach::Whole)
                && !holds(&number, &json!({"n": 21}), &[], Reach::Whole)
        );
    }

    #[test]
    fn a_path_is_compared_in_its_normal_form_however_it_is_written() {
        let rule = Match { arguments: [("path".to_owned(), "/private/*".to_owned())].into(), ..Match::default() };
        let bare = Match { arguments: [("path".to_owned(), "private/*".to_owned())].into(), ..Match::default() };
        for text in ["/private/pay.md", "private/pay.md", "//private//pay.md", "/./private/./pay.md"] {
            for (rule, reach) in [(&rule, Reach::Part), (&rule, Reach::Whole), (&bare, Reach::Part)] {
                assert!(holds(rule, &json!({"path": text}), &[touch("/private/pay.md")], reach), "{text} {reach:?}");
            }
        }
        let other = json!({"path": "/notes/private/pay.md"});
        assert!(!holds(&rule, &other, &[touch("/notes/private/pay.md")], Reach::Part));
        let text = Match { arguments: [("content".to_owned(), "a//*".to_owned())].into(), ..Match::default() };
        let written = json!({"path": "/x", "content": "a//b"});
        assert!(holds(&text, &written, &[touch("/x")], Reach::Whole), "what is no path stays as it is");
    }

    #[test]
    fn a_web_address_is_compared_in_its_normal_form() {
        let rule =
            Match { arguments: [("url".to_owned(), "https://a.example/in/*".to_owned())].into(), ..Match::default() };
        let url = |text: &str, reach| holds(&rule, &json!({"url": text}), &[], reach);
        assert!(url("HTTPS://A.EXAMPLE/in/x", Reach::Part) && url("HTTPS://A.EXAMPLE/in/x", Reach::Whole));
        assert!(!url("https://a.example/in/../out", Reach::Whole), "it leads elsewhere");
        assert!(url("https://a.example/in/../out", Reach::Part), "it is written as what is forbidden");
    }

    #[test]
    fn of_a_list_every_element_is_allowed_and_any_is_forbidden() {
        let rule = Match { arguments: [("to".to_owned(), "*@a.example".to_owned())].into(), ..Match::default() };
        let both = json!({"to": ["x@a.example", "y@b.example"]});
        assert!(holds(&rule, &both, &[], Reach::Part) && !holds(&rule, &both, &[], Reach::Whole));
        assert!(holds(&rule, &json!({"to": ["x@a.example", "y@a.example"]}), &[], Reach::Whole));
        assert!(!holds(&rule, &json!({"to": []}), &[], Reach::Whole));
    }

    #[test]
    fn what_counts_where_an_argument_is_left_out_is_compared() {
        let rule = Match { arguments: [("path".to_owned(), "/".to_owned())].into(), ..Match::default() };
        let schema = json!({"properties": {"path": {"default": "/"}}});
        let root = [touch("/")];
        for arguments in [json!({}), json!({"path": null}), json!({"path": "/"})] {
            let paths = Paths::of(&root, &[]);
            assert!(rule.holds(&[], &Seen::new(&arguments, &schema, &paths), Reach::Part), "{arguments}");
        }
    }

    #[test]
    fn a_no_reaches_hidden_names_and_files_that_only_text_is_taken_from() {
        let rule = Match { folders: vec!["/secret".to_owned()], ..Match::default() };
        let hidden = [touch("/secret/.env")];
        assert!(holds(&rule, &json!({}), &hidden, Reach::Part) && !holds(&rule, &json!({}), &hidden, Reach::Whole));
        let (out, sources) = ([touch("/out.md")], [NotePath::parse("/secret/t.md").unwrap()]);
        let paths = Paths::of(&out, &sources);
        assert!(rule.holds(&rule.patterns(), &Seen::new(&json!({}), &Value::Null, &paths), Reach::Part));
        let place = Match { folders: vec!["/out.md".to_owned()], ..Match::default() };
        assert!(place.holds(&place.patterns(), &Seen::new(&json!({}), &Value::Null, &paths), Reach::Whole));
    }

    #[test]
    fn a_lasting_yes_reaches_the_folder_itself_and_nothing_below_or_beside_it() {
        let rule = Match::of_call(&json!({}), &[touch("/notes/a.md")], &[]);
        assert_eq!(rule.directly_in, ["/notes"]);
        let reaches = |path: &str| holds(&rule, &json!({}), &[touch(path)], Reach::Whole);
        assert!(reaches("/notes/b.md") && reaches("/notes"));
        for other in ["/notes/deep/b.md", "/notes2/b.md", "/b.md", "/notes/.env"] {
            assert!(!reaches(other), "{other}");
        }
        assert!(!holds(&rule, &json!({}), &[], Reach::Whole), "a call without a path is in no folder");
        assert!(
            !holds(&rule, &json!({}), &[touch("/notes/b.md"), touch("/x/b.md")], Reach::Whole),
            "every path counts"
        );
        assert!(holds(&rule, &json!({}), &[touch("/notes/b.md"), touch("/x/b.md")], Reach::Part));
        assert_eq!(Match::of_call(&json!({}), &[touch("/a.md"), touch("/x/b.md")], &[]).directly_in, ["/", "/x"]);
    }

    #[test]
    fn a_lasting_yes_to_a_web_address_reaches_its_host_alone() {
        let url = [Arc::from("url")];
        let rule = Match::of_call(&json!({"url": "https://api.example.org/a?x", "body": "1"}), &[], &url);
        assert_eq!(rule.hosts, ["api.example.org"]);
        let reaches = |arguments: Value, reach| holds(&rule, &arguments, &[], reach);
        assert!(reaches(json!({"url": "https://api.example.org/b", "body": "2"}), Reach::Whole));
        for other in
            ["https://example.org/", "https://api.example.org.evil.example/", "https://evil.example/api.example.org"]
        {
            assert!(!reaches(json!({"url": other}), Reach::Whole), "{other}");
        }
        let post = json!({"method": "POST", "url": "https://api.example.org/a"});
        let sent = Match::of_call(&post, &[], &url);
        assert!(holds(&sent, &post, &[], Reach::Whole));
        for method in [json!("DELETE"), json!("post"), Value::Null] {
            let other = json!({"method": method, "url": "https://api.example.org/a"});
            assert!(!holds(&sent, &other, &[], Reach::Whole), "{method} was not said yes to");
        }
        let any = json!({"method": "*", "url": "https://api.example.org/a"});
        assert!(Match::of_call(&any, &[], &url).exactly.is_some(), "a word that would match every method");
        assert!(!reaches(json!({"url": "no address"}), Reach::Whole), "a call without an address is at no host");
        let both = json!({"url": ["https://api.example.org/", "https://evil.example/"]});
        assert!(!reaches(both.clone(), Reach::Whole) && reaches(both, Reach::Part));
        let kept = Match::of_call(&json!({"value": "https://api.example.org/"}), &[], &[]);
        assert!(kept.exactly.is_some() && kept.hosts.is_empty(), "a text that only looks like an address is a text");
    }

    #[test]
    fn a_lasting_yes_without_a_plain_path_is_for_these_arguments_alone() {
        for touches in [&[][..], &[touch("/notes/.env")], &[touch("/a.md"), touch("/.env")]] {
            let rule = Match::of_call(&json!({"a": 1}), touches, &[]);
            assert_eq!(rule, Match { exactly: Some(canonical::hash(&json!({"a": 1}))), ..Match::default() });
            assert!(
                holds(&rule, &json!({"a": 1}), touches, Reach::Whole)
                    && !holds(&rule, &json!({"a": 2}), touches, Reach::Whole)
            );
        }
    }
}
