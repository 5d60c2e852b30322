//! Names that promise a secret (S2): what a name is about is said by its last word.

use super::value::is_listed;

/// What the value of a name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Promise {
    /// A password: anything may be one.
    Password,
    /// A token: drawn, and never a small number.
    Token,
    /// A secret or a credential.
    Secret,
    /// A key of a kind that is secret.
    Key,
    /// A secret if it looks drawn: a word with other meanings.
    Drawn,
    /// Words in a row: the seed of a wallet.
    Phrase,
    /// A US social security number.
    Ssn,
}

impl Promise {
    pub(super) const fn kind(self) -> &'static str {
        match self {
            Self::Password => "password",
            Self::Token => "token",
            Self::Secret => "secret",
            Self::Key => "key",
            Self::Drawn => "token",
            Self::Phrase => "phrase",
            Self::Ssn => "ssn",
        }
    }
}

/// Words behind the one that counts, which say nothing about what it is.
const TRAILING: &str = "\
    live test prod production dev staging stage old new current primary secondary main backup value val text plain \
    plaintext string str base64 b64 raw default confirmation confirm again repeat base";

/// Words that make a key a secret one.
const KEY_KINDS: &str = "\
    api access secret private signing sign encryption encrypt decryption master auth account shared session service \
    storage subscription app application deploy consumer client hmac jwt aes webhook admin root openai anthropic \
    stripe ssh ssl tls rsa wireguard preshared psk functions";

/// Words that are secrets in the query of a URL only.
const IN_QUERIES: &str =
    "key sig signature code auth sid session hmac credential sas ticket sessionid jsessionid phpsessid";

/// Words before `token` that make it no secret: places in a list, signs of a language model.
const PLAIN_TOKENS: &str = "\
    page next previous prev continuation cursor sync eos bos pad unk sep cls mask stop special start end first last \
    per max min each no a the one";

/// What stands before `pass`, `pwd` and `pw` where they are written in one word. Other words end like that, too.
const OWNERS: &str = "\
    admin app auth client cert db default ftp guest http https imap jdbc key keystore ldap login mail master mongo my mysql \
    oracle pg postgres priv proxy rabbitmq redis repl root server service sftp smtp sql ssh store su sudo super svc \
    test trust truststore user vpn web wifi";

/// What a name promises; `previous` is the word before it, for names written with a blank.
pub(super) fn promise(name: &str, previous: Option<&str>, in_query: bool) -> Option<Promise> {
    let mut words = words(name);
    while words.len() > 1 && words.last().is_some_and(|word| is_trailing(word)) {
        words.pop();
    }
    let last = words.pop()?;
    let before = words.pop().or_else(|| previous.map(str::to_ascii_lowercase)).unwrap_or_default();
    // One or several of them: what the items of a list are is said by the same words.
    let one = ["passwords", "passphrases", "passcodes", "keys"].iter().any(|many| last.ends_with(many));
    let last = if one { last.trim_end_matches('s').to_owned() } else { last };
    let ends = |stem: &str| last.ends_with(stem);
    let owned = |stem: &str| last.strip_suffix(stem).is_some_and(|owner| is_listed(OWNERS, owner));
    if ends("password")
        || ends("passwd")
        || ends("passphrase")
        || ends("passcode")
        || matches!(last.as_str(), "pwd" | "pass" | "pw")
        || owned("pwd")
        || owned("pass")
        || owned("pw")
    {
        return Some(Promise::Password).filter(|_| !(last == "pass" && before == "by"));
    }
    if ends("token") || matches!(last.as_str(), "jwt" | "bearer" | "otp") {
        return Some(Promise::Token).filter(|_| !is_listed(PLAIN_TOKENS, &before));
    }
    if ends("secret") || matches!(last.as_str(), "secrets" | "credential" | "credentials" | "creds" | "psk") {
        return Some(Promise::Secret);
    }
    if ends("apikey")
        || ends("accesskey")
        || ends("secretkey")
        || ends("privatekey")
        || ends("authkey")
        || ends("accountkey")
    {
        return Some(Promise::Key);
    }
    if last == "key" && is_listed(KEY_KINDS, &before) {
        return Some(Promise::Key);
    }
    if last == "ssn" {
        return Some(Promise::Ssn);
    }
    if last == "mnemonic" || (last == "phrase" && matches!(before.as_str(), "seed" | "recovery" | "secret" | "backup"))
    {
        return Some(Promise::Phrase);
    }
    (last == "auth" || (in_query && is_listed(IN_QUERIES, &last))).then_some(Promise::Drawn)
}

fn is_trailing(word: &str) -> bool {
    // A version is a number, too.
    is_listed(TRAILING, word) || word.strip_prefix('v').unwrap_or(word).bytes().all(|b| b.is_ascii_digit())
}

/// The words of a name, in lower case: cut at signs and where small letters turn into capitals.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut previous = ' ';
    let mut letters = name.chars().peekable();
    while let Some(c) = letters.next() {
        let small_next = letters.peek().is_some_and(char::is_ascii_lowercase);
        let turns =
            c.is_ascii_uppercase() && (previous.is_ascii_lowercase() || (previous.is_ascii_uppercase() && small_next));
        if (turns || !c.is_ascii_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_ascii_alphanumeric() {
            word.push(c.to_ascii_lowercase());
        }
        previous = c;
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s2_names_that_promise_a_secret() {
        for name in [
            "password",
            "PASSWORD",
            "dbPassword",
            "DB_PASS",
            "user.password",
            "spring.datasource.password",
            "mypassword",
            "pwd",
            "PGPASSWORD",
            "client_secret",
            "clientSecret",
            "SECRET",
            "api_key",
            "apiKey",
            "APIKey",
            "API-KEY",
            "X-Api-Key",
            "x-auth-token",
            "_authToken",
            "aws_secret_access_key",
            "AccountKey",
            "GITHUB_TOKEN",
            "token",
            "accessToken",
            "STRIPE_SECRET_KEY_LIVE",
            "API_KEY_2",
            "private_key",
            "encryption_key",
            "passphrase",
            "password_confirmation",
            "creds",
            "dbpwd",
            "dbpass",
            "DBPASS",
            "mysqlpwd",
            "rootpw",
            "ENCRYPTION_KEY_V2",
            "API_KEYS",
            "apikeys",
            "passwords",
        ] {
            assert!(promise(name, None, false).is_some(), "{name}");
        }
        assert_eq!(promise("key", Some("API"), false), Some(Promise::Key));
        assert_eq!(promise("sig", None, true), Some(Promise::Drawn));
    }

    #[test]
    fn s3_names_that_do_not() {
        for name in [
            "monkey",
            "keyboard",
            "author",
            "passenger",
            "compass",
            "secretary",
            "tokenizer",
            "tokens",
            "max_tokens",
            "token_count",
            "token_url",
            "tokenType",
            "password_hash",
            "passwordHash",
            "password_length",
            "password_file",
            "public_key",
            "publicKey",
            "key",
            "primary_key",
            "sort_key",
            "key_id",
            "access_key_id",
            "secret_name",
            "next_page_token",
            "eos_token",
            "bypass",
            "sig",
            "code",
            "session",
            "api",
            "authorization_url",
            "passport",
            "trespass",
            "encompass",
            "underpass",
            "lowpass",
            "oldpwd",
            "keys",
            "public_keys",
            "v2",
        ] {
            assert_eq!(promise(name, None, false), None, "{name}");
        }
        assert_eq!(promise("key", Some("the"), false), None);
    }
}
