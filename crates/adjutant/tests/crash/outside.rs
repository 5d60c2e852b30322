//! A kill from outside, at moments when nothing is being written: while the model answers, while a tool runs, after it ran;
//! and while a person's answer is recorded.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::bell::Seen;
use crate::checks::{Told, at_the_end};
use crate::house::{Base, Done, House, PATIENCE, RUNG, Story, live};
use crate::recovery::{Ending, doubt, recover, watch};

/// A process that tells what it does.
struct Running {
    child: Child,
    lines: tokio::io::Lines<BufReader<tokio::process::ChildStdout>>,
}

impl Running {
    fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Waits until it says that this happened with this tool.
    async fn says(&mut self, event: &str, tool: &str) {
        let heard = async {
            while let Some(line) = self.lines.next_line().await.unwrap() {
                let told: Value = serde_json::from_str(&line).unwrap();
                if told["event"] == event && told["data"]["tool_name"] == tool {
                    return;
                }
            }
            panic!("it ended without a word of {event} {tool}");
        };
        tokio::time::timeout(PATIENCE, heard).await.unwrap();
    }

    /// Kills it, without a chance to tidy up, and waits until it is gone.
    async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}

fn pipe(house: &House) {
    let made = std::process::Command::new("mkfifo").arg(house.bell()).status().unwrap();
    assert!(made.success());
}

#[test]
fn an_answer_that_is_lost_with_the_process_is_asked_for_again() {
    live(async {
        for base in Base::all() {
            let house = House::new(Story::InARow, base).await;
            house.script(Story::InARow, Some(2));
            let mut running = Running::start(house.start());
            // The result of the first call is made durable together with the request for the second answer.
            running.says("tool_result", "read_file").await;
            running.kill().await;
            house.script(Story::InARow, None);
            let (ending, told) = recover(&house).await;
            assert_eq!(ending, Ending::WentOn);
            let lost = told.events.iter().find(|event| event["event"] == "retrying").unwrap();
            assert_eq!((&lost["data"]["code"], &lost["data"]["turn"]), (&"lost".into(), &2.into()), "{lost}");
            house.end().await;
        }
    });
}

#[test]
fn a_call_that_is_killed_before_it_acted_is_in_doubt_and_runs_when_a_person_says_so() {
    live(async {
        for base in Base::all() {
            let house = House::new(Story::SideBySide, base).await;
            // Nobody listens, so the tool waits with its hand on the rope.
            pipe(&house);
            let mut running = Running::start(house.start());
            running.says("tool_call", "ring_bell").await;
            running.kill().await;
            std::fs::remove_file(house.bell()).unwrap();
            assert_eq!(recover(&house).await.0, Ending::SaidRun);
            house.end().await;
        }
    });
}

#[test]
fn a_call_that_is_killed_after_it_acted_is_in_doubt_and_does_not_run_again() {
    live(async {
        for base in Base::all() {
            let house = House::new(Story::InARow, base).await;
            pipe(&house);
            let open = tokio::net::unix::pipe::OpenOptions::new().read_write(true).open_receiver(house.bell());
            let mut listener = BufReader::new(open.unwrap()).lines();
            let mut start = house.start();
            start.env("ADJUTANT_BELL_HOLD", "1");
            let running = Running::start(start);
            let heard = tokio::time::timeout(PATIENCE, listener.next_line()).await.unwrap().unwrap().unwrap();
            running.kill().await;
            assert!(heard.ends_with(RUNG), "{heard}");
            std::fs::remove_file(house.bell()).unwrap();
            std::fs::write(house.bell(), format!("{heard}\n")).unwrap();
            assert_eq!(recover(&house).await.0, Ending::SaidHappened);
            house.end().await;
        }
    });
}

#[test]
fn a_run_whose_process_died_is_taken_over_when_its_lease_has_run_out() {
    // How long a dead process is taken for a living one, and some.
    const AT_LEAST: Duration = Duration::from_secs(2);
    live(async {
        for base in Base::all().into_iter().filter(|base| *base == Base::Postgres) {
            let house = House::new(Story::InARow, base).await;
            let mut start = house.start();
            start.env("ADJUTANT_FAULT", "commit.after:6");
            assert!(Done::of(start).await.was_killed());
            let crashed = Seen::look(&house);
            let told = Told::read(&house).await.unwrap();
            let from = std::time::Instant::now();
            let told = Told::heard(&watch(&house, &told).await);
            assert!(from.elapsed() > AT_LEAST, "it did not wait for the lease: {:?}", from.elapsed());
            at_the_end(&house, &told, &crashed).await;
            house.end().await;
        }
    });
}

#[test]
fn a_person_whose_answer_was_cut_off_can_answer_again_and_counts_once() {
    live(async {
        for base in Base::all() {
            for (point, recorded) in [("commit.before:1", false), ("commit.after:1", true)] {
                let house = House::new(Story::InARow, base).await;
                let mut start = house.start();
                // The call is announced and its result is not recorded.
                start.env("ADJUTANT_FAULT", "commit.before:12");
                assert!(Done::of(start).await.was_killed());
                house.lease_runs_out().await;
                let (crashed, told) = (Seen::look(&house), Told::read(&house).await.unwrap());
                assert_eq!(crashed.rings, 1);
                assert_eq!(watch(&house, &told).await.status.code(), Some(5));
                let item = doubt(&house).await.unwrap();
                let mut answer = house.command(&["inbox", "resolve", &item, "happened"]);
                answer.env("ADJUTANT_FAULT", point);
                assert!(Done::of(answer).await.was_killed());
                assert_eq!(doubt(&house).await.is_none(), recorded, "{point}");
                let again = house.adjutant(&["inbox", "resolve", &item, "happened"]).await;
                assert_eq!(again.status.success(), !recorded, "{again}");
                let told = Told::heard(&watch(&house, &told).await);
                at_the_end(&house, &told, &crashed).await;
                house.end().await;
            }
        }
    });
}
