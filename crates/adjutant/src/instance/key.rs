//! The master key: where it comes from, and how it is made once. Never printed, never in an error.

use std::fs::{OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
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

/// The key that is about to take the place of another. It lies beside the old one until everything is sealed with it, so that
/// whoever opens the database finds a key that fits, wherever the change was cut off.
pub(crate) struct Next {
    old: PathBuf,
    new: PathBuf,
}

impl Next {
    /// Where it lies; none where the key comes from the environment.
    pub(crate) fn of(source: &KeySource, data: &Path) -> Option<Self> {
        let old = match source {
            KeySource::Value(_) => return None,
            KeySource::File(path) => path.clone(),
            KeySource::Data => data.join(NAME),
        };
        let mut new = old.clone().into_os_string();
        new.push(".next");
        Some(Self { old, new: new.into() })
    }

    /// The new key, if one is there.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn read(&self) -> Result<Option<MasterKey>, Failure> {
        if self.new.exists() { read(&self.new).map(Some) } else { Ok(None) }
    }

    /// Whether the old one is gone already.
    pub(crate) fn is_alone(&self) -> bool {
        self.new.exists() && !self.old.exists()
    }

    /// The new key: one that an earlier attempt left, else another one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn make(&self, env: &Env) -> Result<MasterKey, Failure> {
        match self.read()? {
            Some(key) => Ok(key),
            None => make(&self.new, env).map(|found| found.key),
        }
    }

    /// Puts the new key where the old one was, and the old one aside: backups that were made before open with nothing else.
    /// Says where it is.
    ///
    /// # Errors
    /// When a file cannot be renamed.
    pub(crate) fn take_place(&self, env: &Env) -> Result<Option<PathBuf>, Failure> {
        if !self.new.exists() {
            // Somebody else was faster: it is where it belongs.
            return Ok(None);
        }
        let stamp = env.now().to_string().replace(':', "");
        let mut aside = self.old.clone().into_os_string();
        aside.push(format!(".until-{stamp}"));
        let aside = PathBuf::from(aside);
        // Kept aside first and then replaced by one rename: there is a key under its name at every moment. Not every file
        // system can link.
        let kept = std::fs::hard_link(&self.old, &aside).or_else(|_| std::fs::copy(&self.old, &aside).map(drop));
        let was_there = match kept {
            Ok(()) => true,
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(super::unusable(&self.old, &error)),
        };
        let put = std::fs::rename(&self.new, &self.old).and_then(|()| sync_folder(&self.old));
        put.map_err(|error| super::unusable(&self.old, &error))?;
        Ok(was_there.then_some(aside))
    }
}

fn sync_folder(path: &Path) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), |folder| std::fs::File::open(folder)?.sync_all())
}

/// A key that the operator names.
///
/// # Errors
/// When there is none.
pub(crate) fn named(path: &Path) -> Result<MasterKey, Failure> {
    read(path)
}

/// Finds the key, or makes one for a new database.
pub(crate) fn find(source: &KeySource, data: &Path, database: Database, env: &Env) -> Result<Found, Failure> {
    let found = |key| Found { key, made: None };
    if let Some(next) = Next::of(source, data)
        && next.is_alone()
        && let Some(key) = next.read()?
    {
        return Ok(found(key));
    }
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
    keep_from_others(path)?;
    let text = std::fs::read_to_string(path).map_err(|error| super::unusable(path, &error))?;
    parse(&SecretString::from(text), &path.display().to_string())
}

/// Takes the file out of the reach of other users. Where that cannot be done, as on a read-only mount, one that everybody can
/// read is refused: whoever can read it can read everything.
fn keep_from_others(path: &Path) -> Result<(), Failure> {
    let unusable = |error: std::io::Error| super::unusable(path, &error);
    let mode = std::fs::metadata(path).map_err(unusable)?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let kept = std::fs::set_permissions(path, Permissions::from_mode(mode & 0o700));
    match kept {
        Ok(()) => {
            tracing::warn!(file = %path.display(), "other users could read the master key; now they cannot");
            Ok(())
        }
        Err(_) if mode & 0o007 == 0 => Ok(()),
        Err(error) => {
            let text = format!(
                "Every user of this machine can read the master key {}, and that cannot be changed: {error}. Nothing was opened.",
                path.display()
            );
            Err(Failure::new(Exit::Usage, "wrong_key", text)
                .hint("mount or copy it so that only its owner can read it (mode 0400)"))
        }
    }
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
        sync_folder(path)
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
    use super::*;

    #[test]
    fn a_key_that_others_could_read_is_taken_from_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "0f".repeat(32)).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let source = KeySource::File(path.clone());
        assert!(find(&source, folder.path(), Database::Old, &Env::system()).is_ok());
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

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
