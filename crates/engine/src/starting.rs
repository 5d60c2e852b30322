//! Starting calls: announced in the log first, and held to what counts at that very moment.

use adjutant_core::id::CallId;
use adjutant_core::label::Labels;
use adjutant_core::run::event::CallStarted;
use adjutant_core::run::step::Settlement;

use crate::current::CurrentAgent;
use crate::driver::Driver;
use crate::error::EngineError;
use crate::log::Flushed;
use crate::patience::Hold;

impl Driver {
    /// Announces calls, makes that durable, and only then runs them. Whatever may fail comes before the announcement: an
    /// announced call that is not run would be in doubt.
    pub(crate) async fn start(&mut self, calls: &[CallId]) -> Result<Flushed, EngineError> {
        self.log.load_texts().await?;
        let agent = self.known_agent().await?;
        if self.toolbox.is_halted() {
            return self.hold_for_switch().await;
        }
        let world = self.world(&agent).await?;
        for id in calls {
            match self.announcement(&agent, id) {
                Some(started) => {
                    self.keep_before(&started, &world).await;
                    let taking = self.taking(&agent, &started);
                    self.mark_intended(&started).await;
                    self.log.push_taking(started, taking)?;
                }
                None => self.end_without_tool(id)?,
            }
        }
        self.log.under = self.toolbox.under();
        let flushed = self.flush(Hold::Keep).await?;
        if flushed != Flushed::Written {
            // It may be that another policy counts by now.
            self.toolbox.age();
            return Ok(flushed);
        }
        let durable = self.log.head.seq;
        for id in calls {
            match self.log.state.take_permit(id, durable) {
                Ok(permit) => {
                    let world = self.world_of(&permit, &agent, &world);
                    self.run(permit, world)?;
                }
                // It was stopped between its start and now, or there is no such tool any more.
                Err(_) if self.state().cancel.is_some() || self.state().call(id).is_none_or(|c| c.ended.is_some()) => {}
                Err(missing) => tracing::error!(run = %self.log.run, error = %missing, "a started call has no permit"),
            }
        }
        Ok(Flushed::Written)
    }

    /// Ends a call whose tool this node does not have: it was judged by another, with other tools.
    fn end_without_tool(&mut self, id: &CallId) -> Result<(), EngineError> {
        let Some(call) = self.state().call(id) else { return Ok(()) };
        let output = format!("There is no tool `{}` any more. It was not run.", call.tool).into();
        let (allowed, rule) = (call.started.is_some(), Some("tool".to_owned()));
        let (call, labels) = (id.clone(), Labels::NONE);
        self.settle(vec![Settlement { call, output, is_error: true, allowed, rule, labels }]).map(drop)
    }

    fn announcement(&mut self, agent: &CurrentAgent, id: &CallId) -> Option<CallStarted> {
        let again = self.toolbox.allowed_again(id);
        if let Some(config) = again.as_ref().and(agent.kept.as_ref()) {
            self.log.keep(config.as_bytes().to_vec());
        }
        let call = self.state().call(id)?;
        let tool = self.engine.tools().get(&call.tool)?;
        let prepared = call.judged.as_ref().and_then(|judged| judged.prepared.clone()).unwrap_or_default();
        Some(CallStarted {
            call: id.clone(),
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            attempt: call.started.as_ref().map_or(0, |started| started.attempt) + 1,
            key: adjutant_core::guard::permit::idempotency_key(self.log.run, id),
            recovery: tool.spec().recovery,
            target: prepared.target,
            intended: prepared.intended,
            again,
        })
    }
}
