//! Secrets that are handed out once, and passwords. Of a secret only its hash is kept, of a password only what Argon2id makes
//! of it; neither can be printed by accident, and the memory they were in is wiped.

use std::fmt;
use std::sync::LazyLock;

use adjutant_core::content::Hash;
use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, PasswordHasher, PasswordVerifier};
use serde::{Deserialize, Deserializer};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use zeroize::Zeroizing;

use crate::env::Env;
use crate::error::EngineError;

/// What every token begins with, so that one that leaked can be found.
pub(super) const TOKEN_PREFIX: &str = "adj_";
/// The shortest password, in characters. Length is what helps; rules about kinds of characters do not.
const SHORTEST_PASSWORD: usize = 10;
/// The longest, in bytes: nobody should make the server hash a book.
const LONGEST_PASSWORD: usize = 1024;
/// Passwords hashed at the same time: each takes 19 MiB and a core.
static HASHING: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(2));

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// A secret that is handed out once.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Secret {
    /// A new one of 32 random bytes.
    #[must_use]
    pub fn new(env: &Env, prefix: &str) -> Self {
        let bytes: [u8; 32] = env.random();
        // Long enough from the start: what grows leaves a copy behind.
        let mut text = Zeroizing::new(String::with_capacity(prefix.len() + (bytes.len() * 8).div_ceil(5)));
        text.push_str(prefix);
        let (mut held, mut bits) = (0_u32, 0);
        for byte in bytes {
            held = (held << 8) | u32::from(byte);
            bits += 8;
            while bits >= 5 {
                bits -= 5;
                text.push(char::from(ALPHABET[((held >> bits) & 31) as usize]));
            }
        }
        text.push(char::from(ALPHABET[((held << (5 - bits)) & 31) as usize]));
        Self(text)
    }

    /// One that somebody shows.
    #[must_use]
    pub fn shown(text: &str) -> Self {
        Self(Zeroizing::new(text.to_owned()))
    }

    /// The secret itself, to hand it out.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What is kept of it.
    #[must_use]
    pub fn hash(&self) -> Hash {
        Hash(Sha256::digest(self.0.as_bytes()).into())
    }

    /// Its last characters, by which a person recognises it.
    #[must_use]
    pub fn hint(&self) -> String {
        let skip = self.0.chars().count().saturating_sub(4);
        self.0.chars().skip(skip).collect()
    }
}

/// A password that somebody typed.
#[derive(Clone)]
pub struct Password(Zeroizing<String>);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self(Zeroizing::new(text)))
    }
}

impl<'de> Deserialize<'de> for Password {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::typed)
    }
}

impl Password {
    /// A password as it was typed.
    #[must_use]
    pub fn typed(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// What is kept of it.
    ///
    /// # Errors
    /// When it is too short or too long to be one.
    pub(super) async fn hash(self, env: &Env) -> Result<String, EngineError> {
        if self.0.chars().count() < SHORTEST_PASSWORD || self.0.len() > LONGEST_PASSWORD {
            return Err(EngineError::Invalid(format!(
                "a password has at least {SHORTEST_PASSWORD} characters and at most {LONGEST_PASSWORD} bytes"
            )));
        }
        let salt: [u8; 16] = env.random();
        let made = hashing(move || {
            Argon2::default().hash_password_with_salt(self.0.as_bytes(), &salt).map(|hash| hash.to_string())
        });
        made.await?.map_err(|_| EngineError::Invalid("the password cannot be used".to_owned()))
    }

    /// Whether it is the one that was kept. Takes as long when there is none, so that nobody learns which names exist.
    pub(super) async fn matches(self, kept: Option<String>) -> Result<bool, EngineError> {
        if self.0.len() > LONGEST_PASSWORD {
            return Ok(false);
        }
        hashing(move || match kept.as_deref().map(PasswordHash::new) {
            Some(Ok(kept)) => Argon2::default().verify_password(self.0.as_bytes(), &kept).is_ok(),
            Some(Err(_)) | None => {
                let _ = Argon2::default().hash_password_with_salt(self.0.as_bytes(), &[0; 16]);
                false
            }
        })
        .await
    }
}

async fn hashing<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> Result<T, EngineError> {
    let lost = || EngineError::Invalid("the password could not be checked".to_owned());
    let _turn = HASHING.acquire().await.map_err(|_| lost())?;
    tokio::task::spawn_blocking(job).await.map_err(|_| lost())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_32_random_bytes_and_is_never_printed() {
        let env = Env::system();
        let (one, other) = (Secret::new(&env, TOKEN_PREFIX), Secret::new(&env, TOKEN_PREFIX));
        assert!(one.expose().starts_with("adj_") && one.expose().len() == 4 + 52, "{}", one.expose());
        assert_ne!(one, other);
        assert_ne!(one.hash(), other.hash());
        assert_eq!(format!("{one:?}"), "Secret(…)");
        assert!(one.expose().ends_with(&one.hint()) && one.hint().len() == 4);
    }

    #[tokio::test]
    async fn a_password_matches_only_itself_and_is_kept_as_argon2id() {
        let env = Env::system();
        let typed = |text: &str| Password::typed(text.to_owned());
        let kept = typed("correct horse").hash(&env).await.unwrap();
        assert!(kept.starts_with("$argon2id$v=19$"), "{kept}");
        assert!(typed("correct horse").matches(Some(kept.clone())).await.unwrap());
        assert!(!typed("correct horsf").matches(Some(kept)).await.unwrap());
        assert!(!typed("correct horse").matches(None).await.unwrap());
        assert!(typed("too short").hash(&env).await.is_err());
    }
}
