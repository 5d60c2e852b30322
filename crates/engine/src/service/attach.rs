//! Files that come with a message: read from the chat's notebook when it is said, and recorded with it. What the person chose
//! to show is shown, whatever the scope of the agent; what it adds to the labels of the run is added.

use adjutant_core::content::{Content, Hash};
use adjutant_core::guard::path::NotePath;
use adjutant_core::id::{NotebookId, UserId, WorkspaceId};
use adjutant_core::label::Labels;
use adjutant_core::limits;
use adjutant_core::run::event::{Attachment, ContentFiltered};
use adjutant_tools::FileError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::notes::{Meant, NotePlace};
use super::start::StartRun;
use crate::current::CurrentAgent;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::log::texts;

/// Where files from outside are kept: what is read from there is not the members' own.
pub(crate) const FOLDER: &str = "/attachments/";

/// What came with a message.
#[derive(Debug, Default)]
pub(super) struct Attached {
    pub(super) attachments: Vec<Attachment>,
    /// What all of them add.
    pub(super) labels: Labels,
    /// What the content filter did to them.
    pub(super) filtered: Vec<ContentFiltered>,
}

impl Engine {
    /// Keeps a file that somebody brings, where messages can refer to it. One of another content that has its name stays.
    ///
    /// # Errors
    /// When it cannot be a file of a notebook.
    pub async fn keep_attachment(
        &self,
        workspace: WorkspaceId,
        notebook: NotebookId,
        user: UserId,
        name: &str,
        bytes: Vec<u8>,
    ) -> Result<String, EngineError> {
        for name in [attachment_name(name, None), attachment_name(name, Some(&bytes))] {
            let place = NotePlace { workspace, notebook, path: read_path(&format!("{FOLDER}{name}"))? };
            match self.save_note(&place, user, bytes.clone(), Meant::Absent).await {
                Err(EngineError::File { why: FileError::Exists, .. }) => {
                    if self.read_note(&place).await?.hash == Hash::of(&bytes) {
                        return Ok(place.path.to_string());
                    }
                }
                saved => return saved.map(|_| place.path.to_string()),
            }
        }
        Err(EngineError::Invalid(format!("`{name}` cannot be kept: another file has its name")))
    }

    /// Reads what a message says comes with it.
    pub(super) async fn attached(
        &self,
        workspace: WorkspaceId,
        agent: &CurrentAgent,
        ask: &StartRun,
    ) -> Result<Attached, EngineError> {
        if ask.attachments.is_empty() {
            return Ok(Attached::default());
        }
        if ask.attachments.len() > limits::ATTACHMENTS {
            let most = limits::ATTACHMENTS;
            return Err(EngineError::Invalid(format!("a message comes with at most {most} files")));
        }
        let notebook = match ask.chat {
            Some(chat) => self.chat_for(workspace, chat, agent).await?.notebook,
            None => self.choose_notebook(workspace, agent, ask.notebook).await?,
        };
        let Some(notebook) = notebook else {
            return Err(EngineError::Invalid("the chat has no notebook that could hold files".to_owned()));
        };
        let mut all = Attached::default();
        for path in &ask.attachments {
            let place = NotePlace { workspace, notebook, path: read_path(path)? };
            // One file has many spellings; what is recorded and looked at is the one the notebook knows.
            let path = place.path.to_string();
            if all.attachments.iter().any(|known| known.path == path) {
                return Err(EngineError::Invalid(format!("`{path}` comes with the message twice")));
            }
            let file = self.read_note(&place).await?;
            let untrusted = path.starts_with(FOLDER) || self.is_note_untrusted(&place, file.hash).await?;
            let labels = if untrusted { Labels::PRIVATE.join(Labels::UNTRUSTED) } else { Labels::PRIVATE };
            let (media_type, content) = match picture(&file.bytes) {
                Some(kind) => (kind, image(&path, &file.bytes)?),
                None => {
                    let text = text(&path, &file.bytes)?;
                    let (text, noted) = self.filter_prompt(workspace, ask.user, agent, text).await?;
                    all.filtered.extend(noted);
                    ("text/plain", text)
                }
            };
            all.labels = all.labels.join(labels);
            let media_type = media_type.to_owned();
            all.attachments.push(Attachment { path, media_type, content: Content::new(content), labels });
        }
        Ok(all)
    }

