//! Following a run at a server: its events as they come, in the server-sent form.

use adjutant_core::message::Delta;
use adjutant_engine::Piece;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use reqwest::header::ACCEPT;
use reqwest::{Method, StatusCode};

use super::Remote;
use crate::failure::Failure;
use crate::wire::WireEvent;

/// Bytes of one event: a long answer, written as JSON.
const EVENT_BYTES: usize = 32 * 1024 * 1024;

/// Something of a run.
pub(in crate::cli) enum Item {
    /// A durable event.
    Event(WireEvent),
    /// A live piece.
    Piece(Piece),
}

/// How much of a turn was heard: what comes again after the connection broke is not shown twice.
#[derive(Default)]
pub(in crate::cli) struct Heard {
    turn: u32,
    text: usize,
    thinking: usize,
}

impl Heard {
    /// What is new of a piece.
    pub(in crate::cli) fn fresh(&mut self, piece: Piece) -> Option<Delta> {
        if piece.turn != self.turn {
            *self = Self { turn: piece.turn, ..Self::default() };
        }
        let (have, text, form): (_, _, fn(String) -> Delta) = match piece.delta {
            Delta::Text(text) => (&mut self.text, text, Delta::Text),
            Delta::Thinking(text) => (&mut self.thinking, text, Delta::Thinking),
        };
        let mut place = piece.at;
        let new: String = text
            .chars()
            .filter(|letter| {
                place += letter.len_utf16();
                place > *have
            })
            .collect();
        *have = (*have).max(place);
        (!new.is_empty()).then(|| form(new))
    }
}

/// The events of a run, as they come.
pub(in crate::cli) struct Events {
    body: BoxStream<'static, reqwest::Result<Bytes>>,
    /// What has come and is not read yet.
    rest: Vec<u8>,
    /// How much of it holds no end of an event.
    scanned: usize,
}

impl Remote {
    /// Follows a run from an event on. None: nothing will come any more.
    pub(in crate::cli) async fn follow(&self, run: &str, after: u64) -> Result<Option<Events>, Failure> {
        let request = self.request(Method::GET, &["runs", run, "events"], &[("after", &after.to_string())])?;
        let answer = self.send(request.header(ACCEPT, "text/event-stream")).await?;
        if answer.status() == StatusCode::NO_CONTENT {
            return Ok(None);
        }
        Ok(Some(Events { body: answer.bytes_stream().boxed(), rest: Vec::new(), scanned: 0 }))
    }
}

impl Events {
    /// The next of them; none when the stream is over, for whatever reason.
    pub(in crate::cli) async fn next(&mut self) -> Option<Item> {
        loop {
            while let Some(end) = self.rest[self.scanned..].windows(2).position(|two| two == b"\n\n") {
                let block: Vec<u8> = self.rest.drain(..self.scanned + end + 2).collect();
                self.scanned = 0;
                if let Some(item) = item(&String::from_utf8_lossy(&block)) {
                    return Some(item);
                }
            }
            self.scanned = self.rest.len().saturating_sub(1);
            if self.rest.len() > EVENT_BYTES {
                return None;
            }
            self.rest.extend(self.body.next().await?.ok()?);
        }
    }
}

/// What one block says; none for comments and for what is of no use here.
fn item(block: &str) -> Option<Item> {
    let (mut id, mut event, mut data) = (None, "", String::new());
    for line in block.lines() {
        match line.split_once(':') {
            Some(("id", value)) => id = value.trim().parse().ok(),
            Some(("event", value)) => event = value.trim(),
            Some(("data", value)) => data.push_str(value.strip_prefix(' ').unwrap_or(value)),
            Some(_) | None => {}
        }
    }
    let data: serde_json::Value = serde_json::from_str(&data).ok()?;
    let piece = |form: fn(String) -> Delta| {
        let number = |field: &str| data[field].as_u64().unwrap_or_default();
        let delta = form(data["delta"].as_str().unwrap_or_default().to_owned());
        let turn = u32::try_from(number("turn")).unwrap_or(u32::MAX);
        Some(Item::Piece(Piece { turn, at: usize::try_from(number("at")).unwrap_or(usize::MAX), delta }))
    };
    match (event, id) {
        ("answer_delta", _) => piece(Delta::Text),
        ("thinking_delta", _) => piece(Delta::Thinking),
        (_, Some(id)) => Some(Item::Event(WireEvent { event: event.to_owned().into(), id, data })),
        (_, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn events_are_read_however_the_network_cuts_them() {
        let text = ": hello\n\nid: 3\nevent: answer\ndata: {\"content\":\"hé\"}\n\nevent: answer_delta\ndata: {\"delta\":\"x\"}\n\n";
        for cut in 1..text.len() {
            let (one, two) = text.as_bytes().split_at(cut);
            let pieces = [Ok(Bytes::copy_from_slice(one)), Ok(Bytes::copy_from_slice(two))];
            let mut events = Events { body: futures::stream::iter(pieces).boxed(), rest: Vec::new(), scanned: 0 };
            let Some(Item::Event(event)) = events.next().await else { panic!("cut at {cut}") };
            assert_eq!((event.id, &*event.event, event.text("content")), (3, "answer", "hé"), "cut at {cut}");
            let Some(Item::Piece(piece)) = events.next().await else { panic!("cut at {cut}") };
            assert_eq!(piece, Piece { turn: 0, at: 0, delta: Delta::Text("x".to_owned()) });
            assert!(events.next().await.is_none());
        }
    }
    #[test]
    fn what_was_heard_before_the_connection_broke_is_not_shown_again() {
        let mut heard = Heard::default();
        let mut said = String::new();
        let pieces = [
            (1, 0, "hé 🙂"),
            (1, 5, " you"),
            (1, 0, "hé 🙂 you there"),
            (1, 9, " there"),
            (1, 15, "!"),
            (2, 0, " Next"),
        ];
        for (turn, at, text) in pieces {
            if let Some(Delta::Text(new)) = heard.fresh(Piece { turn, at, delta: Delta::Text(text.to_owned()) }) {
                said.push_str(&new);
            }
        }
        assert_eq!(said, "hé 🙂 you there! Next");
    }
}
