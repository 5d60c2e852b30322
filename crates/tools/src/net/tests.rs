//! The door to the network, tried with names and addresses of our own making: nothing here leaves the machine.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use adjutant_core::guard::host::{HostPolicy, HostSpec};
use adjutant_core::guard::judge::Outside;
use adjutant_core::tool::ToolOutcome;
use async_trait::async_trait;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::{Connector, Lookup};
use crate::limits::NET_BODY_BYTES;
use crate::testing::{Stage, message};

const PUBLIC: &str = "93.184.215.14";

/// Names as a test says, and every judged address led to one server on this machine.
struct Names {
    known: BTreeMap<&'static str, Vec<IpAddr>>,
    server: SocketAddr,
    asked: AtomicUsize,
    connected: Mutex<Vec<SocketAddr>>,
}

#[async_trait]
impl Lookup for Names {
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.known.get(name).cloned().ok_or_else(|| io::Error::other("no such name"))
    }

    fn route(&self, judged: SocketAddr) -> SocketAddr {
        self.connected.lock().unwrap().push(judged);
        self.server
    }
}

/// A server that gives these answers, one to a connection, and keeps what it was asked.
async fn server(answers: Vec<Vec<u8>>) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, seen) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Vec::new())));
    let (kept, mut answers) = (Arc::clone(&seen), VecDeque::from(answers));
    tokio::spawn(async move {
        while let Some(answer) = answers.pop_front() {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            let mut piece = [0; 4096];
            while !is_whole(&request) {
                let read = stream.read(&mut piece).await.unwrap();
                request.extend_from_slice(&piece[..read]);
                if read == 0 {
                    break;
                }
            }
            kept.lock().unwrap().push(String::from_utf8_lossy(&request).into_owned());
            // Whoever has read enough hangs up.
            let _ = stream.write_all(&answer).await;
        }
    });
    (address, seen)
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    body.len() >= length.unwrap_or(0)
}

fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
        .into_bytes()
}

struct World {
    stage: Stage,
    names: Arc<Names>,
    seen: Arc<Mutex<Vec<String>>>,
}

