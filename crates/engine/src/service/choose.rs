//! Which agent a message is for when none is named: the one it mentions, else the one whose longest keyword it holds, else the
//! one everybody starts with.

use adjutant_core::guard::policy::AgentConfig;
use adjutant_core::id::{UserId, WorkspaceId};
use adjutant_store::row::AgentRow;

use crate::engine::Engine;
use crate::error::EngineError;

/// The agent that was chosen, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The agent.
    pub agent: AgentRow,
    /// Why this one.
    pub by: ChosenBy,
}

/// Why an agent was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChosenBy {
    /// The message mentions it: `@name`.
    Mention,
    /// The message holds this keyword of it.
    Keyword(String),
    /// Nothing spoke for another one.
    Default,
}

/// Why there is none to choose.
const NO_AGENT: &str =
    "the workspace has no agent that is switched on, and neither have you one of your own; make one or switch one on";

impl Engine {
    /// Chooses among the agents of the workspace and of this person that may run, and, where they mention it, one that is shared
    /// with them. Nothing else sends what somebody says to another person's own agent: whose it is writes its prompt and its
    /// keywords, shares it with whom they like, and hears what it asks.
    ///
    /// # Errors
    /// When there is no such agent at all.
    pub async fn choose_agent(
        &self,
        workspace: WorkspaceId,
        user: UserId,
        message: &str,
    ) -> Result<Choice, EngineError> {
        let mut rows = self.store().agents(workspace).await?;
        let own = |row: &AgentRow| row.owner.is_none_or(|owner| owner == user);
        rows.retain(|row| row.active && (own(row) || row.people.shared_with.contains(&user)));
        let message = message.to_lowercase();
        if let Some(row) = rows.iter().find(|row| holds(&message, &format!("@{}", row.slug))) {
            return Ok(Choice { agent: row.clone(), by: ChosenBy::Mention });
        }
        rows.retain(own);
        let mut best = None::<(String, &AgentRow)>;
        for row in &rows {
            let Ok(config) = serde_json::from_str::<AgentConfig>(&row.spec) else { continue };
            for word in config.keywords {
                let longer = best.as_ref().is_none_or(|(known, _)| word.chars().count() > known.chars().count());
                if longer && holds(&message, &word.trim().to_lowercase()) {
                    best = Some((word, row));
                }
            }
        }
        if let Some((word, row)) = best {
            return Ok(Choice { agent: row.clone(), by: ChosenBy::Keyword(word) });
        }
        let first = rows.iter().find(|row| row.slug == "guide").or_else(|| rows.iter().min_by_key(|row| row.id));
        let agent = first.cloned().ok_or_else(|| EngineError::Invalid(NO_AGENT.to_owned()))?;
        Ok(Choice { agent, by: ChosenBy::Default })
    }
}

/// Whether a text holds a word or several, as words of their own.
fn holds(text: &str, words: &str) -> bool {
    let part = |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    let alone = |at: usize| !part(text[..at].chars().next_back()) && !part(text[at + words.len()..].chars().next());
    !words.is_empty() && text.match_indices(words).any(|(at, _)| alone(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_counts_only_when_it_stands_alone() {
        assert!(holds("please summarise this", "summarise"));
        assert!(holds("ask @coder, now", "@coder"));
        assert!(holds("über den plan: los", "den plan"));
        for (text, word) in [("summarised", "summarise"), ("@coders", "@coder"), ("anything", "")] {
            assert!(!holds(text, word), "{text}");
        }
    }
}
