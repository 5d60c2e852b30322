//! Two nodes against one on the same PostgreSQL: on a machine of two cores they cannot be faster, but they must not cost more.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::{Outcome, play, println};
use crate::machine;
use crate::mock::Mock;
use crate::server::{Database, Server};

/// What the database has done, as it counts itself.
struct Work {
    commits: f64,
    rows: f64,
    wal: f64,
    /// Statements; none where the server does not count them.
    statements: Option<f64>,
    /// Processor time of all its processes, in milliseconds; none where it is on another machine.
    cpu: Option<f64>,
}

/// A database of its own on the server that tests use.
struct Fresh {
    admin: String,
    url: String,
    name: String,
}

impl Fresh {
    fn make(admin: &str, name: &str) -> Outcome<Self> {
        psql(admin, &format!("CREATE DATABASE {name}"))?;
        let (way, _) = admin.rsplit_once('/').ok_or("no database is named")?;
        let url = format!("{way}/{name}");
        // Where it is not there, or not loaded, statements are not known.
        let _ = psql(&url, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements");
        Ok(Self { admin: admin.to_owned(), url, name: name.to_owned() })
    }

    fn work(&self) -> Outcome<Work> {
        // What sessions have done is counted a moment after they have done it.
        std::thread::sleep(Duration::from_millis(1500));
        let number = |sql: &str| -> Outcome<f64> { Ok(psql(&self.url, sql)?.parse()?) };
        Ok(Work {
            commits: number("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")?,
            rows: number("SELECT tup_inserted + tup_updated FROM pg_stat_database WHERE datname = current_database()")?,
            wal: number("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")?,
            // What is asked here and by the samples says so.
            statements: number(
                "SELECT sum(calls) FROM pg_stat_statements JOIN pg_database ON oid = dbid \
                 WHERE datname = current_database() AND query NOT LIKE '%pg_stat_%'",
            )
            .ok(),
            cpu: psql(&self.url, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")
                .ok()
                .and_then(|pid| machine::family_cpu(pid.parse().ok()?)),
        })
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        let _ = psql(&self.admin, &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
    }
}

fn psql(url: &str, sql: &str) -> Outcome<String> {
    let done = Command::new("psql").arg(url).args(["-Atqc", sql]).output()?;
    if done.status.success() {
        Ok(String::from_utf8(done.stdout)?.trim().to_owned())
    } else {
        Err(String::from_utf8_lossy(&done.stderr).into_owned().into())
    }
}

/// Prints what a run costs on one node and on two.
pub(crate) async fn compare(binary: &Path, runs: usize) -> Outcome {
    println("");
    let Ok(admin) = std::env::var("ADJUTANT_TEST_POSTGRES") else {
        println("Two nodes against one: skipped, because ADJUTANT_TEST_POSTGRES is not set");
        return Ok(());
    };
    println("What a run costs on PostgreSQL (64 at once; samples of sessions that wait for a lock)");
    println(
        "| nodes | runs/s | CPU ms/run of all nodes | of PostgreSQL | statements/run | commits/run | rows written/run | log bytes/run | samples with a lock wait |",
    );
    println("|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for count in [1, 2] {
        let mock = Mock::start(0)?;
        let fresh = Fresh::make(&admin, &format!("adjutant_bench_{count}"))?;
        let database = Database::Postgres(fresh.url.clone());
        let mut nodes = vec![Server::open(binary, &mock.url, &database).await?];
        for _ in 1..count {
            let next = nodes[0].beside(binary, &mock.url, &database).await?;
            nodes.push(next);
        }
        play(64, 128, |number| nodes[number % count].run(format!("warm-{number}"))).await?;
        let (before, cpu) = (fresh.work()?, nodes.iter().map(Server::cpu).sum::<f64>());
        let waits = Waits::watch(&fresh.url);
        let rate = play(64, runs, |number| nodes[number % count].run(format!("work-{number}"))).await?;
        let (locked, samples) = waits.stop();
        let cpu = nodes.iter().map(Server::cpu).sum::<f64>() - cpu;
        let after = fresh.work()?;
        let each = |more: f64, less: f64| (more - less) / runs as f64;
        let known = |pair: Option<(f64, f64)>, digits: usize| {
            pair.map_or("not known".to_owned(), |(after, before)| format!("{:.digits$}", each(after, before)))
        };
        println(&format!(
            "| {count} | {rate:.0} | {:.2} | {} | {} | {:.1} | {:.1} | {:.0} | {locked} of {samples} |",
            cpu / runs as f64,
            // With what the samples cost, each of which is a session of its own.
            known(after.cpu.zip(before.cpu), 2),
            known(after.statements.zip(before.statements), 1),
            // Each sample is a transaction of its own, and none of a run.
            each(after.commits - samples as f64, before.commits),
            each(after.rows, before.rows),
            each(after.wal, before.wal),
        ));
    }
    Ok(())
}

/// Looks again and again whether a session waits for a lock.
struct Waits {
    over: Arc<AtomicBool>,
    looking: std::thread::JoinHandle<(usize, usize)>,
}

impl Waits {
    fn watch(url: &str) -> Self {
        let (over, url) = (Arc::new(AtomicBool::new(false)), url.to_owned());
        let end = Arc::clone(&over);
        let looking = std::thread::spawn(move || {
            let (mut locked, mut samples) = (0, 0);
            while !end.load(Ordering::Relaxed) {
                let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
                if let Ok(waiting) = psql(&url, sql) {
                    samples += 1;
                    locked += usize::from(waiting != "0");
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            (locked, samples)
        });
        Self { over, looking }
    }

    fn stop(self) -> (usize, usize) {
        self.over.store(true, Ordering::Relaxed);
        self.looking.join().unwrap_or_default()
    }
}
