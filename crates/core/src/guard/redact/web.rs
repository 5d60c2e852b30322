//! Passwords in URLs (S2), and mail addresses where they count as secrets too (S4).

use super::{Found, value};

pub(super) fn find(text: &str, found: &mut Vec<Found>) {
    for (at, _) in text.match_indices("://") {
        let start = at + 3;
        let rest = text.get(start..).unwrap_or_default();
        let length = rest.find(|c: char| c.is_whitespace() || "/?#\"'`<>\\".contains(c)).unwrap_or(rest.len());
        let authority = rest.get(..length).unwrap_or_default();
        let Some((user, _)) = authority.rsplit_once('@') else { continue };
        let (name, password) = user.split_once(':').map_or((user, None), |(name, password)| (name, Some(password)));
        let (offset, secret, kind) = match password {
            Some(password) => (name.len() + 1, password, "password"),
            // Without a password the name is often a token; a plain name is not.
            None if name.len() >= 20 && value::looks_drawn(name) => (0, name, "token"),
            None => continue,
        };
        if !value::is_placeholder(secret) {
            found.push(Found { range: start + offset..start + offset + secret.len(), kind });
        }
    }
}

/// Finds mail addresses: around each `@` a name of at most 64 characters and a domain with at least one dot.
pub(super) fn find_mail(text: &str, found: &mut Vec<Found>) {
    for (at, _) in text.match_indices('@') {
        let (before, after) = (text.get(..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default());
        let in_name = |c: &char| c.is_alphanumeric() || "._%+'-".contains(*c);
        let name: usize = before.chars().rev().take(64).take_while(in_name).map(char::len_utf8).sum();
        let in_domain = |c: &char| c.is_alphanumeric() || *c == '-' || *c == '.';
        let domain: usize = after.chars().take(253).take_while(in_domain).map(char::len_utf8).sum();
        let domain = after.get(..domain).unwrap_or_default().trim_end_matches(['.', '-']);
        let labelled = domain.contains('.') && domain.split('.').all(|label| !label.is_empty());
        let named = domain
            .rsplit('.')
            .next()
            .is_some_and(|last| last.chars().count() >= 2 && last.chars().all(char::is_alphabetic));
        if name > 0 && labelled && named {
            found.push(Found { range: at - name..at + 1 + domain.len(), kind: "email" });
        }
    }
}
