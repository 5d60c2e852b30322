//! Mail addresses (T7, E1): a bare ASCII address with nothing around it, in a domain that is listed exactly.

use super::scope::Denied;

/// Characters of an address (RFC 5321).
const ADDRESS_CHARS: usize = 254;
/// Characters before the `@`.
const LOCAL_CHARS: usize = 64;

/// Judges one recipient.
///
/// # Errors
/// Fails when it is not a bare address, or its domain is not listed.
pub fn check<'a>(address: &str, domains: impl IntoIterator<Item = &'a str>) -> Result<(), Denied> {
    let bad = || {
        let reason = "a mail address is written bare, in ASCII, as name@domain".to_owned();
        Denied::firm("T7", "mail_address", reason)
    };
    let (local, domain) = address.split_once('@').ok_or_else(bad)?;
    if address.len() > ADDRESS_CHARS || !is_local(local) || !is_domain(domain) {
        return Err(bad());
    }
    if domains.into_iter().any(|listed| listed.eq_ignore_ascii_case(domain)) {
        return Ok(());
    }
    let reason = format!("{domain} is not a domain the agent may write mail to");
    Err(Denied::grantable("T7", "mail_domain", reason, format!("mail_domains: \"{}\"", domain.to_ascii_lowercase())))
}

/// Words joined by single dots. `%` and `!` once named further hops, and a leading `-` reads as an option.
fn is_local(local: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"#$&'*+-/=?^_`{|}~".contains(&byte);
    local.len() <= LOCAL_CHARS
        && !local.starts_with('-')
        && local.split('.').all(|word| !word.is_empty() && word.bytes().all(fine))
}

fn is_domain(domain: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    domain.contains('.') && domain.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(address: &str) -> &'static str {
        check(address, ["example.org"]).map_or_else(|denied| denied.code, |()| "ok")
    }

    #[test]
    fn t7_a_bare_address_in_a_listed_domain_is_fine() {
        for address in ["ada@example.org", "ada.l+notes@EXAMPLE.org", "a_b-c@example.org"] {
            assert_eq!(code(address), "ok", "{address}");
        }
    }

    #[test]
    fn t7_the_domain_is_compared_whole() {
        for address in [
            "ada@example.org.evil.test",
            "ada@evil-example.org",
            "ada@mail.example.org",
            "ada@example.com",
            "ada@xn--exmple-cua.org",
        ] {
            assert_eq!(code(address), "mail_domain", "{address}");
        }
        assert!(check("ada@example.org", []).is_err());
    }

    #[test]
    fn t7_whatever_is_not_a_bare_ascii_address_is_refused() {
        for address in [
            "",
            "ada",
            "@example.org",
            "ada@",
            "ada@@example.org",
            "ada@evil.test@example.org",
            "Ada <ada@example.org>",
            "<ada@example.org>",
            "ada@example.org, eve@evil.test",
            "ada@example.org;eve@evil.test",
            "ada@example.org\r\nBcc: eve@evil.test",
            "ada@example.org\n",
            " ada@example.org",
            "\"ada\"@example.org",
            "ada(x)@example.org",
            "eve%evil.test@example.org",
            "evil.test!eve@example.org",
            "-oQ/tmp@example.org",
            ".ada@example.org",
            "ada.@example.org",
            "a..da@example.org",
            "adá@example.org",
            "ada@exámple.org",
            "ada@example.org.",
            "ada@-example.org",
            "ada@[127.0.0.1]",
            "ada@localhost",
            "mailto:ada@example.org",
        ] {
            assert_eq!(code(address), "mail_address", "{address:?}");
        }
        assert_eq!(code(&format!("{}@example.org", "a".repeat(65))), "mail_address");
        let long = format!("ada@{}", vec!["b".repeat(60); 5].join("."));
        assert_eq!(code(&long), "mail_address");
    }
}
