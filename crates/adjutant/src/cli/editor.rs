//! Letting a person change a text in their own editor, or the arguments of a call: of those a long text is edited as text,
//! everything else as JSON.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value};

use super::prompt::pretty;
use crate::config::Environment;

/// What is edited: one text field, or all of it.
enum Part {
    Text { field: &'static str, rest: Map<String, Value>, text: String, ending: String },
    Json(String),
}

/// Opens the editor on the arguments of a call. None: nothing was changed.
///
/// # Errors
/// A sentence that says why it could not be done.
pub(crate) fn edit_arguments(arguments: &str, env: &Environment) -> Result<Option<String>, String> {
    if env.editor().is_none() {
        return Err("No editor is set: name one in EDITOR, or answer [f] and say what should change.".to_owned());
    }
    let part = part_of(arguments);
    let (text, ending) = match &part {
        Part::Text { text, ending, .. } => (text.as_str(), ending.as_str()),
        Part::Json(text) => (text.as_str(), "json"),
    };
    let Some(edited) = edit_text(text, ending, env)? else { return Ok(None) };
    match part {
        Part::Json(_) => Ok(Some(edited)),
        Part::Text { field, mut rest, .. } => {
            rest.insert(field.to_owned(), Value::String(edited));
            Ok(Some(Value::Object(rest).to_string()))
        }
    }
}

/// Opens the editor on a text. None: nothing was changed.
///
/// # Errors
/// A sentence that says why it could not be done.
pub(crate) fn edit_text(text: &str, ending: &str, env: &Environment) -> Result<Option<String>, String> {
    let editor = env.editor().ok_or("No editor is set: name one in EDITOR.")?;
    let file = Draft::new(&env.temporary_folder(), text, ending)?;
    // The variable may hold arguments, as in `code --wait`; the shell is what other programs use to read it.
    let status = Command::new("sh").arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(&file.0).status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => return Err(format!("The editor ended with {status}; nothing was changed.")),
        Err(error) => return Err(format!("The editor could not be started: {error}.")),
    }
    let edited =
        std::fs::read_to_string(&file.0).map_err(|error| format!("What was written cannot be read: {error}."))?;
    Ok((edited != text).then_some(edited))
}

fn part_of(arguments: &str) -> Part {
    if let Ok(Value::Object(rest)) = serde_json::from_str::<Value>(arguments)
        && let Some(text) =
            rest.get("content").and_then(Value::as_str).filter(|text| text.contains('\n')).map(str::to_owned)
    {
        let path = rest.get("path").and_then(Value::as_str).map(Path::new);
        let ending = path.and_then(Path::extension).and_then(|ending| ending.to_str());
        let ending = ending.filter(|ending| ending.chars().all(char::is_alphanumeric)).unwrap_or("txt").to_owned();
        return Part::Text { field: "content", rest, text, ending };
    }
    Part::Json(pretty(arguments))
}

/// A file only this person can read, gone when it is no longer needed.
struct Draft(PathBuf);

impl Draft {
    fn new(folder: &Path, text: &str, ending: &str) -> Result<Self, String> {
        let name: [u8; 8] = adjutant_engine::Env::system().random();
        let name: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = folder.join(format!("adjutant-{name}.{ending}"));
        let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| format!("{} cannot be written: {error}.", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_edited_as_text_and_the_rest_stays() {
        match part_of(r#"{"path":"/a.md","content":"one\ntwo\n"}"#) {
            Part::Text { field, rest, text, ending } => {
                assert_eq!((field, text.as_str(), ending.as_str()), ("content", "one\ntwo\n", "md"));
                assert_eq!(rest["path"], "/a.md");
            }
            Part::Json(_) => panic!("the content is a text"),
        }
        assert!(matches!(part_of(r#"{"key":"a","value":"b"}"#), Part::Json(_)));
    }
}
