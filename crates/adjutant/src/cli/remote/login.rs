//! `login` and what it keeps: for each server a token, in a file that only its owner can read.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use super::{Remote, address, small};
use crate::cli::{Context, prompt};
use crate::failure::{Exit, Failure};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Login {
    /// The address of the server, such as https://adjutant.example.org
    url: String,
    /// Forget the token of that server instead
    #[arg(long)]
    forget: bool,
}

/// Keeps a token for a server, after trying it there. It is read from standard input, so that no list of processes shows it.
pub(in crate::cli) async fn login(context: &Context, args: Login) -> Result<Exit, Failure> {
    let url = address(&args.url)?;
    let path = file(context)?;
    let mut kept = read(&path);
    if args.forget {
        kept.remove(url.as_str());
        write(&path, &kept)?;
        context.print(&json!({"url": url.as_str(), "signed_in": false}), || vec![format!("Forgotten: {url}")]);
        return Ok(Exit::Done);
    }
    let token =
        prompt::secret("Token (made in the page, under Settings, or by POST /api/v1/tokens; it is not shown):").await;
    let Some(token) = token else {
        return Err(Failure::usage("There is no token. Nothing was kept."));
    };
    let remote = Remote::new(url.clone(), SecretString::from(token.clone()))?;
    let me = remote.get(&["me"], &[]).await?;
    kept.insert(url.to_string(), token);
    write(&path, &kept)?;
    let name = me["name"].as_str().unwrap_or_default().to_owned();
    context.print(&json!({"url": url.as_str(), "signed_in": true, "name": name}), || {
        vec![format!("Signed in at {url} as {name}. Commands go there with --url {url}, or ADJUTANT_URL.")]
    });
    Ok(Exit::Done)
}

/// The token that is kept for a server.
pub(super) fn saved(context: &Context, url: &Url) -> Result<Option<SecretString>, Failure> {
    Ok(read(&file(context)?).remove(url.as_str()).map(SecretString::from))
}

fn file(context: &Context) -> Result<PathBuf, Failure> {
    let folder = context.env.settings_folder();
    folder.map(|folder| folder.join("logins.json")).ok_or_else(|| {
        Failure::usage("There is no place to keep a token: neither XDG_CONFIG_HOME nor HOME is set.")
            .hint("set ADJUTANT_TOKEN")
    })
}

fn read(path: &Path) -> BTreeMap<String, String> {
    small(path).and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

fn write(path: &Path, kept: &BTreeMap<String, String>) -> Result<(), Failure> {
    let text = SecretString::from(serde_json::to_string_pretty(kept).unwrap_or_default());
    let fresh = path.with_extension("new");
    let written = (|| {
        if let Some(folder) = path.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let _ = std::fs::remove_file(&fresh);
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
        file.write_all(text.expose_secret().as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&fresh, path)
    })();
    written.map_err(|error: std::io::Error| {
        Failure::other(format!("{} cannot be written: {error}. Nothing was kept.", path.display()))
    })
}
