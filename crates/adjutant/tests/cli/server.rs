//! The server: what it serves, whom it answers, how it stops, and what others are told meanwhile.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use crate::house::{Done, House, signal};

struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(house: &House) -> Self {
        Self::spawn(&mut house.command(&["serve", "--listen", "127.0.0.1:0", "--no-open"]))
    }

    fn spawn(command: &mut Command) -> Self {
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

/// Whether the provider wants a key.
#[derive(Clone, Copy)]
enum Key {
    Wanted,
    None,
}

/// A provider on this machine that speaks the chat completions protocol.
struct Lab(TcpListener);

impl Lab {
    /// Opens the provider and makes it the default of a house.
    fn open(house: &House, key: Key) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        house.configure(&format!(
            "default_model = \"lab/some-model\"\n[providers.lab]\nkind = \"openai\"\nbase_url = \"http://{address}/v1\"\n\
             input_usd = \"0\"\noutput_usd = \"0\"\n{}",
            match key {
                Key::Wanted => "api_key_env = \"LAB_KEY\"\n",
                Key::None => "",
            }
        ));
        Self(listener)
    }

    /// Answers one request and says what it was.
    fn answer(&self, text: &str) -> String {
        let (mut stream, _) = self.0.accept().unwrap();
        let mut request = Vec::new();
        let mut piece = [0; 4096];
        while !is_whole(&request) {
            let read = stream.read(&mut piece).unwrap();
            assert!(read > 0, "the request broke off");
            request.extend_from_slice(&piece[..read]);
        }
        let chunk = format!(
            r#"{{"model":"some-model","choices":[{{"index":0,"delta":{{"content":"{text}"}},"finish_reason":"stop"}}]}}"#
        );
        let body = format!("data: {chunk}\n\ndata: [DONE]\n\n");
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n";
        write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
        String::from_utf8(request).unwrap()
    }
}

/// Whether the head and as much of the body as it promises are there.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length =
        head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned));
    body.len() >= length.and_then(|length| length.parse().ok()).unwrap_or(0)
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
    assert!(server.get("/api/v1/runs", &server.address).starts_with("HTTP/1.1 401"));
    let said = server.stop("TERM");
    assert!(said.contains("First start") && said.contains("demo model"), "{said}");
}

#[test]
fn others_are_told_who_has_the_data_directory() {
    let house = House::new();
    let server = Server::start(&house);
    let (pid, address) = (server.child.id(), server.address.clone());
    let refused = house.adjutant(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(refused.code, Some(1), "{refused}");
    let holder = format!("in use by process {pid} (adjutant serve on http://{address})");
    assert!(refused.err.contains(&holder) && refused.err.contains("hint: "), "{refused}");
    server.stop("INT");
    assert_eq!(house.adjutant(&["runs", "ls"]).code, Some(0));
}

#[test]
fn the_server_takes_up_what_was_left_to_it() {
    let house = House::new();
    let lab = Lab::open(&house, Key::None);
    let run = crate::house::text(&house.document(&["run", "hello", "--detach"])["id"]);
    let server = Server::start(&house);
    let request = lab.answer("Good day.");
    assert!(request.contains("\"hello\""), "{request}");
    server.stop("TERM");
    // Wherever the signal found it, it goes on from there.
    let lab = std::thread::spawn(move || lab.answer("Good day."));
    let watched = house.adjutant(&["runs", "watch", &run]);
    assert_eq!((watched.code, watched.out.as_str()), (Some(0), "Good day.\n"), "{watched}");
    drop(lab);
}

#[test]
fn a_provider_of_the_configuration_answers() {
    let house = House::new();
    let lab = Lab::open(&house, Key::Wanted);
    let lab = std::thread::spawn(move || lab.answer("Good day."));
    let done = Done::of(house.command(&["run", "hello"]).env("LAB_KEY", "sk-lab"));
    assert_eq!((done.code, done.out.as_str()), (Some(0), "Good day.\n"), "{done}");
    let request = lab.join().unwrap();
    assert!(request.starts_with("POST /v1/chat/completions"), "{request}");
    assert!(
        request.contains("authorization: Bearer sk-lab") && request.contains("\"model\":\"some-model\""),
        "{request}"
    );
}

#[test]
fn a_server_that_nobody_owns_stays_on_loopback() {
    let house = House::new();
    let refused = house.adjutant(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.err.contains("loopback only") && refused.err.contains("ADJUTANT_BOOTSTRAP_TOKEN"), "{refused}");
}

#[test]
fn a_server_that_was_told_to_stop_says_so_to_whoever_comes_before_it_closes_its_door() {
    let house = House::new();
    let mut command = house.command(&["serve", "--listen", "127.0.0.1:0", "--no-open"]);
    let mut server = Server::spawn(command.env("ADJUTANT_DRAIN", "600s"));
    assert!(server.get("/readyz", "localhost").starts_with("HTTP/1.1 200 "));
    signal("TERM", server.child.id());
    let begun = std::time::Instant::now();
    // Each of them is a connection of its own.
    let told = loop {
        let answer = server.get("/readyz", "localhost");
        if answer.starts_with("HTTP/1.1 503 ") {
            break answer;
        }
        assert!(begun.elapsed().as_secs() < 60, "{answer}");
    };
    assert!(told.contains(r#""status":"stopping""#), "{told}");
    assert!(server.get("/healthz", "localhost").starts_with("HTTP/1.1 200 "), "what is asked is still answered");
    assert!(server.child.try_wait().unwrap().is_none(), "it waits for whoever sends requests here");
}
