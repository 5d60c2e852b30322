//! What waits for one reader of a run. Live pieces that come at once are gathered, so that a fast model costs no more messages
//! than anybody can see.

use std::collections::VecDeque;
use std::sync::Mutex;

use adjutant_core::limits::{DELTA_COALESCE, FEED_BACKLOG};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::engine::lock;
use crate::spoken::Piece;

/// What waits for one reader, in order. Grows only while somebody is behind.
#[derive(Default)]
pub(super) struct Line {
    waiting: Mutex<VecDeque<Signal>>,
    news: Notify,
}

#[derive(Debug)]
pub(super) enum Signal {
    Grew,
    /// A piece, and when its first part came.
    Piece(Piece, Instant),
}

impl Signal {
    pub(super) fn piece(piece: &Piece) -> Self {
        Self::Piece(piece.clone(), Instant::now())
    }
}

impl Line {
    pub(super) fn send(&self, signal: Signal) {
        let mut waiting = lock(&self.waiting);
        if let (Signal::Piece(piece, _), Some(Signal::Piece(last, _))) = (&signal, waiting.back_mut())
            && last.join(piece)
        {
            // It goes with what is about to be read, at the time that was meant for that.
            return;
        }
        match (&signal, waiting.back()) {
            // It will be read as far as it reaches then.
            (Signal::Grew, Some(Signal::Grew)) => {}
            // Whoever is so far behind loses pieces and reads the log, which has the whole.
            _ if waiting.len() >= FEED_BACKLOG => *waiting = [Signal::Grew].into(),
            _ => waiting.push_back(signal),
        }
        drop(waiting);
        self.news.notify_one();
    }

    /// What comes next. A piece is held back for a moment, so that what follows it at once goes with it.
    pub(super) async fn next(&self) -> Signal {
        loop {
            let held = {
                let mut waiting = lock(&self.waiting);
                match waiting.front() {
                    Some(Signal::Piece(_, since)) if waiting.len() == 1 && since.elapsed() < DELTA_COALESCE => {
                        Some(*since + DELTA_COALESCE)
                    }
                    Some(_) | None => match waiting.pop_front() {
                        Some(signal) => return signal,
                        None => None,
                    },
                }
            };
            match held {
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

#[cfg(test)]
mod tests {
    use adjutant_core::message::Delta;
    use futures::FutureExt;

    use super::*;

    fn said(at: usize, text: &str) -> Piece {
        Piece { turn: 1, at, delta: Delta::Text(text.to_owned()) }
    }

    #[tokio::test(start_paused = true)]
    async fn pieces_that_come_at_once_are_read_as_one_and_none_waits_longer_than_a_moment() {
        let (line, began) = (Line::default(), Instant::now());
        let send = |piece: &Piece| line.send(Signal::piece(piece));
        for piece in [said(0, "hé "), said(3, "🙂 "), said(6, "you")] {
            send(&piece);
        }
        let Signal::Piece(first, _) = line.next().await else { panic!("a piece came") };
        assert_eq!((first, began.elapsed()), (said(0, "hé 🙂 you"), DELTA_COALESCE));
        // What comes while the first one is held goes with it, and does not hold it any longer.
        send(&said(9, "a"));
        tokio::time::advance(DELTA_COALESCE / 2).await;
        send(&said(10, "b"));
        let Signal::Piece(second, _) = line.next().await else { panic!("a piece came") };
        assert_eq!((second, began.elapsed()), (said(9, "ab"), DELTA_COALESCE * 2));
        // The log, reasoning and another place are not its continuation: nothing is held back for them.
        send(&said(11, "c"));
        send(&Piece { delta: Delta::Thinking("hm".to_owned()), ..said(0, "") });
        send(&said(20, "d"));
        line.send(Signal::Grew);
        let mut read = Vec::new();
        for _ in 0..4 {
            read.push(line.next().now_or_never().map(|signal| matches!(signal, Signal::Grew)));
        }
        assert_eq!(read, [Some(false), Some(false), Some(false), Some(true)]);
    }
}
