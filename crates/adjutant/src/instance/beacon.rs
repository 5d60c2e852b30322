//! `server.json` in the data directory: how the command line of whoever holds the directory finds the running server. Only
//! they can read it, because it holds a token with the owner's rights that is good until the server stops.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use adjutant_engine::Secret;
use serde_json::{Value, json};

use super::unusable;
use crate::failure::Failure;

const FILE: &str = "server.json";

/// The file, for as long as the server runs, with what it says.
#[derive(Debug)]
pub(crate) struct Beacon {
    path: PathBuf,
    pid: u32,
    url: String,
}

impl Beacon {
    /// Writes the file anew.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn light(data: &Path, url: &str, token: &Secret) -> Result<Self, Failure> {
        let (path, fresh) = (data.join(FILE), data.join(format!("{FILE}.new")));
        let text = json!({"url": url, "pid": std::process::id(), "token": token.expose()});
        let written = remove(&fresh).and_then(|()| {
            // Made anew each time, so that nobody who opened an older one can read this.
            let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
            writeln!(file, "{text}")?;
            file.sync_all()?;
            std::fs::rename(&fresh, &path)
        });
        written.map_err(|error| unusable(&path, &error))?;
        Ok(Self { path, pid: std::process::id(), url: url.to_owned() })
    }
}

fn remove(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

impl Drop for Beacon {
    fn drop(&mut self) {
        // Another node on the same data directory may have written it since.
        let said = std::fs::read_to_string(&self.path).ok().and_then(|text| serde_json::from_str::<Value>(&text).ok());
        if said.is_some_and(|said| said["pid"] == self.pid && said["url"] == self.url) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
