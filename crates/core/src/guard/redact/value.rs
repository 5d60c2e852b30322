//! What a value looks like (S3): references and placeholders are not secrets, nor are words of prose.

use super::name::Promise;
use super::{mark, name};

/// Words people write where a secret will stand one day, or where there is none.
const STAND_INS: &str = "\
    changeme changeit change_me change-me placeholder example dummy sample todo tbd fixme none null nil undefined \
    true false yes no on off redacted hidden masked removed omitted secret password passwd passphrase pass pwd token \
    apikey api_key api-key key value empty required optional unset default prompt ask string str text number int \
    integer bool boolean bytes any object char varchar uuid json foobar self this env n/a na expired invalid missing \
    incorrect wrong valid revoked unknown enabled disabled set configured ok failed rejected accepted provided \
    present absent rotated encrypted loaded found stored saved sent created deleted updated active inactive pending \
    bearer basic header cookie query body jwt opaque oauth reset changed usize isize u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 size_t long short float double void";

/// Words that occur in stand-ins made of several words, such as YOUR_API_KEY_HERE.
const STAND_IN_WORDS: &str = "\
    your example placeholder changeme change insert replace here todo dummy fake sample redacted xxx enter";

/// What refers to a value that is kept elsewhere.
const REFERENCES: &str = "\
    op:// vault: vault:// arn: ref+ file: env: keychain: secretsmanager: ssm: gcp: azurekv: sops:";

/// Where a dotted name of code begins.
const OWNERS: &str = "\
    os process env self this config settings secrets var local data args options opts params ctx request req user \
    app context props state environ conf cfg credentials import module";

/// Short function words: a text with one of them is prose.
const PROSE: &str = "\
    the is a an must be to of your and or for with not please are has have this that in at it was will can should if \
    you field required invalid";

/// Names of methods and formats that mix letters and digits as secrets do.
const METHODS: &str = "\
    sha1 sha224 sha256 sha384 sha512 md5 base64 base32 base58 hs256 hs512 rs256 es256 oauth2 utf8 utf-8 aes128 \
    aes256 aes-256 http2 ed25519 x25519 p256 secp256k1 argon2 argon2id pbkdf2 sha3 k8s s3 ipv4 ipv6 auth0 oauth1";

/// Whether the value is no secret in itself: a reference, a stand-in, already masked.
pub(super) fn is_placeholder(value: &str) -> bool {
    // What stands beside a mark is judged like what stands alone.
    let bare = mark::without(value);
    let value = bare.trim();
    value.is_empty()
        || is_masked(value)
        || is_reference(value)
        || is_stand_in(value)
        || (value.starts_with('(') && value.ends_with(')'))
}

/// Whether the value hides itself: nothing but signs and one repeated letter, or a long run of them.
pub(super) fn is_masked(value: &str) -> bool {
    let masks = |c: char| {
        matches!(
            c,
            '*' | 'x' | 'X' | '.' | '-' | '_' | '#' | '•' | '●' | '…' | '?' | '█' | ' ' | '\n' | '\r' | '\u{2028}'
        )
    };
    if value.chars().all(masks) {
        return true;
    }
    let runs = ["***", "...", "…", "•••", "●●●", "xxxxx", "XXXXX", "███", "<snip>", "[...]"];
    runs.iter().any(|run| value.contains(run))
}

fn is_reference(value: &str) -> bool {
    let wrapped = |open: &str, close: &str| value.starts_with(open) && value.ends_with(close);
    let inner = |open: &str, close: &str| value.starts_with(open) && value.contains(close);
    wrapped("<", ">")
        || inner("${", "}")
        || inner("$(", ")")
        || inner("{{", "}}")
        || inner("#{", "}")
        || inner("@{", "}")
        || inner("%(", ")")
        || wrapped("{", "}")
        || wrapped("[", "]")
        || wrapped("`", "`")
        || (wrapped("%", "%") && value.len() > 2 && is_identifier(value.trim_matches('%')))
        || value.strip_prefix('$').is_some_and(|name| is_identifier(name.strip_prefix("env:").unwrap_or(name)))
        || ["!Ref", "!Sub", "!GetAtt", "!secret", "!vault", "!env", "!reference", "!encrypted"]
            .iter()
            .any(|tag| value.starts_with(tag))
        || REFERENCES.split_ascii_whitespace().any(|prefix| value.starts_with(prefix))
        || ["%s", "%d", "%v", "{}", "{0}", ":password", ":token"].contains(&value)
        || [
            "os.environ",
            "os.getenv",
            "process.env",
            "getenv(",
            "ENV[",
            "System.getenv",
            "import.meta.env",
            "Deno.env",
            concat!("std::", "env"),
        ]
        .iter()
        .any(|call| value.contains(call))
        || is_path(value)
}

