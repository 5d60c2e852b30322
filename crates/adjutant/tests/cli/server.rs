//! The server: what it serves, whom it answers, how it stops, and what others are told meanwhile.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use crate::house::{House, signal};

struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(house: &House) -> Self {
        let mut command = house.command(&["serve", "--listen", "127.0.0.1:0", "--no-open"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address =
            line.trim().strip_prefix("adjutant ready on http://").unwrap_or_else(|| panic!("{line}")).to_owned();
        Self { child, address }
    }

    fn get(&self, path: &str, host: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Stops the server in order and says what it told the person who started it.
    fn stop(mut self, name: &str) -> String {
        signal(name, self.child.id());
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{said}");
        said
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A test that failed must not leave its server behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_server_is_healthy_strict_and_stops_in_order() {
    let house = House::new();
    let server = Server::start(&house);
    let health = server.get("/healthz", &server.address);
    assert!(health.starts_with("HTTP/1.1 200") && health.contains(r#""status":"ok""#), "{health}");
    let ready = server.get("/readyz", "localhost");
    assert!(ready.starts_with("HTTP/1.1 200") && ready.contains(r#""database":"sqlite""#), "{ready}");
    let page = server.get("/", &server.address);
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("Adjutant"), "{page}");
    for header in
        ["content-security-policy: default-src 'none'", "x-content-type-options: nosniff", "x-frame-options: DENY"]
    {
        assert!(page.contains(header), "{header} is missing in {page}");
    }
    assert!(server.get("/", "evil.example").starts_with("HTTP/1.1 421"));
    assert!(server.get("/api/v1/runs", &server.address).starts_with("HTTP/1.1 404"));
    let said = server.stop("TERM");
    assert!(said.contains("First start") && said.contains("demo model"), "{said}");
}

#[test]
fn others_are_told_who_has_the_data_directory() {
    let house = House::new();
    let server = Server::start(&house);
    let (pid, address) = (server.child.id(), server.address.clone());
    let refused = house.adjutant(&["runs", "ls"]);
    assert_eq!(refused.code, Some(1), "{refused}");
    let holder = format!("in use by process {pid} (adjutant serve on http://{address})");
    assert!(refused.err.contains(&holder) && refused.err.contains("hint: "), "{refused}");
    server.stop("INT");
    assert_eq!(house.adjutant(&["runs", "ls"]).code, Some(0));
}

#[test]
fn the_server_takes_up_what_was_left_to_it() {
    let house = House::new();
    let run = crate::house::text(&house.document(&["run", "what files are here", "--detach"])["id"]);
    let server = Server::start(&house);
    // The log on the disk tells when the run is over; looking at it needs no lock.
    let log = house.data().join("adjutant.db-wal");
    let mut size = 0;
    let mut still = 0;
    while still < 5 {
        std::thread::sleep(std::time::Duration::from_millis(100));
        let now = std::fs::metadata(&log).map_or(0, |about| about.len());
        still = if now == size && now > 0 { still + 1 } else { 0 };
        size = now;
    }
    server.stop("TERM");
    assert_eq!(house.document(&["runs", "show", &run])["status"], "COMPLETED");
}

#[test]
fn a_server_without_sign_in_stays_on_loopback() {
    let house = House::new();
    let refused = house.adjutant(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.err.contains("loopback only"), "{refused}");
    assert!(!house.data().exists());
}
