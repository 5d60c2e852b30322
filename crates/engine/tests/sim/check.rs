//! What must hold of every run, whatever happened: read from its log, its rows, and the outside world.

use std::collections::BTreeMap;

use adjutant_core::id::{CallId, RunId};
use adjutant_core::run::chain::{Entry, Head, StreamId};
use adjutant_core::run::event::{CallStarted, Event};
use adjutant_core::run::state::{Call, State};
use adjutant_core::run::transcript;
use adjutant_core::tool::Recovery;
use adjutant_engine::Engine;
use adjutant_store::row::{ApprovalFilter, ApprovalRow, CallRow, RunRow};
use serde_json::Value;

use crate::scene::{Scene, lock};
use crate::tally;
use crate::tools;
use crate::world::Landing;

/// The rows of a run.
#[derive(Debug, PartialEq)]
struct Rows {
    run: RunRow,
    calls: Vec<CallRow>,
    approvals: Vec<ApprovalRow>,
}

/// What the log of a run tells, beside its state.
#[derive(Default)]
struct Told {
    state: State,
    /// Every start, with its place in the log.
    starts: Vec<(u64, CallStarted)>,
    /// How often a person said "run it" of a call in doubt.
    reruns: BTreeMap<CallId, usize>,
    /// Calls of which a person said that they happened.
    vouched: Vec<CallId>,
}

/// Whether what a log tells is counted; once is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    Yes,
    No,
}

/// Checks one run, and gives a number that stands for its log.
pub(crate) async fn run(scene: &Scene, engine: &Engine, run: RunId, count: Count) -> u64 {
    let Some((told, head)) = log(scene, run, count).await else { return 0 };
    calls(scene, run, &told);
    rows(scene, engine, run, &told, head).await;
    replayed(scene, engine, run).await;
    u64::from_le_bytes(head.hash.0[..8].try_into().unwrap_or_default())
}

/// Reads the log event by event: the chain holds, each prefix folds, and each prefix is a transcript a provider takes.
async fn log(scene: &Scene, run: RunId, count: Count) -> Option<(Told, Head)> {
    let entries = scene.store.events(scene.tenant().workspace, StreamId::Run(run), 0, 100_000).await.ok()?;
    let (mut told, mut head) = (Told::default(), Head::START);
    for entry in &entries {
        head = match entry.follows(head) {
            Ok(head) => head,
            Err(broken) => {
                scene.broken(format!("{run}: the chain is broken: {broken}"));
                return None;
            }
        };
        if let Err(why) = told.hear(scene, entry, count) {
            scene.broken(format!("{run}: event {} ({}): {why}", entry.seq, entry.kind));
            return None;
        }
    }
    Some((told, head))
}

impl Told {
    fn hear(&mut self, scene: &Scene, entry: &Entry, count: Count) -> Result<(), String> {
        let body = entry.body.as_deref().unwrap_or_default();
        let event = Event::decode(&entry.kind, body).map_err(|bad| bad.to_string())?;
        if count == Count::Yes {
            tally::event(scene, &self.state, &event);
        }
        self.judge(&event)?;
        let labels = self.state.labels;
        self.state.apply(&event, entry.seq, entry.time).map_err(|bad| bad.to_string())?;
        if !self.state.labels.covers(labels) {
            return Err("a label was lost".to_owned());
        }
        transcript::check(&transcript::messages(&self.state))?;
        match event {
            Event::CallStarted(body) => self.starts.push((entry.seq, body)),
            Event::InDoubtResolved(body) => match body.outcome {
                adjutant_core::run::event::DoubtOutcome::Run => *self.reruns.entry(body.call).or_default() += 1,
                adjutant_core::run::event::DoubtOutcome::Happened => self.vouched.push(body.call),
                adjutant_core::run::event::DoubtOutcome::Abandon => {}
            },
            _ => {}
        }
        Ok(())
    }