    /// What came with a message, as it may be said again: the filter may be another one by now.
    pub(super) async fn attached_again(
        &self,
        workspace: WorkspaceId,
        user: UserId,
        agent: &CurrentAgent,
        before: &[Attachment],
    ) -> Result<(Vec<Attachment>, Vec<ContentFiltered>), EngineError> {
        let missing: Vec<_> = before.iter().filter_map(|file| file.content.missing()).collect();
        let loaded = texts(self.store(), workspace, &missing).await?;
        let (mut files, mut filtered) = (before.to_vec(), Vec::new());
        for file in &mut files {
            if let Some(text) = file.content.missing().and_then(|hash| loaded.get(&hash)) {
                file.content.fill(text);
            }
            if !file.is_image() {
                let (text, noted) = self.filter_prompt(workspace, user, agent, &file.content.text()).await?;
                file.content = Content::new(text);
                filtered.extend(noted);
            }
        }
        Ok((files, filtered))
    }
}

/// The name of a file among the attachments: without folders, and with a part of its hash where the plain one is taken.
#[must_use]
pub fn attachment_name(name: &str, taken_with: Option<&[u8]>) -> String {
    let last = name.rsplit('/').next().unwrap_or_default();
    let plain: String = last.chars().filter(|letter| !letter.is_control()).take(100).collect();
    let plain = plain.trim().trim_start_matches('.');
    let plain = if plain.is_empty() { "file" } else { plain };
    let Some(bytes) = taken_with else { return plain.to_owned() };
    let hash = Hash::of(bytes).to_string();
    let mark = hash.get(..8).unwrap_or_default();
    match plain.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() => format!("{stem}-{mark}.{ending}"),
        Some(_) | None => format!("{plain}-{mark}"),
    }
}

fn read_path(path: &str) -> Result<NotePath, EngineError> {
    NotePath::parse(path).map_err(|bad| EngineError::Invalid(format!("`{path}` is no path of a notebook: {bad}")))
}

/// What a file is, by its bytes: a name can say anything.
#[must_use]
pub fn media_type(bytes: &[u8]) -> &'static str {
    match picture(bytes) {
        Some(kind) => kind,
        None if bytes.starts_with(b"%PDF-") => "application/pdf",
        None if is_text(bytes).is_some() => "text/plain",
        None => "application/octet-stream",
    }
}

fn is_text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

/// What kind of picture it is.
fn picture(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', 0x0D, 0x0A, 0x1A, 0x0A, ..] => Some("image/png"),
        [0xFF, 0xD8, 0xFF, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

fn image(path: &str, bytes: &[u8]) -> Result<String, EngineError> {
    let most = limits::ATTACHED_IMAGE_BYTES;
    if bytes.len() > most {
        return Err(EngineError::Invalid(format!(
            "`{path}` is too large for a model: a picture has at most {most} bytes"
        )));
    }
    Ok(STANDARD.encode(bytes))
}

fn text<'a>(path: &str, bytes: &'a [u8]) -> Result<&'a str, EngineError> {
    let most = limits::ATTACHED_TEXT_BYTES;
    let text = is_text(bytes).ok_or_else(|| {
        EngineError::Invalid(format!(
            "`{path}` is neither text nor a picture (PNG, JPEG, GIF, WebP), and no model can be shown it"
        ))
    })?;
    if text.len() > most {
        return Err(EngineError::Invalid(format!(
            "`{path}` is too long to be shown whole: a text has at most {most} bytes; name its path in the message, and the agent reads it in pieces"
        )));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_known_by_its_bytes_and_not_by_its_name() {
        assert_eq!(picture(b"\x89PNG\r\n\x1a\nrest"), Some("image/png"));
        assert_eq!(picture(b"\xff\xd8\xff\xe0"), Some("image/jpeg"));
        assert_eq!(picture(b"GIF89a"), Some("image/gif"));
        assert_eq!(picture(b"RIFF\0\0\0\0WEBPVP8 "), Some("image/webp"));
        assert_eq!(picture(b"<svg>"), None);
        assert_eq!(picture(b""), None);
    }

    #[test]
    fn a_name_keeps_its_ending_and_loses_its_folders() {
        assert_eq!(attachment_name("a/b/plan.v2.png", None), "plan.v2.png");
        assert_eq!(attachment_name("../..", None), "file");
        assert_eq!(attachment_name(".env", None), "env");
        let taken = attachment_name("plan.png", Some(b"x"));
        assert!(taken.starts_with("plan-") && taken.ends_with(".png") && taken.len() == 17, "{taken}");
    }
}
