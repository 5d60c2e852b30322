//! Results that could not be recorded yet. While the store cannot be written, what a call said is kept in a sealed file beside
//! the notebooks, where another node finds it, too. Whoever is asked what became of the call is shown it. It is evidence and
//! never the truth: only the log is that.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use adjutant_core::content::Hash;
use adjutant_core::guard::redact::{Mode, redact};
use adjutant_core::id::CallId;
use adjutant_core::run::event::Event;
use adjutant_core::tool::Recovery;

use crate::driver::Driver;

/// The folder beside the notebooks.
const FOLDER: &str = ".unrecorded";
/// Letters of a result that a person is shown of it: enough to know it again.
const SHOWN: usize = 500;

impl Driver {
    /// Keeps what calls said that is about to be recorded and cannot be. One that cannot be kept is none: the log will say that
    /// it is in doubt, as without this.
    pub(crate) async fn keep_evidence(&mut self) {
        let folder = self.engine.notebooks_folder();
        if !folder.is_dir() {
            return;
        }
        let folder = folder.join(FOLDER);
        for (_, event) in self.log.pending() {
            let Event::CallEnded(body) = event else { continue };
            let Some((name, recovery)) = self.name_of(&body.call) else { continue };
            if !body.allowed || recovery == Recovery::Pure || self.evidence.contains(&folder.join(&name)) {
                continue;
            }
            let text = body.output.text();
            let kept = match self.engine.store().seal_aside(self.log.workspace, &name, text.as_bytes()).await {
                Ok(sealed) => write(&folder, &name, &sealed).map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            match kept {
                Ok(file) => self.evidence.push(file),
                Err(error) => {
                    tracing::warn!(run = %self.log.run, error, "a result that cannot be recorded is not kept")
                }
            }
        }
    }

    /// What a process saw of a call and could not record, in words for the person who is asked about it.
    pub(crate) async fn evidence_of(&mut self, call: &CallId) -> Option<String> {
        let (name, _) = self.name_of(call)?;
        let file = self.engine.notebooks_folder().join(FOLDER).join(&name);
        let sealed = std::fs::read(&file).ok()?;
        self.evidence.push(file);
        let text = self.engine.store().open_aside(self.log.workspace, &name, sealed).await.ok()?;
        let text = String::from_utf8(text).ok()?;
        // People read it in lists (rule R1).
        let text = redact(&text, Mode::Standard);
        let shown: String = text.chars().take(SHOWN).collect();
        let cut = if shown.len() < text.len() { " …" } else { "" };
        Some(format!("Before that it saw this result, and could not record it: {shown}{cut}"))
    }

    /// What is recorded, or asked about, needs no evidence any more.
    pub(crate) fn drop_evidence(&mut self) {
        for file in std::mem::take(&mut self.evidence) {
            if let Err(error) = std::fs::remove_file(&file) {
                tracing::warn!(run = %self.log.run, %error, "what was kept of a result is left behind");
            }
        }
    }

    /// The name under which the result of this attempt at a call is kept. It tells nothing of it.
    fn name_of(&self, call: &CallId) -> Option<(String, Recovery)> {
        let started = self.state().call(call)?.started.as_ref()?;
        let name = Hash::of(format!("{} {call} {}", self.log.run, started.attempt).as_bytes());
        Some((name.to_string(), started.recovery))
    }
}

/// Writes a file so that it is there, whole, after a power cut, or not at all.
fn write(folder: &Path, name: &str, bytes: &[u8]) -> std::io::Result<PathBuf> {
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let (file, half) = (folder.join(name), folder.join(format!("{name}.half")));
    let mut written = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&half)?;
    written.write_all(bytes)?;
    written.sync_all()?;
    std::fs::rename(&half, &file)?;
    File::open(folder)?.sync_all()?;
    Ok(file)
}
