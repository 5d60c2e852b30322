//! The content filter at work: what people say, what models answer and what tools return is looked at before it is
//! recorded, so that what was taken out is in no log. What it holds back or changes is recorded.

use adjutant_core::audit::{Act, Deed};
use adjutant_core::guard::filter::{Filter, FilterPoint, Filtered};
use adjutant_core::guard::judge::filter_points;
use adjutant_core::guard::{arguments, filter};
use adjutant_core::id::{CallId, UserId, WorkspaceId};
use adjutant_core::message::{ModelAnswer, Thinking};
use adjutant_core::run::event::{Actor, ContentFiltered};
use adjutant_models::DeltaSink;

use crate::audit::AuditLog;
use crate::current::CurrentAgent;
use crate::driver::Driver;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::held::Record;

impl Engine {
    /// What a person says to an agent, as it may be said.
    ///
    /// # Errors
    /// When the filter forbids it. That somebody tried is recorded, what they said is not.
    pub(crate) async fn filter_prompt(
        &self,
        workspace: WorkspaceId,
        user: UserId,
        agent: &CurrentAgent,
        message: &str,
    ) -> Result<(String, Option<ContentFiltered>), EngineError> {
        let held = self.held(Record::Run(workspace, agent.id, user)).await?;
        let message = held.clean(message);
        let found = agent.filter.apply(FilterPoint::Prompt, &message);
        if let Some(entry) = found.blocked {
            let about = format!("a message to {}, by entry {entry} of its content filter", agent.config.slug);
            let act = Act::new(Deed::MessageBlocked, Some(Actor::User(user)), about).agent(agent.id);
            self.audit(AuditLog::Workspace(workspace), act).await?;
            return Err(EngineError::ContentBlocked { agent: agent.config.slug.clone(), entry });
        }
        let noted = ContentFiltered::of(FilterPoint::Prompt, None, &found);
        Ok((found.text.into_owned(), noted))
    }

    /// Where the pieces of an answer go. One that may be changed or held back is not shown before it is whole.
    pub(crate) fn filtered_pieces(&self, pieces: DeltaSink, filter: &Filter) -> DeltaSink {
        if filter.may_change(FilterPoint::Output) { DeltaSink::new(|_| {}) } else { pieces }
    }
}

impl Driver {
    /// An answer as it may be recorded: its text and thinking at the point of output, its calls at that of input.
    pub(crate) fn filter_answer(
        &mut self,
        filter: &Filter,
        mut answer: ModelAnswer,
    ) -> Result<ModelAnswer, EngineError> {
        let said = answer.text.clone();
        answer.text = self.filter_output(filter, None, answer.text)?;
        for Thinking { text, signature, after_text, .. } in &mut answer.thinking {
            if *after_text > 0 && answer.text != said {
                // Where it was in the text is not known any more; all of it came first.
                *after_text = answer.text.len();
            }
            let before = std::mem::take(text);
            *text = self.filter_output(filter, None, before.clone())?;
            if *text != before {
                // The provider's proof is about what it wrote.
                *signature = None;
            }
        }
        Ok(answer)
    }

    /// A text that comes back from a tool or a model, as it may be recorded.
    pub(crate) fn filter_output(
        &mut self,
        filter: &Filter,
        call: Option<&CallId>,
        text: String,
    ) -> Result<String, EngineError> {
        let found = filter.apply(FilterPoint::Output, &text);
        self.note(FilterPoint::Output, call, &found)?;
        Ok(match found.blocked {
            Some(entry) => filter::withheld(entry),
            None => found.text.into_owned(),
        })
    }

    /// The arguments of a call, as they may be recorded, judged and used. What cannot be read is left to the guard, which
    /// refuses it.
    pub(crate) fn filter_arguments(
        &mut self,
        filter: &Filter,
        call: &CallId,
        tool: &str,
        text: String,
    ) -> Result<String, EngineError> {
        let Some(spec) = self.engine.tools().get(tool).map(|tool| tool.spec()) else { return Ok(text) };
        let points = filter_points(spec);
        let chosen = filter.apply(FilterPoint::Tool, tool);
        self.note(FilterPoint::Tool, Some(call), &Filtered { blocked: None, ..chosen })?;
        if !points.iter().any(|point| filter.looks_at(*point)) {
            return Ok(text);
        }
        let Ok(mut value) = arguments::parse(&text) else { return Ok(text) };
        let mut is_changed = false;
        for point in points {
            let (changed, found) = filter.apply_to(*point, &value);
            is_changed |= !found.redacted.is_empty();
            // What blocks and asks is the guard's to say, in its verdict.
            self.note(*point, Some(call), &Filtered { blocked: None, ..found })?;
            value = changed;
        }
        Ok(if is_changed { value.to_string() } else { text })
    }

    fn note(&mut self, point: FilterPoint, call: Option<&CallId>, found: &Filtered<'_>) -> Result<(), EngineError> {
        match ContentFiltered::of(point, call.cloned(), found) {
            Some(noted) => self.log.push(noted),
            None => Ok(()),
        }
    }
}
