//! Every point at which a run is made durable, and a kill at each of them: before the commit and after it, once and twice.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex};

use crate::bell::Seen;
use crate::checks::{Told, at_the_end};
use crate::house::{Base, Done, House, Story, aloud, live};
use crate::recovery::{Ending, recover};

/// How many cases go on at the same time.
const AT_ONCE: usize = 2;
const STORIES: [Story; 2] = [Story::InARow, Story::SideBySide];
const POINTS: [&str; 2] = ["commit.before", "commit.after"];

/// The moment a process dies.
#[derive(Debug, Clone, Copy)]
struct Moment {
    point: &'static str,
    nth: usize,
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.point, self.nth)
    }
}

/// One life: where it dies, and where it dies again while it recovers.
#[derive(Debug, Clone, Copy)]
struct Case {
    base: Base,
    story: Story,
    first: Moment,
    second: Option<Moment>,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base = match self.base {
            Base::Sqlite => "SQLite",
            Base::Postgres => "PostgreSQL",
        };
        let story = match self.story {
            Story::InARow => "in a row",
            Story::SideBySide => "side by side",
        };
        let second = self.second.map(|second| format!(", {second}")).unwrap_or_default();
        write!(f, "{base:<10} | {story:<12} | {:<31}", format!("{}{second}", self.first))
    }
}

#[test]
fn a_run_that_is_killed_at_any_commit_comes_to_its_end_and_does_everything_once() {
    live(async {
        let mut cases = VecDeque::new();
        for base in Base::all() {
            for story in STORIES {
                let commits = undisturbed(story, base).await;
                for point in POINTS {
                    let moments = (1..=commits).map(|nth| Moment { point, nth });
                    cases.extend(moments.map(|first| Case { base, story, first, second: None }));
                }
            }
        }
        live_through("killed once", cases).await;
    });
}

#[test]
fn a_run_that_is_killed_again_while_it_recovers_comes_to_its_end_and_does_everything_once() {
    /// The commits that announce calls: each of the four, and all of them at once.
    const ANNOUNCED: [(Story, usize); 5] =
        [(Story::InARow, 3), (Story::InARow, 5), (Story::InARow, 7), (Story::InARow, 9), (Story::SideBySide, 3)];
    const AGAIN: [Moment; 3] = [
        Moment { point: "commit.before", nth: 1 },
        Moment { point: "commit.after", nth: 1 },
        Moment { point: "commit.before", nth: 2 },
    ];
    live(async {
        let mut cases = VecDeque::new();
        for base in Base::all() {
            for (story, nth) in ANNOUNCED {
                let first = Moment { point: "commit.after", nth };
                cases.extend(AGAIN.map(|second| Case { base, story, first, second: Some(second) }));
            }
        }
        live_through("killed twice", cases).await;
    });
}

/// A life without a crash; says how often it commits.
async fn undisturbed(story: Story, base: Base) -> usize {
    let house = House::new(story, base).await;
    let trace = house.path().join("trace");
    let mut start = house.start();
    start.env("ADJUTANT_FAULT_TRACE", &trace);
    let told = Told::heard(&Done::of(start).await);
    at_the_end(&house, &told, &Seen::look(&house)).await;
    let trace = std::fs::read_to_string(trace).unwrap();
    house.end().await;
    let count = |point| trace.lines().filter(|line| *line == point).count();
    assert_eq!(count(POINTS[0]), count(POINTS[1]));
    assert!(count(POINTS[0]) > 4, "{trace}");
    count(POINTS[0])
}

/// Lives through all of these and prints what came of them. One that fails does not hide the others.
async fn live_through(title: &str, cases: VecDeque<Case>) {
    let all = cases.len();
    let queue = Arc::new(Mutex::new(cases));
    let workers = (0..AT_ONCE).map(|_| {
        let queue = Arc::clone(&queue);
        tokio::spawn(async move {
            let next = || queue.lock().unwrap().pop_front();
            let mut lived = Vec::new();
            while let Some(case) = next() {
                // A task of its own, so that a failed case ends alone.
                lived.push((case, tokio::spawn(survive(case)).await.ok()));
            }
            lived
        })
    });
    let workers: Vec<_> = workers.collect();
    let mut lived = Vec::new();
    for worker in workers {
        lived.extend(worker.await.unwrap());
    }
    let mut lines: Vec<_> = lived.iter().map(|(case, ending)| format!("{case} | {}", words(*ending))).collect();
    lines.sort_by_key(|line| natural(line));
    aloud(&format!("\n{title}: where | how | when | what came of it\n{}", lines.join("\n")));
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    for (_, ending) in &lived {
        *counts.entry(words(*ending)).or_default() += 1;
    }
    let counts: Vec<_> = counts.iter().map(|(word, count)| format!("{count} {word}")).collect();
    aloud(&format!("{title}: {all} cases: {}", counts.join(" · ")));
    let failed: Vec<_> =
        lived.iter().filter(|(_, ending)| ending.is_none()).map(|(case, _)| case.to_string()).collect();
    assert!(failed.is_empty(), "{} of {all} cases failed:\n{}", failed.len(), failed.join("\n"));
    assert_eq!(lived.len(), all);
}

fn words(ending: Option<Ending>) -> &'static str {
    ending.map_or("FAILED", Ending::word)
}

/// A key by which 9 comes before 10.
fn natural(line: &str) -> Vec<(String, u32)> {
    let parts = line.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    parts.map(|part| part.parse().map_or_else(|_| (part.to_owned(), 0), |number| (String::new(), number))).collect()
}

/// One life.
async fn survive(case: Case) -> Ending {
    let house = House::new(case.story, case.base).await;
    let mut start = house.start();
    start.env("ADJUTANT_FAULT", case.first.to_string());
    let done = Done::of(start).await;
    assert!(done.was_killed(), "{case}: it was not killed: {done}");
    if let Some(second) = case.second {
        die_again(&house, second).await;
    }
    let (ending, _) = recover(&house).await;
    house.end().await;
    ending
}

/// Goes on and dies at another moment, if it comes that far: a recovery that only asks a person commits once.
async fn die_again(house: &House, moment: Moment) {
    house.lease_runs_out().await;
    let told = Told::read(house).await.unwrap();
    let mut resume = house.command(&["runs", "resume", &told.run, "--json", "--approve", "fail"]);
    resume.env("ADJUTANT_FAULT", moment.to_string());
    let done = Done::of(resume).await;
    assert!(done.was_killed() || matches!(done.status.code(), Some(0 | 5)), "{done}");
}
