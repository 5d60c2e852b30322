//! One schedule: a storm of faults and people, then calm in which every run must come to rest, then people who attend to
//! whatever waits, until every run has ended. Checked after the calm and at the end.

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::run::chain::StreamId;
use adjutant_core::run::event::Actor;
use adjutant_engine::{Engine, StartRun};
use adjutant_store::row::{ApprovalFilter, RunRow, UserRow, WorkspaceRow};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

use crate::chance::Dice;
use crate::check::{self, Count};
use crate::cluster::{self, Cluster};
use crate::cover::Cover;
use crate::model::PATHS;
use crate::people::{self, Deed, agent};
use crate::post::{OBSERVER, Post};
use crate::scene::{Scene, Tenant, lock};
use crate::witness;

/// How long the calm may take before a run that does not come to rest counts as stuck. Clocks that were wrong by ten
/// minutes and model calls that hang for five are waited out.
const PATIENCE: Duration = Duration::from_secs(3 * 60 * 60);

/// What came of a schedule.
pub(crate) struct Report {
    pub(crate) cover: Cover,
    /// Promises that were broken.
    pub(crate) wrong: Vec<String>,
    pub(crate) trace: String,
    /// Equal for two schedules only if everything in them was.
    pub(crate) digest: u64,
}

/// Plays the schedule of a seed.
pub(crate) fn play(seed: u64, traced: bool) -> Report {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime can be made");
    runtime.block_on(async {
        let (scene, dying) = Scene::new(seed, traced);
        let _witness = witness::watch(&scene, traced);
        scene.note("plan", || format!("{:?}", scene.plan));
        let engine = set_up(&scene).await;
        let digest = Play { dying, engine, scene: Arc::clone(&scene) }.go().await;
        if traced {
            let tail = tail(&scene).await;
            scene.note("logs", || tail);
        }
        Report { cover: scene.take_cover(), wrong: scene.take_wrong(), trace: scene.take_trace(), digest }
    })
}

/// The tenant, the agent and the first runs, made while nothing goes wrong.
async fn set_up(scene: &Arc<Scene>) -> Engine {
    let post = Post::new(scene, OBSERVER, 0);
    post.set_clock(0);
    let engine = cluster::engine(&post);
    let (env, created_at) = (engine.env(), scene.now());
    let user = UserRow { id: env.id(), name: "somebody".to_owned(), created_at };
    let workspace = WorkspaceRow::new(env.id(), "home", "Home", created_at);
    scene.store.create_user(&user).await.expect("the tables are empty");
    scene.store.create_workspace(&workspace).await.expect("the tables are empty");
    let row = engine
        .save_agent(workspace.id, Actor::Clock, agent(&scene.plan.agent, None), 0)
        .await
        .expect("nobody disturbs");
    *lock(&scene.tenant) = Some(Tenant { workspace: workspace.id, user: user.id, agent: row.id });
    for _ in 0..scene.plan.runs {
        let message = if scene.dice.one_in(8) { "Do it. ".repeat(700) } else { "Do something.".to_owned() };
        let ask = StartRun::new(user.id, row.id, &message);
        engine.start_run(workspace.id, ask).await.expect("nobody disturbs");
    }
    engine
}

struct Play {
    scene: Arc<Scene>,
    engine: Engine,
    dying: UnboundedReceiver<usize>,
}

impl Play {
    async fn go(mut self) -> u64 {
        let mut cluster = Cluster::new(&self.scene);
        self.storm(&mut cluster).await;
        self.scene.note("calm", || "the faults are over".to_owned());
        self.scene.calm_down();
        cluster.heal();
        if self.rest(&mut cluster).await {
            self.check_waiting().await;
            self.finish(&mut cluster).await;
        }
        drop(cluster);
        let mut digest = 0_u64;
        for row in people::runs(&self.scene).await {
            digest = digest.rotate_left(7) ^ check::run(&self.scene, &self.engine, row.id, Count::Yes).await;
        }
        digest ^ lock(&self.scene.outside).landings.len() as u64
    }

    async fn storm(&mut self, cluster: &mut Cluster) {
        let end = Instant::now() + Duration::from_secs(self.scene.plan.storm_secs);
        let dice = self.scene.dice.clone();
        while Instant::now() < end {
            self.tick(cluster, dice.millis(20, 1200)).await;
            cluster.strike();
            self.people(cluster, &dice);
            if self.all_ended().await {
                return;
            }
        }
    }

    /// Time goes by, in which nodes may die.
    async fn tick(&mut self, cluster: &mut Cluster, time: Duration) {
        let until = Instant::now() + time;
        loop {
            tokio::select! {
                biased;
                Some(place) = self.dying.recv() => cluster.kill(place),
                () = tokio::time::sleep_until(until) => break,
            }
        }
        cluster.sweep();
        cluster.wake();
    }

