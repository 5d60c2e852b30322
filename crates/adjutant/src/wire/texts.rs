//! The long texts that events refer to by their hash, loaded before an event is shown.

use std::collections::HashMap;
use std::sync::Arc;

use adjutant_core::content::{Content, Hash};
use adjutant_core::id::WorkspaceId;
use adjutant_core::run::event::Event;
use adjutant_engine::{Engine, EngineError};

/// Texts by the hash of their block.
#[derive(Debug, Clone, Default)]
pub(crate) struct Texts(HashMap<Hash, Arc<str>>);

impl Texts {
    /// Loads what these events refer to. What was erased stays missing.
    pub(crate) async fn load(
        engine: &Engine,
        workspace: WorkspaceId,
        events: impl IntoIterator<Item = &Event>,
    ) -> Result<Self, EngineError> {
        let mut missing: Vec<Content> =
            events.into_iter().flat_map(shown).filter(|content| content.missing().is_some()).cloned().collect();
        if missing.is_empty() {
            return Ok(Self::default());
        }
        let mut wanted: Vec<&mut Content> = missing.iter_mut().collect();
        engine.load_texts(workspace, &mut wanted).await?;
        let loaded = missing.iter().filter_map(|content| Some((content.block()?, Arc::clone(content.loaded()?))));
        Ok(Self(loaded.collect()))
    }

    /// The text of a content, or a sentence in its place when it was erased.
    pub(crate) fn of(&self, content: &Content) -> String {
        match content.missing().and_then(|hash| self.0.get(&hash)) {
            Some(text) => text.to_string(),
            None => content.text().into_owned(),
        }
    }
}

/// The texts of an event that are shown. Of how a run began that is the message: what came with it may be large, and is only
/// named.
fn shown(event: &Event) -> Vec<&Content> {
    match event {
        Event::RunStarted(body) => body.user_message.iter().collect(),
        other => other.contents(),
    }
}

#[cfg(test)]
impl FromIterator<(Hash, Arc<str>)> for Texts {
    fn from_iter<T: IntoIterator<Item = (Hash, Arc<str>)>>(texts: T) -> Self {
        Self(texts.into_iter().collect())
    }
}
