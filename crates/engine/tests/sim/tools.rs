//! Simulated tools, one of each recovery class, that fail, hang, panic, lose their reply, or act late.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::content::Hash;
use adjutant_core::guard::permit::Permit;
use adjutant_core::label::Labels;
use adjutant_core::tool::{
    Category, Effect, Level, Prepared, Probe, Recovery, Target, ToolDefinition, ToolOutcome, ToolSpec,
};
use adjutant_engine::tools::{Registry, Tool, World};
use async_trait::async_trait;
use serde_json::{Value, json};

use crate::post::Post;
use crate::scene::lock;
use crate::world::Order;

/// A tool that takes longer is given up.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Every tool there is, by name.
pub(crate) const NAMES: [&str; 6] = ["look", "fetch", "put", "write", "send", "forbidden"];

/// The tool that no policy grants.
pub(crate) const FORBIDDEN: &str = "forbidden";

pub(crate) fn recovery(tool: &str) -> Recovery {
    match tool {
        "look" | "fetch" => Recovery::Pure,
        "put" => Recovery::Idempotent,
        "write" => Recovery::Reconcile,
        _ => Recovery::AskHuman,
    }
}

/// The tools of one node.
pub(crate) fn registry(post: &Arc<Post>) -> Registry {
    let mut registry = Registry::default();
    for name in NAMES {
        registry.add(Arc::new(SimTool { spec: spec(name), post: Arc::clone(post) }));
    }
    registry
}

fn spec(name: &str) -> ToolSpec {
    let schema = json!({
        "type": "object",
        "properties": {"path": {"type": "string"}, "note": {"type": "string"}},
        "required": ["path", "note"],
        "additionalProperties": false,
    });
    let recovery = recovery(name);
    let (effect, level) = match recovery {
        Recovery::Pure => (Effect::Read, Level::Read),
        Recovery::Idempotent | Recovery::Reconcile => (Effect::Write, Level::Write),
        Recovery::AskHuman => (Effect::Send, Level::Write),
    };
    ToolSpec {
        definition: ToolDefinition { name: name.to_owned(), description: format!("Simulates {name}."), schema },
        toolset: Arc::from("sim"),
        category: Category::Custom,
        level,
        effect,
        undoable: effect == Effect::Write,
        recovery,
        egress: effect == Effect::Send,
        labels: match name {
            "look" => Labels::PRIVATE,
            "fetch" => Labels::UNTRUSTED,
            _ => Labels::NONE,
        },
        per_minute: None,
        timeout: TIMEOUT,
        output_cap: 64 * 1024,
        paths: BTreeMap::new(),
        checks: Arc::default(),
    }
}

struct SimTool {
    spec: ToolSpec,
    post: Arc<Post>,
}

fn text<'a>(arguments: &'a Value, name: &str) -> &'a str {
    arguments.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn one(path: &str, state: Option<Hash>) -> Target {
    Target(BTreeMap::from([(path.to_owned(), state)]))
}

impl SimTool {
    fn hit(&self, what: &'static str) {
        self.post.scene.hit(what);
        self.post.scene.note(&self.post.name, || format!("{} {what}", self.spec.name()));
    }

    /// Whatever may go wrong before or after the effect.
    async fn mishap(&self) {
        let (post, plan) = (&self.post, &self.post.scene.plan);
        if post.strikes(plan.node.crash_in_tool) {
            post.die("fault: crash in a tool").await;
        }
        if post.strikes(plan.tool.hangs) {
            self.hit("tool: hung");
            post.take(TIMEOUT * 3).await;
        }
        if post.strikes(plan.tool.panics) {
            self.hit("tool: panicked");
            panic!("simulated");
        }
    }

    /// An effect must neither begin nor take place on a node that has lost the run (rule D3).
    async fn check_owner(&self, order: &Order) {
        let scene = &self.post.scene;
        let Some((run, _)) = scene.whose(order).await else { return };
        let row = scene.store.run(scene.tenant().workspace, run).await.ok().flatten();
        let owner = row.and_then(|row| row.owner);
        if owner != self.post.node.get().copied() {
            let (tool, me) = (self.spec.name(), &self.post.name);
            scene.broken(format!("{me} runs {tool} of {run} {}, which is {owner:?}'s", order.call));
        }
    }

    fn outcome(&self, arguments: &Value) -> ToolOutcome {
        let note = text(arguments, "note");
        ToolOutcome::output(format!("{} {}: {note}", self.spec.name(), text(arguments, "path")))
    }

