//! Three nodes, a PostgreSQL and the ways between them, all of them treated badly while people work: every effect happens once,
//! no event is lost, every run ends, every chain verifies. People give tasks, follow some of them from node to node, stop some
//! and refuse some. `make chaos` does it for half an hour.

mod history;
mod people;
pub(crate) mod proxy;
mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use self::history::History;
use self::people::{Decided, Doors, Wish, decide, order, see_through, status_of};
use self::proxy::{Proxy, Weather};
use self::server::Postgres;
use crate::house::{Done, skip};
use crate::nodes::{Cluster, Node};

const NODES: usize = 3;
/// People who give tasks, each one after the other: in `make test`, and when it takes long. Some of them have just none.
const PEOPLE: (usize, usize) = (4, 220);
/// Runs that are open at the same time, at the least, at some moment when it takes long.
const OPEN: usize = 200;
/// Things that are done to them in each minute, at the least, when it takes long.
const FAULTS_A_MINUTE: usize = 5;
/// How long they wait before they look again at what waits for somebody: many who look often would take all of a small machine.
const LOOK: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(3));
/// How many answer questions, when it takes long.
const DECIDING: usize = 4;
/// Tasks at the least.
const TASKS: usize = 12;
/// How often something is done to them, when it takes long. What lasts longer goes on beside what comes next.
const EVERY: Duration = Duration::from_secs(10);
/// What is aimed at on a machine with nothing else to do, for the table.
const AIM: &str = "the aim, on a machine with room, is 15000";
/// How far a clock jumps ahead, in seconds, and the least by which that is noticed.
const AHEAD: (i64, i64) = (40, 20);
/// How long a run may stand still after its node was killed: what is promised, and what a machine takes that does all this.
const STANDSTILL: Duration = Duration::from_secs(30);

/// What the agent does: it rings the bell, and says so.
const SCRIPT: &str = r#"
- when: { turn: 1 }
  calls: [{ name: ring_bell, arguments: { text: "${user}" } }]
- text: It was rung.
"#;

/// One that asks before it rings.
const KEEPER: &str = "---
name: Keeper
autonomy: low
can_write: true
max_requests_per_hour: 10000000
max_concurrent_runs: 10000
tools: ring_bell
scope:
  notebooks: [\"*\"]
  folders: [/]
---
Make the rounds.
";

/// What is done to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    KillNode,
    StopNode,
    FreezeNode,
    WrongClock,
    CutWay,
    DeadWay,
    FreezeWay,
    SlowWay,
    CrashDatabase,
    KillDatabase,
    ReadOnly,
    FullDisk,
    SlowDisk,
}

const FAULTS: [Fault; 13] = [
    Fault::KillNode,
    Fault::CutWay,
    Fault::WrongClock,
    Fault::FreezeWay,
    Fault::SlowWay,
    Fault::StopNode,
    Fault::CrashDatabase,
    Fault::SlowDisk,
    Fault::FreezeNode,
    Fault::ReadOnly,
    Fault::DeadWay,
    Fault::FullDisk,
    Fault::KillDatabase,
];

impl Fault {
    const fn word(self) -> &'static str {
        match self {
            Self::KillNode => "kill -9 of a node",
            Self::StopNode => "a node told to stop, and started again",
            Self::FreezeNode => "a node that sleeps for longer than its lease",
            Self::WrongClock => "a clock that jumps ahead and back",
            Self::DeadWay => "connections to PostgreSQL dead without a word",
            Self::KillDatabase => "kill -9 of PostgreSQL itself",
            Self::CutWay => "connections to PostgreSQL cut",
            Self::FreezeWay => "connections to PostgreSQL frozen",
            Self::SlowWay => "connections to PostgreSQL slow",
            Self::CrashDatabase => "kill -9 in PostgreSQL",
            Self::ReadOnly => "PostgreSQL takes only reads",
            Self::FullDisk => "PostgreSQL has no room on its disk",
            Self::SlowDisk => "PostgreSQL stops and goes on, as if its disk were slow",
        }
    }
}

/// Everything, and what came of it.
struct Stage {
    cluster: Cluster,
    postgres: Postgres,
    ways: Vec<Proxy>,
    nodes: Mutex<Vec<Option<Node>>>,
    /// One thing at a time is done to each node.
    busy: Vec<Mutex<()>>,
    doors: Doors,
    /// How often each thing was done to them.
    faults: Mutex<BTreeMap<Fault, usize>>,
    ended: Mutex<BTreeMap<String, End>>,
    /// How long it took until a node that was killed had no runs any more, at the most.
    standstill: Mutex<Duration>,
    history: History,
    /// What the database calls each node.
    ids: Mutex<Vec<String>>,
    given: AtomicUsize,
    /// Runs that are open, and how many were at the most.
    open: Mutex<(usize, usize)>,
    /// Nothing more is done to them.
    calm: AtomicBool,
    over: AtomicBool,
    /// How long it takes; nothing is as long as each fault needs.
    minutes: u64,
}

