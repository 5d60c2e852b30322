//! Calls whose first attempt took place without anybody hearing of it: found as done, and never done over what came since.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use adjutant_core::guard::permit::Permit;
use adjutant_core::guard::policy::Autonomy;
use adjutant_core::run::status::Status;
use adjutant_core::tool::{Prepared, Probe, Target, ToolOutcome, ToolSpec};
use adjutant_engine::tools::{Registry, Tool, World};
use adjutant_engine::{Agent, RunReport};
use serde_json::Value;

use super::Stage;

/// A tool whose first attempt acts and then says that it did not; another run may change a key meanwhile.
struct Late {
    inner: Arc<dyn Tool>,
    meanwhile: Option<(&'static str, &'static str)>,
    was_asked: AtomicBool,
}

#[async_trait::async_trait]
impl Tool for Late {
    fn spec(&self) -> &ToolSpec {
        self.inner.spec()
    }

    async fn prepare(&self, arguments: &Value, world: &World) -> Result<Prepared, ToolOutcome> {
        self.inner.prepare(arguments, world).await
    }

    async fn keepsakes(&self, arguments: &Value, target: &Target, world: &World) -> Vec<Vec<u8>> {
        self.inner.keepsakes(arguments, target, world).await
    }

    async fn reconcile(&self, arguments: &Value, target: &Target, intended: Option<&Target>, world: &World) -> Probe {
        self.inner.reconcile(arguments, target, intended, world).await
    }

    async fn run(&self, permit: Permit, world: &World) -> ToolOutcome {
        let outcome = self.inner.run(permit, world).await;
        if self.was_asked.swap(true, Ordering::SeqCst) {
            return outcome;
        }
        if let Some((key, value)) = self.meanwhile {
            world.kv.set(key, value).await.unwrap();
        }
        ToolOutcome::Failed { message: "Not now.".to_owned(), retriable: true }
    }
}

async fn run(stage: &Stage, call: &str, meanwhile: Option<(&'static str, &'static str)>) -> (RunReport, Agent) {
    let name = call.split(',').next().unwrap();
    let inner = Arc::clone(Registry::builtin().get(name).unwrap());
    let tool = Arc::new(Late { inner, meanwhile, was_asked: AtomicBool::new(false) });
    let script = format!("- when: {{ turn: 2 }}\n  text: \"${{last_result}}\"\n- calls: [{{ name: {call} }}]");
    let builder = stage.agent(&script).tool(tool).configure(|spec| {
        (spec.autonomy, spec.can_delete) = (Some(Autonomy::Full), Some(true));
    });
    let agent = builder.build().await.unwrap();
    let report = agent.run("go").await.unwrap();
    assert_eq!(report.status, Status::Completed, "{report:#?}");
    (report, agent)
}

#[tokio::test]
async fn a_change_of_a_file_that_landed_late_is_recorded_as_done() {
    let stage = Stage::new(&[("/a.md", "old"), ("/gone.md", "x")]);
    for (call, says, path) in [
        ("write_file, arguments: { path: /a.md, content: new }", "Wrote /a.md", "/a.md"),
        ("create_file, arguments: { path: /b.md, content: new }", "Created /b.md", "/b.md"),
        ("delete_file, arguments: { path: /gone.md }", "Deleted /gone.md", "/gone.md"),
    ] {
        let (report, _) = run(&stage, call, None).await;
        assert!(report.result.starts_with(says), "{}", report.result);
        let touched: Vec<_> = report.resources.iter().map(|made| made.resource.path.as_str()).collect();
        assert_eq!(touched, [path], "what was done can be undone");
    }
    assert_eq!(
        (stage.read("/a.md"), stage.read("/b.md"), stage.exists("/gone.md")),
        ("new".into(), "new".into(), false)
    );
}

#[tokio::test]
async fn a_key_that_was_set_before_is_not_set_again_over_what_another_run_put_there() {
    for call in ["kv_set, arguments: { key: note, value: other }", "kv_delete, arguments: { key: note }"] {
        let stage = Stage::new(&[]);
        let (report, agent) = run(&stage, call, Some(("note", "newer"))).await;
        assert!(report.result.contains("Something else is under `note`"), "{}", report.result);
        let row = agent.engine().find_agent(agent.workspace(), "embedded").await.unwrap();
        let kept = agent.engine().store().kv_get(agent.workspace(), row.id, "note").await.unwrap();
        assert_eq!(kept.unwrap().text, "newer");
    }
    let (report, _) = run(&Stage::new(&[]), "kv_set, arguments: { key: note, value: mine }", None).await;
    assert_eq!(report.result, "Kept 4 bytes under `note`.");
}