    /// What may follow what: a call starts only as it was allowed, and is in doubt only where its class lets it be.
    fn judge(&self, event: &Event) -> Result<(), String> {
        match event {
            Event::CallStarted(body) => {
                let call = self.state.call(&body.call).ok_or("a call that nobody asked for")?;
                self.may_start(call, body)
            }
            Event::CallInDoubt(body) => {
                let recovery = self.state.call(&body.call).and_then(Call::recovery);
                if recovery.is_none_or(|recovery| recovery == Recovery::Pure) {
                    return Err(format!("a call of class {recovery:?} is in doubt"));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn may_start(&self, call: &Call, body: &CallStarted) -> Result<(), String> {
        let verdict = call.judged.as_ref().map(|judged| judged.verdict.decision);
        if verdict != Some(adjutant_core::guard::judge::Decision::Allow) {
            return Err(format!("{} starts after the verdict {verdict:?}", call.id));
        }
        if body.arguments != call.arguments || body.tool != call.tool {
            return Err(format!("{} starts as something else than was judged", call.id));
        }
        let again = call.started.as_ref().map_or(0, |started| started.attempt);
        if body.attempt != again + 1 {
            return Err(format!("{} starts as attempt {} after {again}", call.id, body.attempt));
        }
        if again == 0 && self.state.pause.is_some() {
            return Err(format!("{} starts while the run is paused", call.id));
        }
        let item = call.approval.and_then(|id| self.state.approvals.get(&id));
        let Some(item) = item else { return Ok(()) };
        let yes = item.decided.as_ref().is_some_and(|(decided, _)| {
            use adjutant_core::run::event::Decision;
            matches!(decided.decision, Decision::Approve | Decision::Edit)
        });
        if yes && item.call == call.id { Ok(()) } else { Err(format!("{} starts without its approval", call.id)) }
    }
}

/// Holds what took place outside against what the log says.
fn calls(scene: &Scene, run: RunId, told: &Told) {
    let outside = lock(&scene.outside);
    let landings: Vec<&Landing> = outside.landings.iter().filter(|landing| landing.run == run).collect();
    for landing in &landings {
        if let Err(why) = covered(told, landing) {
            scene.broken(format!("{run}: {} of {} took place: {why}", landing.tool, landing.call));
        }
    }
    for call in told.state.calls() {
        let mine: Vec<_> = landings.iter().copied().filter(|landing| landing.call == call.id).collect();
        if let Err(why) = accounted(told, call, &mine) {
            scene.broken(format!("{run}: {} {}: {why}", call.tool, call.id));
        }
    }
}

/// An effect needs a start that was durable before it, with these very arguments.
fn covered(told: &Told, landing: &Landing) -> Result<(), String> {
    let start = told.starts.iter().find(|(_, start)| start.call == landing.call && start.attempt == landing.attempt);
    let (seq, start) = start.ok_or("without being announced")?;
    if *seq > landing.durable {
        return Err(format!("announced by event {seq}, when the log ended at {}", landing.durable));
    }
    if start.key != landing.key || start.tool != landing.tool {
        return Err("under another key or name".to_owned());
    }
    let arguments = start.arguments.loaded().and_then(|text| serde_json::from_str::<Value>(text).ok());
    if arguments.is_some_and(|arguments| arguments != landing.arguments) {
        return Err("with other arguments".to_owned());
    }
    Ok(())
}

/// How often a call may have had its effect, by its class and by what is recorded of it.
fn accounted(told: &Told, call: &Call, landings: &[&Landing]) -> Result<(), String> {
    let count = landings.len();
    let reruns = told.reruns.get(&call.id).copied().unwrap_or_default();
    let ended = call.ended.as_ref().map(|(ended, _, _)| ended);
    if told.state.end.is_some() && ended.is_none() {
        return Err("has no result although the run has ended".to_owned());
    }
    if ended.is_some_and(|ended| !ended.allowed) && count > 0 {
        return Err(format!("was refused and had {count} effects"));
    }
    let done = ended.is_some_and(|ended| !ended.is_error && ended.allowed) && !told.vouched.contains(&call.id);
    match tools::recovery(&call.tool) {
        Recovery::Pure if count > 0 => Err("changed the world".to_owned()),
        Recovery::Pure => Ok(()),
        Recovery::Idempotent => {
            let same = landings.iter().all(|landing| landing.arguments == landings[0].arguments);
            match (same, done && count == 0) {
                (false, _) => Err("had two different outcomes".to_owned()),
                (true, true) => Err("is reported done and never took place".to_owned()),
                (true, false) => Ok(()),
            }
        }
        Recovery::Reconcile => {
            // Writing what is there already is done without an effect.
            let idle = call.started.as_ref().is_some_and(|start| start.intended.as_ref() == Some(&start.target));
            if count > 1 + reruns || (done && count == 0 && !idle) {
                return Err(format!("had {count} effects, done: {done}"));
            }
            Ok(())
        }
        Recovery::AskHuman => {
            if count > 1 + reruns || (done && count == 0) {
                return Err(format!("had {count} effects, done: {done}, {reruns} times told to run it"));
            }
            Ok(())
        }
    }
}

/// The rows are what the log folds to.
async fn rows(scene: &Scene, engine: &Engine, run: RunId, told: &Told, head: Head) {
    let Some(before) = read(scene, run).await else { return scene.broken(format!("{run} has no row")) };
    let state = &before.run.state;
    if before.run.head != head {
        scene.broken(format!("{run}: its row ends at {:?}, its log at {head:?}", before.run.head));
    }
    if state.status != told.state.status().word() || state.due != told.state.due() {
        let (status, due) = (told.state.status().word(), told.state.due());
        scene.broken(format!("{run}: its row says {} due {:?}, its log {status} due {due:?}", state.status, state.due));
    }
    if let Err(error) = engine.rebuild_run(scene.tenant().workspace, run).await {
        return scene.broken(format!("{run} cannot be rebuilt: {error}"));
    }
    let after = read(scene, run).await;
    if after.as_ref() != Some(&before) {
        scene.broken(format!("{run}: its rows are not what its log says: {}", difference(&before, after.as_ref())));
    }
}

/// What is recorded comes out again, without a model and without a tool.
async fn replayed(scene: &Scene, engine: &Engine, run: RunId) {
    let landed = lock(&scene.outside).landings.len();
    match engine.replay(scene.tenant().workspace, run).await {
        Ok(replay) => {
            for other in &replay.divergences {
                scene.broken(format!("{run} comes out differently: {other:?}"));
            }
        }
        Err(error) => scene.broken(format!("{run} cannot be replayed: {error}")),
    }
    if lock(&scene.outside).landings.len() != landed {
        scene.broken(format!("{run}: its replay had an effect"));
    }
}

async fn read(scene: &Scene, run: RunId) -> Option<Rows> {
    let workspace = scene.tenant().workspace;
    let filter = ApprovalFilter { run: Some(run), ..ApprovalFilter::default() };
    Some(Rows {
        run: scene.store.run(workspace, run).await.ok()??,
        calls: scene.store.calls(workspace, run).await.ok()?,
        approvals: scene.store.approvals(workspace, &filter, 1000).await.ok()?,
    })
}

fn difference(before: &Rows, after: Option<&Rows>) -> String {
    let Some(after) = after else { return "they are gone".to_owned() };
    if before.run != after.run {
        return format!("{:?} / {:?}", before.run, after.run);
    }
    let calls = before.calls.iter().zip(&after.calls).find(|(a, b)| a != b).map(|pair| format!("{pair:?}"));
    let approvals = || before.approvals.iter().zip(&after.approvals).find(|(a, b)| a != b).map(|p| format!("{p:?}"));
    calls.or_else(approvals).unwrap_or_else(|| "some are missing".to_owned())
}