/// A path to a file that holds the secret. Drawn values hold capitals, so they are not taken for one.
fn is_path(value: &str) -> bool {
    let rest = ["/", "./", "../", "~/"].iter().find_map(|root| value.strip_prefix(root));
    let segment =
        |s: &str| s.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-'));
    rest.is_some_and(|rest| (rest.contains('/') || rest.contains('.')) && rest.split('/').all(segment))
}

fn is_stand_in(value: &str) -> bool {
    if is_listed(STAND_INS, value) {
        return true;
    }
    let lettered = value.chars().all(|c| c.is_ascii_alphabetic() || matches!(c, '-' | '_' | ' ' | '.' | '\''));
    let mut words = value.split(['-', '_', ' ', '.']);
    lettered && words.any(|word| is_listed(STAND_IN_WORDS, word))
}

fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Whether an unquoted value is a name of code: a variable that itself promises a secret, or a field of something.
pub(super) fn is_code(value: &str) -> bool {
    let parts: Vec<&str> =
        value.split([':', '.']).map(|part| part.trim_end_matches(['?', '-'])).filter(|part| !part.is_empty()).collect();
    let [owner, .., last] = parts.as_slice() else {
        return is_identifier(value) && name::promise(value, None, false).is_some();
    };
    let code = value.contains("::") || name::promise(last, None, false).is_some() || is_listed(OWNERS, owner);
    code && parts.iter().all(|part| is_identifier(part))
}

/// Whether a word is in a list of words, in capitals or not.
pub(super) fn is_listed(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known.eq_ignore_ascii_case(word))
}

/// Whether a value mixes what words do not mix: letters and digits, or digits and signs.
pub(super) fn looks_drawn(value: &str) -> bool {
    // The letters of a mark are ours.
    let value = &*mark::without(value);
    let letters = value.bytes().any(|b| b.is_ascii_alphabetic());
    let digits = value.bytes().any(|b| b.is_ascii_digit());
    let mixed_case =
        value.bytes().any(|b| b.is_ascii_lowercase()) && value.bytes().skip(1).any(|b| b.is_ascii_uppercase());
    let method = is_listed(METHODS, value);
    !method && ((value.len() >= 6 && letters && digits) || (value.len() >= 20 && mixed_case && !value.contains(' ')))
}

/// Whether the value is a sentence rather than a passphrase.
pub(super) fn is_prose(value: &str) -> bool {
    let words = || value.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words().count() >= 3 && words().any(|word| is_listed(PROSE, word))
}

/// Whether a value can be what the name promises.
pub(super) fn fits(promise: Promise, value: &str, quoted: bool) -> bool {
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let number = value.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b',' | b'_' | b'-' | b'+'));
    let blanks = value.contains(char::is_whitespace);
    match promise {
        Promise::Password => value.chars().count() >= 3 && !(number && digits < 4) && !(quoted && is_prose(value)),
        Promise::Token | Promise::Secret | Promise::Key => {
            value.chars().count() >= 4
                && (!number || digits >= 16)
                && (!blanks || looks_drawn(value))
                && !is_prose(value)
        }
        Promise::Drawn => value.len() >= 6 && looks_drawn(value) && !blanks,
        Promise::Phrase => {
            let words = value.split_whitespace();
            (6..=32).contains(&words.clone().count()) && words.clone().all(|word| word.chars().all(char::is_alphabetic))
        }
        Promise::Ssn => number && digits == 9,
    }
}
