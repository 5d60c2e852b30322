//! Whether the pattern of an argument is spelt as paths and web addresses are compared. One that is not would be saved, and
//! match nothing: a no that lets everything through.

use crate::guard::host::Url;
use crate::guard::path::NotePath;

/// What stands for the rest of a pattern while the part before its first `*` is read: it changes nothing before it.
const REST: &str = "x";

/// What is wrong with the spelling of a pattern, if it looks like a path or a web address. What looks like neither is a text,
/// and compared as it is.
pub(super) fn problem(pattern: &str) -> Option<String> {
    let (first, rest) = match pattern.split_once('*') {
        Some((first, _)) => (first, REST),
        None => (pattern, ""),
    };
    if is_path(first) && format!("{first}{rest}").split('/').any(|segment| segment == "..") {
        return Some("matches nothing: no path holds `..`".to_owned());
    }
    let normal = normal(first, rest)?;
    let normal = normal.strip_suffix(rest).unwrap_or(&normal);
    (normal != first).then(|| {
        let whole = pattern.replacen(first, normal, 1);
        format!("matches nothing: what it means is compared as `{whole}`")
    })
}

/// The beginning of a path or a web address as it is compared, with what stands for its rest.
fn normal(first: &str, rest: &str) -> Option<String> {
    let whole = format!("{first}{rest}");
    match host_of(first) {
        // A host that goes on after the `*` cannot be read yet; all of them are compared in small letters.
        Some(host) if !rest.is_empty() && !host.contains(['/', '?', '#']) => Some(whole.to_ascii_lowercase()),
        Some(_) => Url::parse(&whole).ok().map(|url| url.as_str().to_owned()),
        None if is_path(first) => NotePath::parse(&whole).ok().map(|path| path.as_str().to_owned()),
        None => None,
    }
}

fn is_path(first: &str) -> bool {
    first.starts_with('/') || first.starts_with("./")
}

/// What follows the scheme of a web address.
fn host_of(first: &str) -> Option<&str> {
    let (scheme, host) = first.split_once("://")?;
    ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_that_is_spelt_as_it_is_compared_is_fine() {
        for fine in [
            "/secret/*",
            "/secret",
            "/secret/.*",
            "/secret/..*",
            "/*",
            "/",
            "*",
            "",
            "secret/*",
            "draft.*",
            "*//x",
            "a//*",
            "https://a.example/*",
            "https://a.example/in/%20*",
            "https://a.example/",
            "https://a.*",
            "https://*",
            "http*",
            "*.example/*",
            "GET",
            "/remind me: *",
        ] {
            assert_eq!(problem(fine), None, "{fine}");
        }
    }

    #[test]
    fn any_other_spelling_of_a_path_or_an_address_is_named_with_the_right_one() {
        for (bad, right) in [
            ("//secret/*", "/secret/*"),
            ("/secret/./*", "/secret/*"),
            ("/secret//a*b*", "/secret/a*b*"),
            ("./secret/*", "/secret/*"),
            ("/secret/", "/secret"),
            ("//*", "/*"),
            ("/cafe\u{301}/*", "/caf\u{e9}/*"),
            ("HTTP://a.example/*", "http://a.example/*"),
            ("https://A.example/x", "https://a.example/x"),
            ("https://A.*", "https://a.*"),
            ("https://a.example", "https://a.example/"),
            ("https://a.example:443/*", "https://a.example/*"),
            ("https://a.example/in/../*", "https://a.example/*"),
        ] {
            let expected = format!("matches nothing: what it means is compared as `{right}`");
            assert_eq!(problem(bad), Some(expected), "{bad}");
        }
        assert!(problem("/a/../secret/*").is_some_and(|why| why.contains("`..`")));
    }
}