    /// Makes the effect, if it may still be made.
    async fn act(post: &Post, order: Order, target: &Target) -> Result<(), ToolOutcome> {
        let (path, note) = (text(&order.arguments, "path").to_owned(), text(&order.arguments, "note").to_owned());
        if order.tool == "write" {
            // As a file tool does: only if what is there is what was looked at.
            let mut outside = lock(&post.scene.outside);
            let there = outside.state(&path);
            if there == Some(Hash::of(note.as_bytes())) {
                return Ok(());
            }
            if target.0.get(&path) != Some(&there) {
                return Err(ToolOutcome::failed("It has changed since it was looked at. Nothing was written."));
            }
            outside.put(&path, &note);
        }
        post.scene.land(order).await;
        Ok(())
    }
}

#[async_trait]
impl Tool for SimTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn prepare(&self, arguments: &Value, _: &World) -> Result<Prepared, ToolOutcome> {
        let path = text(arguments, "path");
        if self.post.strikes(self.post.scene.plan.tool.prepare) {
            self.hit("tool: preparing went wrong");
            match self.post.dice.below(3) {
                0 => return Err(ToolOutcome::failed("It cannot be looked at.")),
                1 => self.post.take(TIMEOUT * 3).await,
                _ => panic!("simulated"),
            }
        }
        self.post.take(self.post.dice.millis(0, 5)).await;
        let mut prepared = Prepared { summary: format!("{} {path}", self.spec.name()), ..Prepared::default() };
        if self.spec.recovery == Recovery::Reconcile {
            let note = Hash::of(text(arguments, "note").as_bytes());
            prepared.target = one(path, lock(&self.post.scene.outside).state(path));
            prepared.intended = Some(one(path, Some(note)));
            prepared.diff = Some(format!("+{}", text(arguments, "note")));
        }
        Ok(prepared)
    }

    async fn run(&self, permit: Permit, _: &World) -> ToolOutcome {
        let (post, plan) = (&self.post, &self.post.scene.plan.tool);
        let order = Order {
            tool: permit.tool().to_owned(),
            key: permit.key(),
            call: permit.call().clone(),
            attempt: permit.attempt(),
            arguments: permit.arguments().clone(),
        };
        self.check_owner(&order).await;
        post.take(post.dice.millis(0, 1500)).await;
        self.mishap().await;
        if post.strikes(plan.fails) {
            let retriable = post.dice.one_in(2);
            self.hit(if retriable { "tool: failed for now" } else { "tool: failed for good" });
            return ToolOutcome::Failed { message: "It did not work. Nothing was done.".to_owned(), retriable };
        }
        if self.spec.recovery != Recovery::Pure {
            if post.strikes(plan.late) {
                // The request is on its way, whatever becomes of the node that sent it.
                self.hit("tool: effect came late");
                let (late, target) = (Arc::clone(post), permit.target().clone());
                let after = post.dice.millis(100, 12_000);
                tokio::spawn(async move {
                    tokio::time::sleep(after).await;
                    let _ = Self::act(&late, order, &target).await;
                });
                post.take(TIMEOUT * 3).await;
                return ToolOutcome::InDoubt { message: "No answer came.".to_owned() };
            }
            self.check_owner(&order).await;
            if let Err(outcome) = Self::act(post, order, permit.target()).await {
                return outcome;
            }
            self.mishap().await;
            if post.strikes(plan.reply_lost) {
                self.hit("tool: reply lost after the effect");
                return ToolOutcome::InDoubt { message: "The connection broke.".to_owned() };
            }
        }
        self.outcome(permit.arguments())
    }

    async fn reconcile(&self, arguments: &Value, target: &Target, intended: Option<&Target>, _: &World) -> Probe {
        if self.post.strikes(self.post.scene.plan.tool.probe) {
            self.hit("tool: probing went wrong");
            match self.post.dice.below(3) {
                0 => return Probe::Unknown,
                1 => self.post.take(TIMEOUT * 3).await,
                _ => panic!("simulated"),
            }
        }
        self.post.take(self.post.dice.millis(0, 5)).await;
        let path = text(arguments, "path");
        let there = lock(&self.post.scene.outside).state(path);
        let is = |wanted: &Target| wanted.0.get(path) == Some(&there);
        if intended.is_some_and(is) {
            return Probe::Happened(self.outcome(arguments));
        }
        if is(target) { Probe::NotHappened } else { Probe::Unknown }
    }
}
