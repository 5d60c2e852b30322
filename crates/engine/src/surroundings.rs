//! What a tool sees of the world: the run's notebook and what of it, of the network and of the store a call may reach.

use std::sync::Arc;

use adjutant_core::guard::host::Elsewhere;
use adjutant_core::guard::judge::{Caller, Outside, sources, touches};
use adjutant_core::guard::permit::Permit;
use adjutant_core::guard::rule::Asked;
use adjutant_core::id::{AgentId, NotebookId};
use adjutant_core::tool::ToolSpec;
use adjutant_tools::World;
use adjutant_tools::notebook::Fence;
use serde_json::Value;

use crate::current::CurrentAgent;
use crate::driver::Driver;
use crate::engine::lock;
use crate::error::EngineError;
use crate::handles::{self, AgentKeys, OpenNotebook};

impl Driver {
    pub(crate) async fn world(&self, agent: &CurrentAgent) -> Result<World, EngineError> {
        let (workspace, start) = (self.log.workspace, self.state().start.as_ref());
        let notebook_id = start.and_then(|start| start.notebook);
        let fence = self.fence();
        let notebook = match notebook_id {
            // The policy may have changed since the chat was made: what it no longer admits is not opened.
            Some(id) => Some(self.open_notebook(id).await?)
                .filter(|open| agent.scope.admits_notebook(&id.to_string(), &open.slug))
                .map(|open| Arc::new(open.files.fenced(fence.clone()))),
            None => None,
        };
        let zone =
            start.and_then(|start| jiff::tz::TimeZone::get(&start.time_zone).ok()).unwrap_or(jiff::tz::TimeZone::UTC);
        Ok(World {
            notebook,
            scope: Arc::clone(&agent.scope),
            held: Arc::default(),
            outside: Arc::clone(&agent.outside),
            connector: self.engine.connector(),
            kv: Arc::new(AgentKeys {
                store: self.engine.store().clone(),
                workspace,
                agent: agent.id,
                labels: self.state().labels,
                owner: self.owner,
            }),
            index: handles::index(self.engine.store(), workspace, notebook_id),
            catalog: self.engine.catalog(agent),
            fence,
            now: self.now(),
            zone,
        })
    }

    /// The run's notebook, by the name that it has under the version of its workspace that was read last: what is judged by an
    /// older name is refused when it is announced. The store is asked once a version.
    pub(crate) async fn open_notebook(&self, id: NotebookId) -> Result<OpenNotebook, EngineError> {
        let version = self.toolbox.workspace_version();
        if let Some((_, open)) = lock(&self.notebook).as_ref().filter(|(under, _)| *under == version) {
            return Ok(open.clone());
        }
        let open = self.engine.notebook(self.log.workspace, id).await?;
        *lock(&self.notebook) = Some((version, open.clone()));
        Ok(open)
    }

    /// Lets only the run's owner act. Where nobody else can become that, there is nothing to ask.
    fn fence(&self) -> Fence {
        match self.engine.store().is_alone() {
            true => Fence::default(),
            false => self.engine.fence(self.life),
        }
    }

    /// What a tool sees now.
    pub(crate) async fn current_world(&mut self) -> Result<World, EngineError> {
        let agent = self.agent().await?;
        self.world(&agent).await
    }

    /// The world with what standing rules hold of it for one call (F7).
    pub(crate) fn holding(&self, agent: &CurrentAgent, spec: &ToolSpec, arguments: &Value, world: &World) -> World {
        let held = self.asking(agent, spec, arguments, |asked| agent.rules.places_held(asked));
        World { held: Arc::new(held), ..world.clone() }
    }

    /// Asks standing rules about a call.
    fn asking<T>(
        &self,
        agent: &CurrentAgent,
        spec: &ToolSpec,
        arguments: &Value,
        ask: impl FnOnce(&Asked<'_>) -> T,
    ) -> T {
        ask(&Asked {
            caller: self.caller(agent.id),
            tool: spec.name(),
            arguments,
            schema: &spec.definition.schema,
            touches: &touches(spec, arguments),
            sources: &sources(spec, arguments),
        })
    }

    /// The world of one call: less what rules hold. Where a server redirects to is no part of what was judged: what standing
    /// rules speak about has to be called by itself, and a yes to one host is none to another (N4).
    pub(crate) fn world_of(&self, permit: &Permit, agent: &CurrentAgent, world: &World) -> World {
        let Some(tool) = self.engine.tools().get(permit.tool()) else { return world.clone() };
        let (spec, arguments) = (tool.spec(), permit.arguments());
        let world = self.holding(agent, spec, arguments, world);
        if !spec.egress {
            return world;
        }
        let judged = self.state().call(permit.call()).and_then(|call| call.judged.as_ref());
        let elsewhere = match judged.is_some_and(|judged| judged.verdict.rule == "autonomy") {
            true => Elsewhere::Anywhere,
            false => Elsewhere::Nowhere,
        };
        let held = self.asking(agent, spec, arguments, |asked| agent.rules.urls_held(asked, &spec.checks.urls));
        let hosts = world.outside.hosts.clone().redirecting(elsewhere, held);
        World { outside: Arc::new(Outside { hosts, ..(*world.outside).clone() }), ..world }
    }

    /// Who calls, where and when: what standing rules are about.
    pub(crate) fn caller(&self, agent: AgentId) -> Caller {
        let start = self.state().start.as_ref();
        // A log without a start drives nothing; the id only has to be one that no rule names.
        let chat = start.map_or_else(|| self.engine.env().id(), |start| start.chat);
        let notebook = start.and_then(|start| start.notebook);
        Caller { agent, chat, run: self.log.run, notebook, now: self.now() }
    }
}
