//! A PostgreSQL of its own, because it is going to be treated badly.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::house::{Done, is_root};
use crate::nodes::PATIENCE;

/// How large its disk is, where it has one of its own: more than it ever needs.
const DISK: &str = "6g";

pub(crate) struct Postgres {
    script: Child,
    pub(crate) url: String,
    data: PathBuf,
    pg_ctl: PathBuf,
    owner: String,
    /// The disk that it has for itself, if this process may give it one.
    disk: Option<PathBuf>,
}

impl Postgres {
    /// Starts one through the script that every test uses; it cleans up once its input ends.
    pub(crate) fn start() -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/with-postgres");
        let mut command = Command::new(script);
        command.args(["sh", "-c", "echo \"$ADJUTANT_TEST_POSTGRES\"; cat"]).env_remove("ADJUTANT_TEST_POSTGRES");
        command.env("ADJUTANT_POSTGRES_DISK", DISK);
        let mut script = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(script.stdout.take().unwrap()).read_line(&mut url).unwrap();
        assert!(url.starts_with("postgres://"), "PostgreSQL did not start");
        let url = url.trim().to_owned();
        let sql = |sql| Done::of(Command::new("psql").arg(&url).args(["-Atqc", sql])).out.trim_end().to_owned();
        let data = std::fs::canonicalize(sql("SHOW data_directory")).unwrap();
        let pid = std::fs::read_to_string(data.join("postmaster.pid")).unwrap();
        let program = std::fs::read_link(format!("/proc/{}/exe", pid.lines().next().unwrap())).unwrap();
        let owner = Done::of(Command::new("stat").args(["-c", "%U"]).arg(&data)).out.trim().to_owned();
        let above = data.parent().unwrap().to_owned();
        let disk = above.ends_with("disk").then_some(above);
        Self { script, url, data, pg_ctl: program.with_file_name("pg_ctl"), owner, disk }
    }

    /// Host and port.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port())
    }

    fn port(&self) -> u16 {
        self.url.parse::<url::Url>().unwrap().port().unwrap()
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

    /// Kills one of its processes: the server ends all others, and recovers from its log as after a power cut. Says whether that
    /// came about.
    pub(crate) fn crash(&self) -> bool {
        let writer = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'background writer'";
        let pid = self.sql(writer).and_then(|pid| pid.parse().ok());
        pid.is_some_and(|pid| send("KILL", &[pid]))
    }

    /// Kills the server itself with SIGKILL, and starts it again once all that was left of it is gone. Says whether that came about.
    pub(crate) fn kill(&self) -> bool {
        let pid = std::fs::read_to_string(self.data.join("postmaster.pid")).unwrap_or_default();
        let pid = pid.lines().next().and_then(|line| line.parse().ok());
        let killed = pid.is_some_and(|pid| send("KILL", &[pid]));
        self.revive();
        killed
    }

    /// Waits until it serves again; one that ended is started.
    pub(crate) fn revive(&self) {
        let begun = Instant::now();
        while self.sql("SELECT 1").is_none() {
            let mut start = if is_root() {
                let mut start = Command::new("runuser");
                start.args(["-u", &self.owner, "--"]).arg(&self.pg_ctl);
                start
            } else {
                Command::new(&self.pg_ctl)
            };
            start.arg("-D").arg(&self.data).arg("-l").arg(self.data.join("../server.log"));
            start.args(["-o", &format!("-p {}", self.port()), "-w", "start"]);
            // What it prints goes nowhere: the server would inherit a pipe, and whoever reads it would wait for its end. One that
            // only recovers refuses a second one.
            let _ = start.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
            assert!(begun.elapsed() < PATIENCE, "PostgreSQL did not start again");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Takes only reads from now on. Says whether that came about.
    pub(crate) fn refuse_writes(&self) -> bool {
        self.set_read_only("on")
    }

    /// Takes writes again, however often that has to be said: something else may be done to it just now.
    pub(crate) fn take_writes(&self) {
        let begun = Instant::now();
        while !self.set_read_only("off") {
            assert!(begun.elapsed() < PATIENCE, "PostgreSQL does not take writes again");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn set_read_only(&self, word: &str) -> bool {
        let set = self.sql(&format!("ALTER SYSTEM SET default_transaction_read_only = {word}"));
        set.and_then(|_| self.sql("SELECT pg_reload_conf()")).is_some()
    }

    /// Whether its disk can be filled without filling anybody else's.
    pub(crate) const fn has_disk(&self) -> bool {
        self.disk.is_some()
    }

    /// Leaves it no room at all. Says whether that came about.
    pub(crate) fn fill_disk(&self) -> bool {
        let Some(disk) = &self.disk else { return false };
        (0..20).any(|attempt| {
            if attempt > 0 {
                std::thread::sleep(Duration::from_millis(50));
            }
            let used = Done::of(Command::new("df").args(["-k", "--output=used"]).arg(disk)).out;
            let used = used.lines().nth(1).map(str::trim).unwrap_or_default().to_owned();
            // A disk that is made as small as what is on it needs no file to fill it. It grows while we look.
            !used.is_empty() && self.resize(&format!("{used}k"))
        })
    }

    /// Gives it its room back; a server that gave up over it is started again.
    pub(crate) fn free_disk(&self) {
        assert!(self.resize(DISK));
        self.revive();
    }

    fn resize(&self, size: &str) -> bool {
        let Some(disk) = &self.disk else { return false };
        let resized = Command::new("mount").args(["-o", &format!("remount,size={size}")]).arg(disk).output();
        resized.is_ok_and(|done| done.status.success())
    }

    /// Stops whatever in it writes or commits, and lets it go on, again and again: to everybody else that is a disk which takes
    /// its time. A real one cannot be slowed down without rights that few machines give a test. Says whether that came about.
    pub(crate) fn stutter(&self, times: usize) -> bool {
        let writing = "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type IN \
                       ('client backend', 'walwriter', 'checkpointer', 'background writer')";
        let mut stopped = false;
        for _ in 0..times {
            let Some(pids) = self.sql(writing) else { return stopped };
            let pids: Vec<u32> = pids.lines().filter_map(|pid| pid.parse().ok()).collect();
            stopped |= send("STOP", &pids);
            std::thread::sleep(Duration::from_millis(200));
            send("CONT", &pids);
            std::thread::sleep(Duration::from_millis(50));
        }
        stopped
    }
}

/// Sends a signal to processes, some of which may be gone by now. Says whether any of them got it.
fn send(name: &str, pids: &[u32]) -> bool {
    let got = |pid: &u32| {
        let mut kill = Command::new("sh");
        kill.arg("-c").arg(format!("kill -{name} {pid}")).stderr(Stdio::null());
        kill.status().unwrap().success()
    };
    pids.iter().filter(|pid| got(pid)).count() > 0
}

impl Drop for Postgres {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        let _ = self.script.wait();
    }
}
