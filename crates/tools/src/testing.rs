//! A stage for the tests of tools: a real notebook with a decoy beside it, and calls made as the engine makes them: looked
//! at first, then run with a permit for what was seen.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use adjutant_core::guard::judge::Caller;
use adjutant_core::guard::permit::Permit;
use adjutant_core::guard::policy::AgentSpec;
use adjutant_core::guard::rule::{Asked, Rules};
use adjutant_core::guard::scope::{Caps, Scope, ScopeSpec};
use adjutant_core::id::{AgentId, ChatId, RuleId, RunId, UserId};
use adjutant_core::time::Time;
use adjutant_core::tool::{Done, Prepared, Probe, ToolOutcome};
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::memory::{MemoryIndex, MemoryKv};
use crate::net::Connector;
use crate::notebook::Fence;
use crate::{Catalog, Notebook, Registry, World};

/// Says that something could not be tested here, past the harness, which would swallow it.
pub(crate) fn skip(what: &str, why: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "skipped: {what}, because {why}");
}

/// A notebook, a scope and the built-in tools.
pub(crate) struct Stage {
    folder: TempDir,
    pub(crate) world: World,
    registry: Registry,
}

impl Stage {
    /// A notebook with these files, wholly open to the agent.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        Self::scoped(files, json!({"folders": ["/"]}))
    }

    /// A notebook with these files, and an agent with this scope and every capability.
    pub(crate) fn scoped(files: &[(&str, &str)], scope: Value) -> Self {
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("notebook")).unwrap();
        fs::write(folder.path().join("outside.md"), "outside needle").unwrap();
        let world = World {
            notebook: Some(Arc::new(Notebook::open(&folder.path().join("notebook")).unwrap())),
            scope: compiled(scope, Caps::ALL),
            held: Arc::default(),
            outside: Arc::default(),
            connector: Connector::default(),
            kv: Arc::new(MemoryKv::default()),
            index: Arc::new(MemoryIndex::default()),
            catalog: catalog(AgentSpec { name: "a".to_owned(), ..AgentSpec::default() }),
            fence: Fence::default(),
            now: "2026-01-30T10:00:00Z".parse().unwrap(),
            zone: TimeZone::UTC,
        };
        let stage = Self { folder, world, registry: Registry::builtin() };
        for (path, text) in files {
            stage.put(path, text);
        }
        stage
    }

    /// Another scope for the same notebook.
    pub(crate) fn rescope(&mut self, scope: Value, caps: Caps) {
        self.world.scope = compiled(scope, caps);
    }

    /// A rule that denies this in a folder holds what it speaks of, for calls of a tool that names no path.
    pub(crate) fn hold(&mut self, denied: &str, folder: &str, tool: &str) {
        let at = Time::from_millis(0);
        let rule = json!({
            "id": RuleId::new(at, [1; 10]), "owner": UserId::new(at, [2; 10]), "tool": denied, "decision": "deny",
            "when": {"folders": [folder]}, "created_at": at,
        });
        let (agent, chat, run) = (AgentId::new(at, [3; 10]), ChatId::new(at, [4; 10]), RunId::new(at, [5; 10]));
        let caller = Caller { agent, chat, run, notebook: None, now: self.world.now };
        let rules = Rules::new([serde_json::from_value(rule).unwrap()]);
        let (arguments, schema) = (json!({}), Value::Null);
        let asked = Asked { caller, tool, arguments: &arguments, schema: &schema, touches: &[], sources: &[] };
        self.world.held = Arc::new(rules.places_held(&asked));
    }

    /// Another agent, for tools about tools.
    pub(crate) fn grant(&mut self, agent: AgentSpec) {
        self.world.catalog = catalog(agent);
    }

    /// Where a path of the notebook is on the host.
    pub(crate) fn host(&self, path: &str) -> PathBuf {
        self.folder.path().join("notebook").join(path.trim_start_matches('/'))
    }

    /// Writes a file behind the tools' back.
    pub(crate) fn put(&self, path: &str, text: &str) {
        fs::create_dir_all(self.host(path).parent().unwrap()).unwrap();
        fs::write(self.host(path), text).unwrap();
    }

    /// What a file holds; none where there is none.
    pub(crate) fn get(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.host(path)).ok()
    }

    pub(crate) async fn prepare(&self, tool: &str, arguments: Value) -> Result<Prepared, ToolOutcome> {
        self.registry.get(tool).unwrap().prepare(&arguments, &self.world).await
    }

    pub(crate) async fn run(&self, tool: &str, arguments: Value, prepared: &Prepared) -> ToolOutcome {
        let permit = Permit::for_test(tool, arguments, prepared.target.clone());
        self.registry.get(tool).unwrap().run(permit, &self.world).await
    }

    /// Looks and then runs.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> ToolOutcome {
        match self.prepare(tool, arguments.clone()).await {
            Ok(prepared) => self.run(tool, arguments, &prepared).await,
            Err(outcome) => outcome,
        }
    }

    /// The output of a call that works.
    pub(crate) async fn output(&self, tool: &str, arguments: Value) -> String {
        self.done(tool, arguments).await.output
    }

    /// The answer of a call that works.
    pub(crate) async fn done(&self, tool: &str, arguments: Value) -> Done {
        match self.call(tool, arguments).await {
            ToolOutcome::Done(done) => done,
            other => panic!("{tool}: {other:?}"),
        }
    }

    /// The message of a call that fails.
    pub(crate) async fn failure(&self, tool: &str, arguments: Value) -> String {
        message(self.call(tool, arguments).await)
    }

    pub(crate) async fn reconcile(&self, tool: &str, arguments: Value, prepared: &Prepared) -> Probe {
        let tool = self.registry.get(tool).unwrap();
        tool.reconcile(&arguments, &prepared.target, prepared.intended.as_ref(), &self.world).await
    }
}

/// The message of a failure.
pub(crate) fn message(outcome: ToolOutcome) -> String {
    match outcome {
        ToolOutcome::Failed { message, .. } => message,
        other => panic!("not a failure: {other:?}"),
    }
}

fn catalog(agent: AgentSpec) -> Catalog {
    Catalog::new(Arc::new(Registry::builtin()), Arc::new(agent.complete().unwrap()))
}

fn compiled(scope: Value, caps: Caps) -> Arc<Scope> {
    let spec: ScopeSpec = serde_json::from_value(scope).unwrap();
    Arc::new(Scope::compile(&spec, caps))
}

/// A moment long after everything the tests write.
pub(crate) fn far_future() -> Time {
    "2999-01-01T00:00:00Z".parse().unwrap()
}
