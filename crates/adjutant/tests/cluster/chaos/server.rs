//! A PostgreSQL of its own, because it is going to be treated badly.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::house::{Done, is_root, signal};
use crate::nodes::PATIENCE;

pub(crate) struct Postgres {
    script: Child,
    pub(crate) url: String,
}

impl Postgres {
    /// Starts one through the script that every test uses; it cleans up once its input ends.
    pub(crate) fn start() -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/with-postgres");
        let mut command = Command::new(script);
        command.args(["sh", "-c", "echo \"$ADJUTANT_TEST_POSTGRES\"; cat"]).env_remove("ADJUTANT_TEST_POSTGRES");
        let mut script = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(script.stdout.take().unwrap()).read_line(&mut url).unwrap();
        assert!(url.starts_with("postgres://"), "PostgreSQL did not start");
        Self { script, url: url.trim().to_owned() }
    }

    /// Host and port.
    pub(crate) fn address(&self) -> String {
        let url: url::Url = self.url.parse().unwrap();
        format!("127.0.0.1:{}", url.port().unwrap())
    }

    /// The same database by another way.
    pub(crate) fn by(&self, port: u16) -> String {
        let mut url: url::Url = self.url.parse().unwrap();
        url.set_port(Some(port)).unwrap();
        url.to_string()
    }

    /// What a statement gives; none while the server is not there.
    pub(crate) fn sql(&self, sql: &str) -> Option<String> {
        let done = Done::of(Command::new("psql").arg(&self.url).args(["-Atqc", sql]));
        (done.code == Some(0)).then(|| done.out.trim_end().to_owned())
    }

    /// Kills one of its processes: the server ends all others, and recovers from its log as after a power cut.
    pub(crate) fn crash(&self) {
        let writer = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'background writer'";
        if let Some(pid) = self.sql(writer).and_then(|pid| pid.parse().ok()) {
            signal("KILL", pid);
        }
    }

    /// Kills the server itself with SIGKILL, and starts it again once all that was left of it is gone.
    pub(crate) fn kill(&self) {
        let Some(data) = self.sql("SHOW data_directory") else { return };
        let first_line =
            || Some(std::fs::read_to_string(format!("{data}/postmaster.pid")).ok()?.lines().next()?.to_owned());
        let Some(pid) = first_line().and_then(|line| line.parse::<u32>().ok()) else { return };
        let programs = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap();
        let pg_ctl = programs.with_file_name("pg_ctl");
        let owner = Done::of(Command::new("stat").args(["-c", "%U", &data])).out.trim().to_owned();
        let port = self.url.parse::<url::Url>().unwrap().port().unwrap();
        signal("KILL", pid);
        let begun = Instant::now();
        loop {
            let mut start = if is_root() {
                let mut start = Command::new("runuser");
                start.args(["-u", &owner, "--"]).arg(&pg_ctl);
                start
            } else {
                Command::new(&pg_ctl)
            };
            start.args([
                "-D",
                &data,
                "-l",
                &format!("{data}/../server.log"),
                "-o",
                &format!("-p {port}"),
                "-w",
                "start",
            ]);
            // What it prints goes nowhere: the server would inherit a pipe, and whoever reads it would wait for its end.
            if start.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success() {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "PostgreSQL did not start again");
        }
    }

    /// Takes only reads, or writes again.
    pub(crate) fn set_read_only(&self, on: bool) {
        let word = if on { "on" } else { "off" };
        self.sql(&format!("ALTER SYSTEM SET default_transaction_read_only = {word}"));
        self.sql("SELECT pg_reload_conf()");
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        let _ = self.script.wait();
    }
}
