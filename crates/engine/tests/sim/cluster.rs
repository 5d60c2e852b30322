//! The nodes: real engines with real workers on one store, each of which may die at any moment and start again.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use adjutant_engine::models::Model;
use adjutant_engine::{Engine, Env, Parts, Unpriced};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use crate::model::SimModel;
use crate::people::{Deed, Person};
use crate::post::Post;
use crate::scene::Scene;
use crate::tools;

/// A process: an engine, its worker, and what people asked of it.
struct Node {
    engine: Engine,
    post: Arc<Post>,
    life: JoinHandle<()>,
    retire: Option<oneshot::Sender<()>>,
    requests: JoinSet<()>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.post.bury();
        self.life.abort();
    }
}

enum Slot {
    Up(Box<Node>),
    /// Nobody is there until then.
    Down(Instant),
}

pub(crate) struct Cluster {
    scene: Arc<Scene>,
    slots: Vec<Slot>,
    lives: u32,
}

/// An engine at a post.
pub(crate) fn engine(post: &Arc<Post>) -> Engine {
    let model: Arc<dyn Model> = Arc::new(SimModel { post: Arc::clone(post) });
    let store = post.scene.store.peer(post.store()).expect("the store is in memory");
    let engine = Engine::new(Parts {
        store,
        env: Env::new(Arc::clone(post) as Arc<_>),
        models: Arc::new(move |_: &str| Ok(Arc::clone(&model))),
        tools: tools::registry(post),
        notebooks: PathBuf::from("/nowhere"),
        default_model: "sim/model".to_owned(),
        connector: adjutant_tools::net::Connector::default(),
        user_rate: None,
        max_runs: adjutant_core::limits::RUNS_PER_NODE,
        unpriced: Unpriced::Allow,
    });
    let engine = engine.expect("the simulated tools have good schemas");
    let _ = post.node.set(engine.node());
    engine
}

impl Cluster {
    pub(crate) fn new(scene: &Arc<Scene>) -> Self {
        let slots = (0..scene.plan.nodes).map(|_| Slot::Down(Instant::now())).collect();
        let mut cluster = Self { scene: Arc::clone(scene), slots, lives: 0 };
        cluster.wake();
        cluster
    }

    /// Starts the nodes whose time has come.
    pub(crate) fn wake(&mut self) {
        let now = Instant::now();
        for place in 0..self.slots.len() {
            if matches!(self.slots[place], Slot::Down(until) if until <= now) {
                self.slots[place] = Slot::Up(Box::new(self.boot(place)));
            }
        }
    }

    fn boot(&mut self, place: usize) -> Node {
        self.lives += 1;
        let post = Post::new(&self.scene, place, self.lives);
        let engine = engine(&post);
        self.scene.note(&post.name, || format!("starts as {}", engine.node()));
        let (retire, retired) = oneshot::channel();
        let life = tokio::spawn(live(engine.clone(), retired));
        Node { engine, post, life, retire: Some(retire), requests: JoinSet::new() }
    }

    /// A node is gone, with everything in its memory.
    pub(crate) fn kill(&mut self, place: usize) {
        let back = self.scene.dice.millis(10, 25_000);
        self.slots[place] = Slot::Down(Instant::now() + back);
    }

    /// Whatever strikes nodes from outside, once a tick.
    pub(crate) fn strike(&mut self) {
        let (scene, dice) = (Arc::clone(&self.scene), self.scene.dice.clone());
        let plan = &scene.plan.node;
        let place = dice.below(self.slots.len() as u64) as usize;
        let Slot::Up(node) = &mut self.slots[place] else { return };
        let post = Arc::clone(&node.post);
        let troubles = [
            (plan.cut_off, crate::post::Trouble::CutOff, "fault: node cut off"),
            (plan.freeze, crate::post::Trouble::Frozen, "fault: node frozen"),
        ];
        for (rate, trouble, what) in troubles {
            if dice.per_mille(rate) {
                let time = dice.millis(500, 25_000);
                scene.hit(what);
                scene.note(&post.name, || format!("{what} for {} ms", time.as_millis()));
                post.trouble(trouble, time);
            }
        }
        if dice.per_mille(plan.clock_jump) {
            let by = dice.between(0, 1_200_000) as i64 - 600_000;
            scene.hit("fault: clock jumped");
            scene.note(&post.name, || format!("clock jumps by {by} ms"));
            post.jump(by);
        }
        if dice.per_mille(plan.crash) {
            if dice.one_in(4) {
                scene.hit("node stopped in order");
                scene.note(&post.name, || "is told to stop".to_owned());
                drop(node.retire.take());
            } else {
                scene.hit("fault: crash at any moment");
                scene.note(&post.name, || "crashes".to_owned());
                self.kill(place);
            }
        }
    }

    /// A node that has stopped in order is started again after a while.
    pub(crate) fn sweep(&mut self) {
        for place in 0..self.slots.len() {
            if matches!(&self.slots[place], Slot::Up(node) if node.life.is_finished()) {
                self.kill(place);
            }
            if let Slot::Up(node) = &mut self.slots[place] {
                while node.requests.try_join_next().is_some() {}
            }
        }
    }

    /// Somebody asks something of a node.
    pub(crate) fn ask(&mut self, deed: Deed) {
        if let Some((node, person)) = self.somebody() {
            node.requests.spawn(person.act(deed));
        }
    }

    /// Somebody goes through the inbox.
    pub(crate) fn attend(&mut self) {
        if let Some((node, person)) = self.somebody() {
            node.requests.spawn(person.attend());
        }
    }

    fn somebody(&mut self) -> Option<(&mut Node, Person)> {
        let (scene, dice) = (Arc::clone(&self.scene), self.scene.dice.fork());
        let place = dice.below(self.slots.len() as u64) as usize;
        let Slot::Up(node) = &mut self.slots[place] else { return None };
        let (engine, name) = (node.engine.clone(), node.post.name.clone());
        Some((node, Person { scene, engine, node: name, dice }))
    }

    /// Every fault is over: whoever is down comes back, clocks are right, the store answers.
    pub(crate) fn heal(&mut self) {
        for slot in &mut self.slots {
            match slot {
                Slot::Up(node) => {
                    node.post.heal();
                    node.post.set_clock(0);
                }
                Slot::Down(until) => *until = Instant::now(),
            }
        }
        self.wake();
    }
}

/// A process from its start to its end: the worker dies with this task.
async fn live(engine: Engine, retired: oneshot::Receiver<()>) {
    let worker = loop {
        match engine.start_worker().await {
            Ok(worker) => break worker,
            Err(_) => tokio::time::sleep(Duration::from_secs(1)).await,
        }
    };
    // The sender is dropped to say that it is time.
    let _ = retired.await;
    worker.stop().await;
}
