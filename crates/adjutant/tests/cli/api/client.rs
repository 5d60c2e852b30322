//! A server of its own and a client for it: plain HTTP over loopback, written out so that a test sees every header.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::house::{BINARY, House, signal};

/// The token of the owner of every server here.
pub(crate) const OWNER: &str = "adj_the-owner-of-a-house-for-tests";

/// A running server.
pub(crate) struct Server {
    child: Child,
    /// What it says to the person who started it, read as it comes: what nobody takes is left out.
    said: mpsc::Receiver<String>,
    pub(crate) house: House,
    pub(crate) address: String,
}

/// Somebody at the door.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    address: String,
    headers: Vec<(String, String)>,
}

/// What was answered.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) text: String,
}

impl Server {
    pub(crate) fn start(house: House) -> Self {
        Self::start_with(house, &[("ADJUTANT_BOOTSTRAP_TOKEN", OWNER)])
    }

    pub(crate) fn start_with(house: House, env: &[(&str, &str)]) -> Self {
        Self::start_at(house, "127.0.0.1:0", env)
    }

    pub(crate) fn start_at(house: House, listen: &str, env: &[(&str, &str)]) -> Self {
        let mut command = house.command(&["serve", "--listen", listen, "--no-open"]);
        command.envs(env.iter().copied());
        Self::run(house, command)
    }

    /// A server in the folder of its house, which nothing but itself keeps from writing core files there.
    pub(crate) fn start_to_crash(house: House) -> Self {
        let (data, folder) = (house.data(), house.path().to_owned());
        let mut command = Command::new("sh");
        house.prepare(&mut command);
        command.args(["-c", "ulimit -c unlimited && exec \"$0\" \"$@\"", BINARY, "--data"]).arg(data);
        command.args(["serve", "--listen", "127.0.0.1:0", "--no-open"]).current_dir(folder);
        command.env("ADJUTANT_BOOTSTRAP_TOKEN", OWNER);
        Self::run(house, command)
    }