    fn people(&self, cluster: &mut Cluster, dice: &Dice) {
        let plan = &self.scene.plan.people;
        let deeds = [
            (plan.decide, Deed::Decide),
            (plan.cancel, Deed::Cancel),
            (plan.pause, Deed::Pause),
            (plan.resume, Deed::Resume),
            (plan.message, Deed::Message),
            (plan.edit, Deed::Edit),
            (plan.policy, Deed::Policy),
            (plan.remove, Deed::Remove),
        ];
        for (rate, deed) in deeds {
            if dice.per_mille(rate) {
                cluster.ask(deed);
            }
        }
        if dice.per_mille(plan.outside_edit) {
            let path = dice.pick(&PATHS).copied().unwrap_or("/a");
            self.scene.hit("somebody else wrote a file");
            self.scene.note("world", || format!("somebody else writes {path}"));
            lock(&self.scene.outside).put(path, &format!("from elsewhere {}", dice.number()));
        }
    }

    async fn all_ended(&self) -> bool {
        people::runs(&self.scene).await.iter().all(|row| row.state.ended_at.is_some())
    }

    /// Lets time go by until every run has ended or waits for a person.
    async fn rest(&mut self, cluster: &mut Cluster) -> bool {
        let end = Instant::now() + PATIENCE;
        loop {
            self.tick(cluster, Duration::from_secs(5)).await;
            let rows = people::runs(&self.scene).await;
            if rows.iter().all(|row| row.state.ended_at.is_some() || is_parked(row)) {
                return true;
            }
            if Instant::now() >= end {
                for row in rows.iter().filter(|row| row.state.ended_at.is_none() && !is_parked(row)) {
                    let (status, due, owner) = (&row.state.status, row.state.due, row.owner);
                    self.scene.broken(format!("{} is stuck: {status}, due {due:?}, owner {owner:?}", row.id));
                }
                return false;
            }
        }
    }

    /// Whoever waits must have said for what, and its log and rows are as good as those of a run that has ended.
    async fn check_waiting(&self) {
        for row in people::runs(&self.scene).await.iter().filter(|row| row.state.ended_at.is_none()) {
            check::run(&self.scene, &self.engine, row.id, Count::No).await;
            let (kind, what) = match row.state.status.as_str() {
                "WAITING_APPROVAL" => ("call", "waits: for an approval"),
                "IN_DOUBT" => ("in_doubt", "waits: in doubt"),
                _ => {
                    self.scene.hit("waits: paused");
                    continue;
                }
            };
            self.scene.hit(what);
            let status = Some("pending".to_owned());
            let filter = ApprovalFilter { run: Some(row.id), status, ..ApprovalFilter::default() };
            let items = self.scene.store.approvals(row.workspace, &filter, 100).await.unwrap_or_default();
            // Somebody who took their time may have decided while the log was checked.
            let now = self.scene.store.run(row.workspace, row.id).await.ok().flatten();
            let still_waits = now.is_some_and(|now| now.state.status == row.state.status);
            if still_waits && !items.iter().any(|item| item.kind == kind) {
                self.scene.broken(format!("{} is {} and nothing in the inbox says so", row.id, row.state.status));
            }
        }
    }

    /// People attend to everything until every run has ended.
    async fn finish(&mut self, cluster: &mut Cluster) {
        let end = Instant::now() + PATIENCE;
        while !self.all_ended().await {
            cluster.attend();
            self.tick(cluster, Duration::from_secs(4)).await;
            if Instant::now() >= end {
                for row in people::runs(&self.scene).await.iter().filter(|row| row.state.ended_at.is_none()) {
                    self.scene.broken(format!("{} never ends: {}", row.id, row.state.status));
                }
                return;
            }
        }
    }
}

/// Whether a run waits for a person, and costs a row. A run that only a person can move may still be written down as a dead
/// node's: it is taken from it when there is something to do.
fn is_parked(row: &RunRow) -> bool {
    let waits = matches!(row.state.status.as_str(), "WAITING_APPROVAL" | "IN_DOUBT" | "PAUSED");
    waits && (row.owner.is_none() || row.state.due.is_none())
}

/// The kinds of the last events of every run, for a trace.
async fn tail(scene: &Scene) -> String {
    let mut text = String::new();
    for row in people::runs(scene).await {
        let entries = scene.store.events(row.workspace, StreamId::Run(row.id), 0, 100_000).await.unwrap_or_default();
        let kinds: Vec<_> = entries.iter().map(|entry| entry.kind.as_str()).collect();
        text.push_str(&format!("{}: {}\n", row.id, kinds.join(" ")));
    }
    text
}