/// An agent that may reach `docs.example.org` and what lies below `example.com`, over http too.
async fn world(answers: Vec<Vec<u8>>, known: &[(&'static str, &[&str])], open: &[&str]) -> World {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (server, seen) = server(answers).await;
    let parse = |addresses: &[&str]| addresses.iter().map(|text| text.parse().unwrap()).collect();
    let known = known.iter().map(|(name, addresses)| (*name, parse(addresses))).collect();
    let names = Arc::new(Names { known, server, asked: AtomicUsize::new(0), connected: Mutex::default() });
    let spec: HostSpec = serde_json::from_value(json!({
        "hosts": ["docs.example.org", "*.example.com", "intranet"],
        "schemes": ["https", "http"],
        "allow_private": ["10.0.0.0/8"],
    }))
    .unwrap();
    let mut stage = Stage::with(&[]);
    stage.world.outside = Arc::new(Outside { hosts: HostPolicy::compile(&spec), ..Outside::default() });
    let open = open.iter().map(|network| network.parse().unwrap()).collect();
    stage.world.connector = Connector::new(Arc::clone(&names) as Arc<dyn Lookup>, open);
    World { stage, names, seen }
}

impl World {
    async fn fetch(&self, url: &str) -> String {
        match self.stage.call("fetch_web_page", json!({"url": url})).await {
            ToolOutcome::Done(done) => done.output,
            failed => message(failed),
        }
    }

    fn requests(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

#[tokio::test]
async fn a_question_shows_the_address_that_will_be_called_and_how_it_was_written() {
    let stage = Stage::with(&[]);
    for (written, shown) in [
        ("https://example.org/a", "https://example.org/a"),
        (
            "https://EXAMPLE.org:443/a/../b?q=é",
            "https://example.org/b?q=%C3%A9 (written as https://EXAMPLE.org:443/a/../b?q=é)",
        ),
        ("https://bücher.example/", "https://xn--bcher-kva.example/ (written as https://bücher.example/)"),
        ("https://example.org/\u{202E}a", "https://example.org/\\u{202e}a"),
    ] {
        let page = stage.prepare("fetch_web_page", json!({"url": written})).await.unwrap();
        assert_eq!(page.summary, format!("GET {shown}"));
        let sent = json!({"method": "POST", "url": written, "body": "four"});
        let request = stage.prepare("http_request", sent).await.unwrap();
        assert_eq!(request.summary, format!("POST {shown} with 4 bytes"));
    }
}

#[tokio::test]
async fn a_page_is_read_from_the_address_that_was_judged() {
    let page = answer("200 OK", "content-type: text/html\r\n", "<h1>Bees</h1><p>hum");
    let world = world(vec![page], &[("docs.example.org", &[PUBLIC])], &[]).await;
    let shown = world.fetch("http://docs.example.org/bees?q=1").await;
    assert!(shown.starts_with("200 http://docs.example.org/bees?q=1 (text/html)\n"), "{shown}");
    assert!(shown.contains("# Bees") && shown.contains("hum"), "{shown}");
    let request = world.seen.lock().unwrap()[0].clone();
    assert!(
        request.starts_with("GET /bees?q=1 HTTP/1.1\r\n") && request.contains("host: docs.example.org\r\n"),
        "{request}"
    );
    assert_eq!(*world.names.connected.lock().unwrap(), ["93.184.215.14:80".parse().unwrap()]);
    assert_eq!(world.names.asked.load(Ordering::SeqCst), 1, "a second look-up could give another address");
}

#[tokio::test]
async fn a_name_with_one_address_that_is_not_public_is_not_connected_to() {
    let hidden: &[&[&str]] = &[
        &["127.0.0.1"],
        &[PUBLIC, "169.254.169.254"],
        &["::1"],
        &["::ffff:127.0.0.1"],
        &["64:ff9b::7f00:1"],
        &["192.168.1.1", PUBLIC],
        &["fd00::1"],
    ];
    for addresses in hidden {
        let world =
            world(vec![answer("200 OK", "", "secret")], &[("docs.example.org", addresses)], &["127.0.0.0/8"]).await;
        let refused = world.fetch("http://docs.example.org/").await;
        assert_eq!(refused, "That host does not lead to a public address. Nothing was fetched.", "{addresses:?}");
        assert!(world.names.connected.lock().unwrap().is_empty(), "{addresses:?}");
    }
}

#[tokio::test]
async fn a_network_of_the_house_is_reached_only_where_agent_and_operator_both_open_it() {
    let known: &[(&str, &[&str])] = &[("intranet", &["10.1.2.3"])];
    let closed = world(vec![answer("200 OK", "", "wiki")], known, &[]).await;
    assert!(closed.fetch("http://intranet/").await.starts_with("That host does not lead to a public address."));
    let other = world(vec![answer("200 OK", "", "wiki")], known, &["10.2.0.0/16"]).await;
    assert!(other.fetch("http://intranet/").await.starts_with("That host does not lead to a public address."));
    let open = world(vec![answer("200 OK", "", "wiki")], known, &["10.1.0.0/16"]).await;
    assert!(open.fetch("http://intranet/").await.ends_with("wiki"));
    let unlisted = world(vec![], &[("docs.example.org", &["192.168.0.1"])], &["192.168.0.0/16"]).await;
    assert!(
        unlisted.fetch("http://docs.example.org/").await.starts_with("That host does not lead to"),
        "the agent's own list"
    );
}

#[tokio::test]
async fn the_tool_judges_the_address_itself_whatever_the_guard_said() {
    let world = world(vec![], &[], &["127.0.0.0/8"]).await;
    let own = format!("http://127.0.0.1:{}/", world.names.server.port());
    for url in [&*own, "http://evil.example/", "http://[::1]/", "ftp://docs.example.org/", "http://u@docs.example.org/"]
    {
        let refused = world.fetch(url).await;
        assert!(
            refused.starts_with("That is not allowed: ") && refused.ends_with("Nothing was fetched."),
            "{url}: {refused}"
        );
    }
    assert_eq!((world.requests(), world.names.asked.load(Ordering::SeqCst)), (0, 0));
}

#[tokio::test]
async fn a_redirect_is_judged_and_looked_up_like_a_request() {
    let to = |place: &str| answer("302 Found", &format!("location: {place}\r\n"), "");
    let known: &[(&str, &[&str])] = &[
        ("docs.example.org", &[PUBLIC]),
        ("a.example.com", &[PUBLIC]),
        ("metadata.example.com", &["169.254.169.254"]),
    ];
    let followed = world(vec![to("http://a.example.com/x"), answer("200 OK", "", "there")], known, &[]).await;
    assert!(followed.fetch("http://docs.example.org/").await.starts_with("200 http://a.example.com/x "));
    assert_eq!(followed.names.asked.load(Ordering::SeqCst), 2);
    for (place, why) in [
        ("http://evil.example/", "That is not allowed"),
        ("http://metadata.example.com/latest", "That host does not lead to a public address"),
        ("http://127.0.0.1/", "That is not allowed"),
        ("//evil.example/", "That is not allowed"),
        ("file:///etc/passwd", "That is not allowed"),
        ("http://docs.example.org\\@evil.example/", "That is not allowed"),
    ] {
        let world = world(vec![to(place), answer("200 OK", "", "stolen")], known, &[]).await;
        let refused = world.fetch("http://docs.example.org/").await;
        assert!(refused.starts_with(why), "{place}: {refused}");
        assert_eq!(world.requests(), 1, "{place}");
    }
}

#[tokio::test]
async fn redirects_end_after_five() {
    let on = answer("302 Found", "location: /again\r\n", "");
    let world = world(vec![on; 9], &[("docs.example.org", &[PUBLIC])], &[]).await;
    let refused = world.fetch("http://docs.example.org/").await;
    assert!(refused.contains("redirects more than 5 times"), "{refused}");
    assert_eq!(world.requests(), 6);
}

#[tokio::test]
async fn what_sends_is_not_led_elsewhere_and_headers_stay_with_their_origin() {
    let known: &[(&str, &[&str])] = &[("docs.example.org", &[PUBLIC]), ("a.example.com", &[PUBLIC])];
    let moved = answer("307 Temporary Redirect", "location: http://a.example.com/x\r\n", "");
    let post =
        json!({"method": "POST", "url": "http://docs.example.org/", "headers": ["X-Api-Key: k"], "body": "order"});
    let sent = world(vec![moved.clone()], known, &[]).await;
    let shown = sent.stage.output("http_request", post).await;
    assert!(shown.starts_with("307 http://docs.example.org/"), "{shown}");
    assert!(shown.contains("It points to http://a.example.com/x; that was not followed."), "{shown}");
    let request = sent.seen.lock().unwrap()[0].clone();
    assert!(request.contains("x-api-key: k\r\n") && request.ends_with("\r\n\r\norder"), "{request}");

    let read = world(vec![moved, answer("200 OK", "", "there")], known, &[]).await;
    let get = json!({"method": "GET", "url": "http://docs.example.org/", "headers": ["X-Api-Key: k"]});
    read.stage.output("http_request", get).await;
    let seen = read.seen.lock().unwrap().clone();
    assert!(seen[0].contains("x-api-key") && !seen[1].contains("x-api-key"), "{seen:?}");
}

#[tokio::test]
async fn what_sends_carries_the_key_of_its_call_unless_the_model_gave_one() {
    let known: &[(&str, &[&str])] = &[("docs.example.org", &[PUBLIC])];
    let ok = || answer("200 OK", "", "");
    let world = world(vec![ok(), ok(), ok(), ok()], known, &[]).await;
    let ask = |method: &str, headers: &[&str]| json!({"method": method, "url": "http://docs.example.org/", "headers": headers});
    for request in [ask("POST", &[]), ask("POST", &[]), ask("GET", &[]), ask("PUT", &["idempotency-key: mine"])] {
        world.stage.output("http_request", request).await;
    }
    let seen = world.seen.lock().unwrap().clone();
    let keys: Vec<Vec<_>> = seen
        .iter()
        .map(|request| request.lines().filter_map(|line| line.strip_prefix("idempotency-key: ")).collect())
        .collect();
    assert_eq!(keys[0].len(), 1, "{seen:?}");
    assert_eq!(keys[0], keys[1], "the same call, tried again");
    assert_eq!((keys[2].len(), keys[3].as_slice()), (0, &["mine"][..]), "{seen:?}");
}

#[tokio::test]
async fn headers_that_carry_the_message_and_odd_methods_are_refused() {
    let world = world(vec![], &[("docs.example.org", &[PUBLIC])], &[]).await;
    for headers in
        [json!(["Host: evil.example"]), json!(["Transfer-Encoding: chunked"]), json!(["no colon"]), json!(["a b: c"])]
    {
        let request = json!({"method": "POST", "url": "http://docs.example.org/", "headers": headers});
        let refused = world.stage.failure("http_request", request).await;
        assert!(refused.ends_with("Nothing was fetched."), "{refused}");
    }
    for method in ["CONNECT", "get", "TRACE"] {
        let refused =
            world.stage.failure("http_request", json!({"method": method, "url": "http://docs.example.org/"})).await;
        assert!(refused.contains("method is none of"), "{refused}");
    }
    assert_eq!(world.requests(), 0);
}

#[tokio::test]
async fn a_long_answer_is_cut_and_says_so() {
    let world = world(
        vec![answer("200 OK", "content-type: text/plain\r\n", &"x".repeat(NET_BODY_BYTES + 1))],
        &[("docs.example.org", &[PUBLIC])],
        &[],
    )
    .await;
    let shown = world.fetch("http://docs.example.org/").await;
    assert!(
        shown.len() <= adjutant_core::limits::OUTPUT_BYTES && shown.contains("more bytes are not shown"),
        "{}",
        shown.len()
    );
}

#[tokio::test]
async fn a_request_that_breaks_off_is_in_doubt_if_it_sends_and_tried_again_if_it_reads() {
    let known: &[(&str, &[&str])] = &[("docs.example.org", &[PUBLIC])];
    let cut = || vec![b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhal".to_vec()];
    let reading = world(cut(), known, &[]).await;
    let outcome = reading.stage.call("fetch_web_page", json!({"url": "http://docs.example.org/"})).await;
    assert!(matches!(outcome, ToolOutcome::Failed { retriable: true, .. }), "{outcome:?}");
    let sending = world(cut(), known, &[]).await;
    let outcome =
        sending.stage.call("http_request", json!({"method": "POST", "url": "http://docs.example.org/"})).await;
    assert!(matches!(outcome, ToolOutcome::InDoubt { .. }), "{outcome:?}");
    let nowhere = world(vec![], &[], &[]).await;
    let outcome =
        nowhere.stage.call("http_request", json!({"method": "POST", "url": "http://docs.example.org/"})).await;
    let unsent = "docs.example.org was not found. Nothing was sent.";
    assert_eq!(outcome, ToolOutcome::Failed { message: unsent.to_owned(), retriable: true });
}