/// What became of a task.
#[derive(Debug)]
struct End {
    name: String,
    wish: Wish,
    status: String,
}

impl Stage {
    fn new(cluster: Cluster, minutes: u64) -> Self {
        let postgres = Postgres::start();
        let ways = (0..NODES).map(|_| Proxy::to(&postgres.address())).collect();
        std::fs::write(cluster.house.data().join("agents/keeper.md"), KEEPER).unwrap();
        let nodes = Mutex::new((0..NODES).map(|_| None).collect());
        Self {
            cluster,
            postgres,
            ways,
            nodes,
            busy: (0..NODES).map(|_| Mutex::default()).collect(),
            doors: Doors::new(if minutes == 0 { LOOK.0 } else { LOOK.1 }),
            faults: Mutex::default(),
            ended: Mutex::default(),
            standstill: Mutex::default(),
            history: History::default(),
            ids: Mutex::new(vec![String::new(); NODES]),
            given: AtomicUsize::new(0),
            open: Mutex::default(),
            calm: AtomicBool::new(false),
            over: AtomicBool::new(false),
            minutes,
        }
    }

    fn start(&self, number: usize) {
        let (way, begun) = (self.postgres.by(self.ways[number].port), Instant::now());
        // One after the other, so that it is known which of those in the database it is.
        let mut ids = self.ids.lock().unwrap();
        let (node, before) = loop {
            let before = self.await_nodes();
            match self.cluster.try_node_at(SCRIPT, Some(&way)) {
                Ok(node) => break (node, before),
                // Whoever keeps it running starts it again: the database may be away just now.
                Err(said) => assert!(begun.elapsed() < people::PATIENCE, "a node does not start: {said}"),
            }
        };
        ids[number] = self.await_nodes().difference(&before).next().unwrap().clone();
        drop(ids);
        self.doors.open(number, Some(node.address().to_owned()));
        self.nodes.lock().unwrap()[number] = Some(node);
    }

    fn kill(&self, number: usize) -> bool {
        self.doors.open(number, None);
        let node = self.nodes.lock().unwrap()[number].take();
        node.is_some_and(|node| {
            node.kill();
            true
        })
    }

    /// How many give tasks.
    const fn people(&self) -> usize {
        if self.minutes == 0 { PEOPLE.0 } else { PEOPLE.1 }
    }