    fn run(house: House, mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("adjutant ready on http://").unwrap_or_else(|| panic!("{line}"));
        let (tell, said) = mpsc::channel();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            let mut line = String::new();
            while stderr.read_line(&mut line).is_ok_and(|read| read > 0) {
                let _ = tell.send(std::mem::take(&mut line));
            }
        });
        Self { address: address.to_owned(), child, said, house }
    }

    /// The owner, with a token.
    pub(crate) fn owner(&self) -> Client {
        self.nobody().with("authorization", &format!("Bearer {OWNER}"))
    }

    pub(crate) fn nobody(&self) -> Client {
        Client { address: self.address.clone(), headers: Vec::new() }
    }

    /// A new person in a workspace, with a session.
    pub(crate) fn person(&self, name: &str, workspace: &str, role: &str) -> Client {
        let path = format!("/api/v1/workspaces/{workspace}/invites");
        let invited = self.owner().post(&path, json!({"role": role})).expect(201);
        let body = json!({"token": invited["token"], "name": name, "password": "a long password"});
        let welcome = self.nobody().post("/api/v1/invites/accept", body);
        assert_eq!(welcome.status, 200, "{welcome:?}");
        self.nobody().signed_in(&welcome)
    }

    /// Tells the server to stop, and what it told the person who started it.
    pub(crate) fn stop(mut self) -> (House, String) {
        signal("TERM", self.child.id());
        let said: String = self.said.iter().collect();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{said}");
        (std::mem::replace(&mut self.house, House::new()), said)
    }

    /// Ends the process as a power cut would.
    pub(crate) fn kill(mut self) -> House {
        signal("KILL", self.child.id());
        self.child.wait().unwrap();
        std::mem::replace(&mut self.house, House::new())
    }

    /// Ends the process as a fault of its own would, and waits until it has left what it leaves.
    pub(crate) fn crash(mut self, with: &str) -> House {
        signal(with, self.child.id());
        assert_eq!(self.child.wait().unwrap().code(), None, "it was ended by the signal");
        std::mem::replace(&mut self.house, House::new())
    }

    /// Waits for a line that the server tells the person who started it.
    pub(crate) fn hear(&mut self, words: &str) -> String {
        let mut lines = self.said.iter();
        lines.find(|line| line.contains(words)).unwrap_or_else(|| panic!("`{words}` was never said"))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn terminate(&self) {
        signal("TERM", self.child.id());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A test that failed must not leave its server behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Client {
    /// Somebody at another door.
    pub(crate) fn at(address: &str) -> Self {
        Self { address: address.to_owned(), headers: Vec::new() }
    }

    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut client = self.clone();
        client.headers.retain(|(known, _)| known != name);
        client.headers.push((name.to_owned(), value.to_owned()));
        client
    }

    /// The same as the browser that an answer signed in.
    pub(crate) fn signed_in(&self, reply: &Reply) -> Self {
        let cookie = reply.headers["set-cookie"].split(';').next().unwrap();
        self.with("cookie", cookie).with("origin", &format!("http://{}", self.address))
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.call("GET", path, None)
    }

    pub(crate) fn post(&self, path: &str, body: Value) -> Reply {
        self.call("POST", path, Some(body.to_string().as_bytes()))
    }

    pub(crate) fn put(&self, path: &str, body: Value) -> Reply {
        self.call("PUT", path, Some(body.to_string().as_bytes()))
    }

    pub(crate) fn patch(&self, path: &str, body: Value) -> Reply {
        self.call("PATCH", path, Some(body.to_string().as_bytes()))
    }

    pub(crate) fn delete(&self, path: &str) -> Reply {
        self.call("DELETE", path, None)
    }

    pub(crate) fn call(&self, method: &str, path: &str, body: Option<&[u8]>) -> Reply {
        let mut incoming = self.send(method, path, body);
        let mut reply = incoming.head();
        let mut bytes = Vec::new();
        // A stream has no end to wait for: whoever wants more of it follows it.
        let endless = reply.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream");
        while let Some(piece) = incoming.piece() {
            bytes.extend(piece);
            if endless {
                break;
            }
        }
        reply.text = String::from_utf8_lossy(&bytes).into_owned();
        super::contract::hold(method, path, &reply);
        reply
    }

    /// Follows a stream.
    pub(crate) fn follow(&self, method: &str, path: &str, body: Option<&Value>) -> Stream {
        let body = body.map(|body| body.to_string().into_bytes());
        let client = self.with("accept", "text/event-stream");
        let mut incoming = client.send(method, path, body.as_deref());
        let head = incoming.head();
        Stream { head, incoming, text: String::new() }
    }

    fn send(&self, method: &str, path: &str, body: Option<&[u8]>) -> Incoming {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !self.headers.iter().any(|(name, _)| name == "connection") {
            head += "connection: close\r\n";
        }
        if !self.headers.iter().any(|(name, _)| name == "host") {
            head += &format!("host: {}\r\n", self.address);
        }
        if let Some(body) = body {
            if !self.headers.iter().any(|(name, _)| name == "content-type") {
                head += "content-type: application/json\r\n";
            }
            head += &format!("content-length: {}\r\n", body.len());
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
        // The server may answer and hang up before it has read all of a body that it refuses.
        let _ = stream.write_all(body.unwrap_or_default());
        Incoming { reader: BufReader::new(stream), chunked: false, left: None }
    }
}

/// An answer that is coming in.
struct Incoming {
    reader: BufReader<TcpStream>,
    chunked: bool,
    left: Option<usize>,
}

impl Incoming {
    fn line(&mut self) -> String {
        let mut line = String::new();
        let _ = self.reader.read_line(&mut line);
        line.trim_end().to_owned()
    }

    fn head(&mut self) -> Reply {
        let status = self.line();
        let status =
            status.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{status:?}"));
        let mut headers = BTreeMap::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.insert(name.to_ascii_lowercase(), value.to_owned());
        }
        self.chunked = headers.get("transfer-encoding").is_some_and(|how| how == "chunked");
        self.left = headers.get("content-length").and_then(|length| length.parse().ok());
        Reply { status, headers, text: String::new() }
    }

    /// The next piece of the body; none at its end.
    fn piece(&mut self) -> Option<Vec<u8>> {
        if self.chunked {
            let size = usize::from_str_radix(&self.line(), 16).ok().filter(|size| *size > 0)?;
            let mut bytes = vec![0; size];
            self.reader.read_exact(&mut bytes).ok()?;
            self.line();
            return Some(bytes);
        }
        let left = self.left.take().filter(|left| *left > 0)?;
        let mut bytes = vec![0; left];
        self.reader.read_exact(&mut bytes).ok()?;
        Some(bytes)
    }
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The document of an answer that has to have this status.
    pub(crate) fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        if self.text.is_empty() { Value::Null } else { self.json() }
    }

    /// Asserts a problem with this status and code, whole enough to help.
    pub(crate) fn refuses(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.headers["content-type"], "application/problem+json", "{self:?}");
        let problem = self.json();
        assert_eq!(
            (problem["code"].as_str(), problem["status"].as_u64()),
            (Some(code), Some(status.into())),
            "{problem}"
        );
        assert_eq!(problem["type"], json!(format!("/problems/{code}")));
        assert_eq!(problem["trace_id"], json!(self.headers["x-request-id"]));
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.ends_with('.')), "{problem}");
        // What a client can put right says how.
        assert!(problem["hint"].is_string() || ![400, 409, 413, 422].contains(&status), "{problem}");
        problem
    }
}

/// A stream of events.
pub(crate) struct Stream {
    pub(crate) head: Reply,
    incoming: Incoming,
    text: String,
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sent {
    pub(crate) name: String,
    pub(crate) id: Option<u64>,
    pub(crate) data: Value,
}

impl Stream {
    /// Hangs up after so many bytes, or when nothing comes for a moment; the whole events among them.
    pub(crate) fn cut(mut self, bytes: usize) -> Vec<Sent> {
        self.incoming.reader.get_ref().set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        while self.text.len() < bytes {
            let Some(piece) = self.incoming.piece() else { break };
            self.text += std::str::from_utf8(&piece).unwrap();
        }
        self.text.truncate(self.text.floor_char_boundary(bytes));
        let whole = self.text.rfind("\n\n").map_or(0, |end| end + 2);
        self.text[..whole].split_terminator("\n\n").filter_map(sent).collect()
    }

    /// The next block as it came, comments included; none at the end.
    pub(crate) fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let block = block.to_owned();
                self.text = rest.to_owned();
                return Some(block);
            }
            let piece = self.incoming.piece()?;
            self.text += std::str::from_utf8(&piece).unwrap();
        }
    }
}

impl Iterator for Stream {
    type Item = Sent;
    fn next(&mut self) -> Option<Sent> {
        loop {
            if let Some(event) = sent(&self.block()?) {
                return Some(event);
            }
        }
    }
}

/// What one block says; none for a comment.
fn sent(block: &str) -> Option<Sent> {
    let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned));
    let name = field("event: ")?;
    let data = serde_json::from_str(&field("data: ").unwrap()).unwrap();
    Some(Sent { name, id: field("id: ").map(|id| id.parse().unwrap()), data })
}
