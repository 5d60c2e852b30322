//! The master key: where it comes from, and how it is made once. Never printed, never in an error.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use adjutant_engine::Env;
use adjutant_engine::store::MasterKey;
use secrecy::{ExposeSecret, SecretString};

use crate::config::KeySource;
use crate::failure::{Exit, Failure};

/// The file of the master key in the data directory.
pub(crate) const NAME: &str = "master.key";
const BYTES: usize = 32;

/// Whether a database is there already, which then has a key already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Database {
    /// It is there.
    Old,
    /// It is not, or nobody can tell before it is opened.
    New,
}

/// A key, and whether it was made just now.
pub(crate) struct Found {
    pub(crate) key: MasterKey,
    pub(crate) made: Option<PathBuf>,
}

/// Finds the key, or makes one for a new database.
pub(crate) fn find(source: &KeySource, data: &Path, database: Database, env: &Env) -> Result<Found, Failure> {
    let found = |key| Found { key, made: None };
    match source {
        KeySource::Value(text) => parse(text, "ADJUTANT_SECRET_KEY").map(found),
        KeySource::File(path) => read(path).map(found),
        KeySource::Data => {
            let path = data.join(NAME);
            match (path.try_exists(), database) {
                (Ok(true), _) => read(&path).map(found),
                (Ok(false), Database::New) => make(&path, env),
                (Ok(false), Database::Old) => Err(missing(&path)),
                (Err(error), _) => Err(super::unusable(&path, &error)),
            }
        }
    }
}

fn missing(path: &Path) -> Failure {
    let message =
        format!("There is a database, but its master key {} is gone. Nothing was read or changed.", path.display());
    Failure::new(Exit::Usage, "wrong_key", message)
        .hint("put the file back, or name the key: ADJUTANT_SECRET_KEY_FILE; without it the database cannot be opened")
}

fn read(path: &Path) -> Result<MasterKey, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| super::unusable(path, &error))?;
    parse(&SecretString::from(text), &path.display().to_string())
}

fn parse(text: &SecretString, place: &str) -> Result<MasterKey, Failure> {
    let digits = text.expose_secret().trim().as_bytes();
    let mut bytes = [0_u8; BYTES];
    let value = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let fits = digits.len() == BYTES * 2
        && bytes.iter_mut().zip(digits.chunks(2)).all(|(byte, pair)| match (value(pair[0]), value(pair[1])) {
            (Some(high), Some(low)) => {
                *byte = high << 4 | low;
                true
            }
            _ => false,
        });
    if fits {
        return Ok(MasterKey::new(bytes));
    }
    let message = format!("The master key in {place} is not 64 hexadecimal digits. Nothing was read or changed.");
    Err(Failure::new(Exit::Usage, "wrong_key", message).hint("openssl rand -hex 32 makes one, for a new database only"))
}

fn make(path: &Path, env: &Env) -> Result<Found, Failure> {
    let bytes: [u8; BYTES] = env.random();
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    // On the disk before anything is sealed with it: a key that is lost with the power loses the database too.
    let written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).and_then(|mut file| {
        writeln!(file, "{digits}")?;
        file.sync_all()?;
        path.parent().map_or(Ok(()), |folder| std::fs::File::open(folder)?.sync_all())
    });
    match written {
        Ok(()) => Ok(Found { key: MasterKey::new(bytes), made: Some(path.to_owned()) }),
        Err(error) => {
            if error.kind() != ErrorKind::AlreadyExists {
                let _ = std::fs::remove_file(path);
            }
            Err(super::unusable(path, &error))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_made_once_for_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let env = Env::system();
        let first = find(&KeySource::Data, folder.path(), Database::New, &env).unwrap();
        let path = first.made.unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(find(&KeySource::Data, folder.path(), Database::Old, &env).unwrap().made.is_none());
    }

    #[test]
    fn no_key_is_made_for_a_database_that_has_one() {
        let folder = tempfile::tempdir().unwrap();
        let refused = find(&KeySource::Data, folder.path(), Database::Old, &Env::system()).err().unwrap();
        assert!(refused.message.contains("is gone"), "{}", refused.message);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_broken_key_is_named_and_not_shown() {
        for text in ["abc", &"zz".repeat(32), &"ab".repeat(33)] {
            let source = KeySource::Value(SecretString::from(text));
            let refused = find(&source, Path::new("/nowhere"), Database::New, &Env::system()).err().unwrap();
            assert!(
                refused.message.contains("64 hexadecimal digits") && !refused.message.contains(text),
                "{}",
                refused.message
            );
        }
        let source = KeySource::Value(SecretString::from("0f".repeat(32)));
        assert!(find(&source, Path::new("/nowhere"), Database::New, &Env::system()).is_ok());
    }
}