    /// Lets a fault last; where there is little time, only until some more runs came to their end in spite of it.
    fn endure(&self, long: Duration) {
        let (before, begun) = (self.ended.lock().unwrap().len(), Instant::now());
        let enough = || self.minutes == 0 && self.ended.lock().unwrap().len() >= before + PEOPLE.0 / 2;
        while begun.elapsed() < long && !enough() {
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The nodes that the database knows; none while it does not answer.
    fn known_nodes(&self) -> Option<BTreeSet<String>> {
        // Before the first of them there is no such table.
        let nodes = match self.postgres.sql("SELECT to_regclass('nodes')")?.as_str() {
            "" => String::new(),
            _ => self.postgres.sql("SELECT id FROM nodes")?,
        };
        Some(nodes.lines().map(str::to_owned).collect())
    }

    /// The same, once it answers.
    fn await_nodes(&self) -> BTreeSet<String> {
        let begun = Instant::now();
        loop {
            match self.known_nodes() {
                Some(nodes) => return nodes,
                None => assert!(begun.elapsed() < people::PATIENCE, "PostgreSQL does not answer"),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Comes back once the others have taken a node for dead. Says whether they did.
    fn await_end_of(&self, number: usize) -> bool {
        let id = self.ids.lock().unwrap()[number].clone();
        comes_true(|| self.known_nodes().is_some_and(|nodes| !nodes.contains(&id)))
    }

    /// Takes the time until one of those that were known is known no more: its runs are others' from then on.
    fn await_takeover(&self, before: &BTreeSet<String>, died: Instant) {
        while self.known_nodes().is_none_or(|nodes| before.is_subset(&nodes)) {
            assert!(died.elapsed() < people::PATIENCE, "nobody took over what a dead node drove");
            std::thread::sleep(Duration::from_millis(50));
        }
        let mut longest = self.standstill.lock().unwrap();
        *longest = died.elapsed().max(*longest);
    }

    /// Kills a node, starts it again, and sees to it that others take over what the dead one drove. Says whether there was one.
    fn lose(&self, number: usize) -> bool {
        let (known, died) = (self.known_nodes(), Instant::now());
        let there = self.kill(number);
        self.endure(Duration::from_secs(2));
        self.start(number);
        if let (true, Some(known)) = (self.minutes > 0, known) {
            self.await_takeover(&known, died);
        }
        there
    }

    /// Does something to them, and counts it if it came about.
    fn inflict(&self, fault: Fault, number: usize) {
        let _busy = self.busy[number].lock().unwrap();
        if self.suffers(fault, number) {
            *self.faults.lock().unwrap().entry(fault).or_default() += 1;
        }
    }

    /// Does something to them, and undoes what has to be undone. Says whether it came about.
    fn suffers(&self, fault: Fault, number: usize) -> bool {
        let way = &self.ways[number];
        match fault {
            Fault::KillNode => self.lose(number),
            Fault::StopNode => self.stop(number),
            Fault::FreezeNode => self.freeze(number),
            Fault::WrongClock => self.mislead(number),
            Fault::CutWay => strikes(way, || way.cut()),
            Fault::DeadWay => strikes(way, || way.deaden()),
            Fault::FreezeWay => {
                let struck = strikes(way, || way.set(Weather::Frozen));
                // Longer than a lease, so that others take over what it drives.
                let gone = self.await_end_of(number);
                way.set(Weather::Fair);
                struck && gone
            }
            Fault::SlowWay => {
                let struck = strikes(way, || way.set(Weather::Slow));
                self.endure(Duration::from_secs(2));
                way.set(Weather::Fair);
                struck
            }
            Fault::CrashDatabase => self.postgres.crash(),
            Fault::KillDatabase => self.postgres.kill(),
            Fault::ReadOnly => {
                let refuses = self.postgres.refuse_writes();
                self.endure(Duration::from_secs(1));
                self.postgres.take_writes();
                refuses
            }
            Fault::FullDisk => {
                let filled = self.postgres.fill_disk();
                if filled {
                    self.endure(Duration::from_secs(5));
                }
                self.postgres.free_disk();
                filled
            }
            Fault::SlowDisk => self.postgres.stutter(8),
        }
    }

    /// Sets the clock of a node ahead until a run was made by it, then back as far, then right.
    fn mislead(&self, number: usize) -> bool {
        let set = |seconds| {
            self.nodes.lock().unwrap()[number].as_ref().is_some_and(|node| {
                node.set_clock(seconds);
                true
            })
        };
        let now = "extract(epoch FROM clock_timestamp()) * 1000";
        let ahead = format!("SELECT count(*) FROM runs WHERE created_at > {now} + {}", AHEAD.1 * 1000);
        let made = || self.postgres.sql(&ahead).is_some_and(|count| count != "0");
        let believed = set(AHEAD.0) && comes_true(made);
        set(-AHEAD.0);
        self.endure(Duration::from_secs(2));
        set(0) && believed
    }

    fn stop(&self, number: usize) -> bool {
        self.doors.open(number, None);
        let node = self.nodes.lock().unwrap()[number].take();
        let there = node.is_some();
        if let Some(node) = node {
            node.terminate();
            node.ended();
        }
        self.start(number);
        there
    }

    /// Lets a node sleep until the others have taken it for dead.
    fn freeze(&self, number: usize) -> bool {
        let freeze = |on| {
            self.nodes.lock().unwrap()[number].as_ref().is_some_and(|node| {
                node.freeze(on);
                true
            })
        };
        let gone = freeze(true) && self.await_end_of(number);
        freeze(false);
        gone
    }

    /// Counts the runs that are open.
    fn opened(&self) {
        let mut open = self.open.lock().unwrap();
        *open = (open.0 + 1, open.1.max(open.0 + 1));
    }

    fn rings(&self) -> BTreeMap<String, usize> {
        let text = std::fs::read_to_string(self.cluster.bell()).unwrap_or_default();
        let mut rings = BTreeMap::new();
        for line in text.lines() {
            *rings.entry(line.split_once(' ').unwrap().1.to_owned()).or_default() += 1;
        }
        rings
    }
}

/// Waits for something that the others bring about. Says whether they did.
fn comes_true(is_true: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while !is_true() {
        if begun.elapsed() > people::PATIENCE {
            return false;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    true
}

/// Does something to a way. Says whether anything that passed there felt it.
fn strikes(way: &Proxy, strike: impl FnOnce()) -> bool {
    let before = way.hits();
    strike();
    comes_true(|| way.hits() > before)
}

#[test]
fn three_nodes_lose_nothing_and_do_nothing_twice_whatever_happens_to_them() {
    let Some(cluster) = Cluster::new() else { return };
    if std::process::Command::new("psql").arg("--version").output().is_err() {
        return skip("chaos", "psql is missing");
    }
    let minutes = std::env::var("ADJUTANT_CHAOS_MINUTES").ok().and_then(|minutes| minutes.parse().ok()).unwrap_or(0);
    let (stage, begun) = (Stage::new(cluster, minutes), Instant::now());
    let until = begun + Duration::from_secs(60 * minutes);
    (0..NODES).for_each(|number| stage.start(number));
    let decided = Mutex::new(Decided::default());
    std::thread::scope(|scope| {
        let people: Vec<_> = (0..stage.people()).map(|_| scope.spawn(|| work(&stage))).collect();
        let deciding = if minutes == 0 { 1 } else { DECIDING };
        for number in 0..deciding {
            let (stage, decided) = (&stage, &decided);
            scope.spawn(move || {
                while !stage.over.load(Ordering::SeqCst) {
                    let rung = |name: &str| stage.rings().contains_key(name);
                    let more = decide(&stage.doors, &stage.history, (number, deciding), rung);
                    let mut decided = decided.lock().unwrap();
                    decided.approved += more.approved;
                    decided.refused += more.refused;
                    decided.doubts += more.doubts;
                }
            });
        }
        let mut inflicted = Vec::new();
        for turn in 0.. {
            let (fault, number, came) = (FAULTS[turn % FAULTS.len()], turn % NODES, Instant::now());
            if fault == Fault::FullDisk && !stage.postgres.has_disk() {
                skip("a full disk in the chaos", "only root can give PostgreSQL a small one");
            } else {
                if minutes == 0 {
                    stage.inflict(fault, number);
                    stage.endure(Duration::from_secs(2));
                } else {
                    let stage = &stage;
                    inflicted.push(scope.spawn(move || stage.inflict(fault, number)));
                    std::thread::sleep(EVERY.saturating_sub(came.elapsed()));
                }
            }
            if turn + 1 >= FAULTS.len() && Instant::now() >= until {
                break;
            }
        }
        // People wait for what was done to them to be over, and then for their tasks.
        inflicted.into_iter().for_each(|fault| fault.join().unwrap());
        stage.calm.store(true, Ordering::SeqCst);
        let done: Vec<_> = people.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        stage.over.store(true, Ordering::SeqCst);
        done.into_iter().for_each(|person| person.unwrap());
    });
    judge(&stage, decided.into_inner().unwrap(), begun.elapsed());
}

/// One person: a task after the other, until there were enough and nothing more is done to the nodes.
fn work(stage: &Stage) {
    let mut last = None;
    loop {
        let number = stage.given.fetch_add(1, Ordering::SeqCst);
        if number >= TASKS && stage.calm.load(Ordering::SeqCst) {
            return;
        }
        let wish = Wish::of(number);
        let name = wish.name(number);
        let run = order(&stage.doors, &name);
        stage.opened();
        let status = see_through(&stage.doors, &stage.history, wish, &name, &run);
        stage.open.lock().unwrap().0 -= 1;
        stage.ended.lock().unwrap().insert(run.clone(), End { name, wish, status });
        // The one before has ended a while ago. It has to stay as it was.
        if let Some(before) = last.replace(run) {
            status_of(&stage.doors, &stage.history, &before, "");
        }
    }
}

/// Reads every log, however long that takes: not by asking a node, of which nobody waits for ever.
fn verify(stage: &Stage) -> serde_json::Value {
    let mut command = stage.cluster.house.command(&["audit", "verify", "--json"]);
    let done = Done::of(command.env("ADJUTANT_DATABASE_URL", &stage.postgres.url));
    serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {done}"))
}

/// What must hold, whatever happened; and the table.
fn judge(stage: &Stage, decided: Decided, took: Duration) {
    let faults = stage.faults.lock().unwrap();
    let ended = stage.ended.lock().unwrap();
    let rings = stage.rings();
    let number = |sql: &str| stage.postgres.sql(sql).and_then(|number| number.parse::<usize>().ok()).unwrap();
    let (runs, events) = (number("SELECT count(*) FROM runs"), number("SELECT count(*) FROM events"));
    let claims = number("SELECT sum(epoch) FROM runs");
    let untrue = stage.history.check(&stage.doors);
    let verified = verify(stage);
    let rung = |end: &End| rings.get(&end.name).copied().unwrap_or_default();
    let unwanted: Vec<_> = ended.iter().filter(|(_, end)| !end.wish.allows(&end.status, rung(end))).collect();
    let stopped = ended.values().filter(|end| end.status == "CANCELLED").count();
    let lost = ended.values().filter(|end| end.status == "COMPLETED" && end.wish != Wish::Refused && rung(end) == 0);
    let standstill = *stage.standstill.lock().unwrap();
    let mut table = String::from("\n");
    let mut row = |what: &str, count: usize| table.push_str(&format!("  {count:>8}  {what}\n"));
    let came = |fault: &Fault| faults.get(fault).copied().unwrap_or_default();
    FAULTS.iter().for_each(|fault| row(fault.word(), came(fault)));
    row("runs, each asked for until somebody answered", ended.len());
    row("answers that never came (may have been done)", stage.doors.maybes.load(Ordering::Relaxed));
    row("questions approved", decided.approved);
    row("questions answered with no", decided.refused);
    row("calls in doubt, resolved by what the bell says", decided.doubts);
    row("runs stopped", stopped);
    row("runs followed to their end", stage.history.streams());
    row("times that a stream was taken up again at another node", stage.history.hops.load(Ordering::Relaxed));
    row("times that a run was taken up", claims);
    row("events in the logs", events);
    row("events that somebody was shown before the end", stage.history.seen());
    row("things that were shown and are not so", untrue.len());
    row("effects outside", rings.values().sum());
    row("effects done twice", rings.values().filter(|count| **count > 1).count());
    row("effects lost", lost.count());
    row("tasks that ended as nobody wanted", unwanted.len());
    row("logs that are not whole", verified["broken"].as_array().map_or(usize::MAX, Vec::len));
    if stage.minutes > 0 {
        let millis = usize::try_from(standstill.as_millis()).unwrap();
        row(&format!("milliseconds until the runs of a dead node were others', at the most ({AIM})"), millis);
    }
    let most = stage.open.lock().unwrap().1;
    row("runs open at the same time, at the most", most);
    row("seconds", usize::try_from(took.as_secs()).unwrap());
    eprintln!("{table}");
    assert_came_about(stage, &faults, decided, stopped);
    assert_eq!(untrue, Vec::<String>::new());
    let told = |id: &String| stage.doors.ask("GET", &format!("/api/v1/runs/{id}"), None, None).1["actions"].clone();
    assert!(unwanted.is_empty(), "{:#?}", unwanted.iter().map(|(id, end)| (end, told(id))).collect::<Vec<_>>());
    assert_eq!(runs, ended.len(), "a request that was sent again is one run");
    assert!(rings.values().all(|count| *count == 1), "{rings:#?}");
    assert!(standstill < STANDSTILL, "a run stood still for {standstill:?}");
    assert_eq!(verified["broken"], serde_json::json!([]), "{verified:#}");
    let gaps = "SELECT count(*) FROM (SELECT stream FROM events GROUP BY stream HAVING max(seq) <> count(*)) AS gaps";
    assert_eq!(number(gaps), 0, "an event is missing");
}

/// What did not come about was not put to the test.
fn assert_came_about(stage: &Stage, faults: &BTreeMap<Fault, usize>, decided: Decided, stopped: usize) {
    let can = |fault: &&Fault| **fault != Fault::FullDisk || stage.postgres.has_disk();
    let missed: Vec<_> = FAULTS.iter().filter(can).filter(|fault| !faults.contains_key(fault)).collect();
    assert!(missed.is_empty(), "{missed:?} never came about");
    if stage.minutes == 0 {
        return;
    }
    let (all, least) = (faults.values().sum::<usize>(), usize::try_from(stage.minutes).unwrap() * FAULTS_A_MINUTE);
    assert!(all >= least, "only {all} things were done to them");
    let most = stage.open.lock().unwrap().1;
    assert!(most >= OPEN, "only {most} runs were open at the same time");
    let came_about = [decided.approved, decided.refused, decided.doubts, stopped, stage.history.streams()];
    assert!(came_about.iter().all(|count| *count > 0), "{came_about:?}");
    assert!(stage.history.hops.load(Ordering::Relaxed) > 0, "no stream was taken up at another node");
}
