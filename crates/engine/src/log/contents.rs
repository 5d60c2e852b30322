//! The texts that events refer to: which of them a run acts on, the blocks they live in, and loading them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use adjutant_core::content::{Content, Hash};
use adjutant_core::id::WorkspaceId;
use adjutant_core::run::event::Class;
use adjutant_core::run::state::State;
use adjutant_store::Store;
use adjutant_store::row::Block;

use super::RunLog;
use crate::error::EngineError;

/// The texts of a run that are acted on or shown in lists.
pub(super) fn in_use(state: &mut State) -> Vec<&mut Content> {
    let said = state.start.iter_mut().filter_map(|start| start.user_message.as_mut());
    let result = state.end.iter_mut().map(|(end, _)| &mut end.result);
    let mut contents: Vec<_> = said.chain(result).collect();
    // A turn of reasoning alone has no words: the result of a run that ends then is what was said before.
    let last_words = state.turns.iter().rposition(|turn| turn.words().is_some());
    for (index, turn) in state.turns.iter_mut().enumerate() {
        if last_words == Some(index) {
            contents.extend(turn.thoughts.iter_mut().map(|thought| &mut thought.text).chain(&mut turn.said));
        }
        for call in turn.calls.iter_mut().filter(|call| call.ended.is_none()) {
            contents.extend(call.started.as_mut().map(|started| &mut started.arguments));
            contents.push(&mut call.arguments);
        }
    }
    contents
}

/// The blocks that these texts live in, each once.
pub(crate) fn blocks_of<'a>(texts: impl IntoIterator<Item = &'a Content>) -> Vec<Block> {
    let mut seen = HashSet::new();
    texts
        .into_iter()
        .filter_map(|content| Some((content.block()?, content.loaded()?)))
        .filter(|(hash, _)| seen.insert(*hash))
        .map(|(hash, text)| Block { hash, bytes: text.as_bytes().to_vec() })
        .collect()
}

/// Loads the texts of blocks.
pub(crate) async fn texts(
    store: &Store,
    workspace: WorkspaceId,
    hashes: &[Hash],
) -> Result<HashMap<Hash, Arc<str>>, EngineError> {
    if hashes.is_empty() {
        return Ok(HashMap::new());
    }
    let blocks = store.blocks(workspace, hashes).await?;
    Ok(blocks.into_iter().filter_map(|(hash, bytes)| Some((hash, Arc::from(String::from_utf8(bytes).ok()?)))).collect())
}

impl RunLog {
    /// Whether something that has happened is not durable yet.
    pub(crate) fn holds_facts(&self) -> bool {
        self.pending.iter().any(|pending| pending.event.class() == Class::Fact)
    }

    /// The texts and contents that have to be written with what is pending.
    pub(super) fn blocks_to_write(&self) -> Vec<Block> {
        let mut blocks = blocks_of(self.pending.iter().flat_map(|pending| pending.event.contents()));
        let known: HashSet<_> = blocks.iter().map(|block| block.hash).collect();
        let kept = self.blocks.iter().filter(|(hash, _)| !known.contains(*hash));
        blocks.extend(kept.map(|(hash, bytes)| Block { hash: *hash, bytes: bytes.clone() }));
        blocks
    }
}
