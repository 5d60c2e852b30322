//! What waits for one reader of a run. The first live piece goes out at once; those that follow it closely are gathered, so
//! that a fast model costs no more messages than anybody can see.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use adjutant_core::limits::{DELTA_COALESCE, FEED_BACKLOG};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::engine::lock;
use crate::log::Recorded;
use crate::spoken::Piece;

/// What waits for one reader, in order. Grows only while somebody is behind.
#[derive(Default)]
pub(super) struct Line {
    waiting: Mutex<Waiting>,
    news: Notify,
}

#[derive(Default)]
struct Waiting {
    signals: VecDeque<Signal>,
    /// Until when a piece is held back: for a moment after the one before it.
    held: Option<Instant>,
}

#[derive(Debug)]
pub(super) enum Signal {
    /// The log has grown: it is to be read.
    Grew,
    /// The log has grown by these.
    Recorded(Arc<Vec<Recorded>>),
    Piece(Piece),
}

impl Line {
    pub(super) fn send(&self, signal: Signal) {
        let mut waiting = lock(&self.waiting);
        if let (Signal::Piece(piece), Some(Signal::Piece(last))) = (&signal, waiting.signals.back_mut())
            && last.join(piece)
        {
            // It goes with what is about to be read, at the time that was meant for that.
            return;
        }
        match (&signal, waiting.signals.back()) {
            // It will be read as far as it reaches then.
            (Signal::Grew, Some(Signal::Grew)) => {}
            // Whoever is so far behind loses pieces and reads the log, which has the whole.
            _ if waiting.signals.len() >= FEED_BACKLOG => waiting.signals = [Signal::Grew].into(),
            _ => waiting.signals.push_back(signal),
        }
        drop(waiting);
        self.news.notify_one();
    }

    /// What comes next. A piece that follows another closely is held back for a moment, so that more goes with it.
    pub(super) async fn next(&self) -> Signal {
        loop {
            let until = match lock(&self.waiting).take(Instant::now()) {
                Next::Now(signal) => return signal,
                Next::At(until) => Some(until),
                Next::Nothing => None,
            };
            match until {
                Some(until) => tokio::select! {
                    biased;
                    () = self.news.notified() => {}
                    () = tokio::time::sleep_until(until) => {}
                },
                None => self.news.notified().await,
            }
        }
    }
}

enum Next {
    Now(Signal),
    At(Instant),
    Nothing,
}

impl Waiting {
    fn take(&mut self, now: Instant) -> Next {
        if let (Some(Signal::Piece(_)), Some(held)) = (self.signals.front(), self.held)
            && self.signals.len() == 1
            && now < held
        {
            return Next::At(held);
        }
        let Some(next) = self.signals.pop_front() else { return Next::Nothing };
        if matches!(next, Signal::Piece(_)) {
            self.held = Some(now + DELTA_COALESCE);
        }
        Next::Now(next)
    }
}

#[cfg(test)]
mod tests {
    use adjutant_core::message::Delta;
    use futures::FutureExt;

    use super::*;
    use crate::spoken::JOINED_BYTES;

    fn said(at: usize, text: &str) -> Piece {
        Piece { turn: 1, at, delta: Delta::Text(text.to_owned()) }
    }

    fn read(line: &Line) -> Option<Piece> {
        match line.next().now_or_never() {
            Some(Signal::Piece(piece)) => Some(piece),
            Some(Signal::Grew | Signal::Recorded(_)) | None => None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_piece_goes_at_once_and_those_that_follow_closely_go_together() {
        let (line, began) = (Line::default(), Instant::now());
        let send = |piece: Piece| line.send(Signal::Piece(piece));
        send(said(0, "h\u{e9} "));
        assert_eq!(read(&line), Some(said(0, "h\u{e9} ")), "nothing is held back for the first");
        send(said(3, "\u{1f642} "));
        assert_eq!(read(&line), None);
        send(said(6, "you"));
        let Signal::Piece(second) = line.next().await else { panic!("a piece came") };
        assert_eq!((second, began.elapsed()), (said(3, "\u{1f642} you"), DELTA_COALESCE));
        tokio::time::advance(DELTA_COALESCE).await;
        send(said(9, "slow"));
        assert_eq!(read(&line), Some(said(9, "slow")), "a slow model is not slowed down");
    }

    #[tokio::test(start_paused = true)]
    async fn what_does_not_go_on_where_a_piece_ends_lets_it_go() {
        let line = Line::default();
        line.send(Signal::Piece(said(0, "a")));
        assert!(read(&line).is_some());
        line.send(Signal::Piece(said(1, "b")));
        line.send(Signal::Piece(Piece { delta: Delta::Thinking("hm".to_owned()), ..said(0, "") }));
        line.send(Signal::Piece(said(20, "d")));
        line.send(Signal::Grew);
        let mut kinds = Vec::new();
        for _ in 0..4 {
            kinds.push(line.next().now_or_never().map(|signal| matches!(signal, Signal::Grew)));
        }
        assert_eq!(kinds, [Some(false), Some(false), Some(false), Some(true)]);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_is_far_behind_reads_the_log_instead_of_ever_longer_pieces() {
        let line = Line::default();
        let text = "x".repeat(JOINED_BYTES);
        for index in 0..=FEED_BACKLOG {
            line.send(Signal::Piece(said(index * JOINED_BYTES, &text)));
        }
        assert!(matches!(line.next().now_or_never(), Some(Signal::Grew)));
        assert!(line.next().now_or_never().is_none());
    }
}
