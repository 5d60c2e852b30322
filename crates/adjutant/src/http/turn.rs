//! Turns: how many requests are worked on at the same time, and who is next when all turns are taken. Each party has a line
//! of its own and the lines take turns, so one that asks a lot waits for itself and not the others for it.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::sync::oneshot;

use super::door::Signed;
use super::frame::overloaded;
use super::server::Server;

tokio::task_local! {
    /// The turn of the request that is being answered.
    static TURN: RefCell<Option<Turn>>;
}

/// Lets somebody's request in when it is their turn. Who is signed in only decides in which line it stands.
pub(super) async fn take(State(server): State<Server>, request: Request, next: Next) -> Response {
    match server.turns.enter(party(&request)).await {
        Ok(turn) => TURN.scope(RefCell::new(Some(turn)), next.run(request)).await,
        Err(Full) => overloaded("Too many requests of this workspace wait already.").into_response(),
    }
}

/// Gives the turn of the present request back: from now on it only waits for something.
pub(super) fn give_back() {
    // What nobody waits for, such as a test, has no turn.
    let _ = TURN.try_with(|turn| turn.take());
}

/// In which line a request stands: that of the workspace of somebody who is in one only, else of the person.
pub(super) fn party(request: &Request) -> String {
    let Some(signed) = request.extensions().get::<Signed>() else { return String::new() };
    match signed.caller.memberships.as_slice() {
        [only] => only.workspace.to_string(),
        [] | [_, _, ..] => signed.caller.user.to_string(),
    }
}

/// All turns there are.
#[derive(Clone)]
pub(super) struct Turns(Arc<Mutex<Lines>>);

/// A party has as many waiting already as may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

struct Lines {
    free: usize,
    /// How many of one party may wait.
    most: usize,
    waiting: BTreeMap<String, VecDeque<oneshot::Sender<Turn>>>,
    /// The parties that wait, whose turn it is first.
    order: VecDeque<String>,
}

/// The right to be worked on, until this is dropped.
pub(super) struct Turn(Option<Turns>);

impl Turns {
    pub(super) fn new(turns: usize, most: usize) -> Self {
        Self(Arc::new(Mutex::new(Lines { free: turns, most, waiting: BTreeMap::new(), order: VecDeque::new() })))
    }

    /// Waits for a turn.
    ///
    /// # Errors
    /// [`Full`] when too many of the party wait already.
    pub(super) async fn enter(&self, party: String) -> Result<Turn, Full> {
        let told = {
            let mut lines = self.lines();
            if lines.free > 0 {
                lines.free -= 1;
                return Ok(Turn(Some(self.clone())));
            }
            let most = lines.most;
            let line = lines.waiting.entry(party.clone()).or_default();
            // Those who went away do not count.
            line.retain(|waiting| !waiting.is_closed());
            if line.len() >= most {
                return Err(Full);
            }
            let (tell, told) = oneshot::channel();
            line.push_back(tell);
            if !lines.order.contains(&party) {
                lines.order.push_back(party);
            }
            told
        };
        told.await.map_err(|_| Full)
    }

    fn lines(&self) -> std::sync::MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a turn to the next in line, or keeps it for whoever comes.
    fn pass_on(&self) {
        let mut lines = self.lines();
        while let Some(next) = lines.next() {
            match next.send(Turn(Some(self.clone()))) {
                Ok(()) => return,
                // They went away. The turn is still ours: it must not pass itself on from here.
                Err(mut turn) => turn.0 = None,
            }
        }
        lines.free += 1;
    }
}

impl Lines {
    /// The first of the party whose turn it is; the party goes to the end.
    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        loop {
            let party = self.order.pop_front()?;
            let line = self.waiting.get_mut(&party)?;
            let first = line.pop_front();
            if line.is_empty() {
                self.waiting.remove(&party);
            } else {
                self.order.push_back(party);
            }
            if first.is_some() {
                return first;
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(turns) = self.0.take() {
            turns.pass_on();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn the_lines_take_turns_so_a_busy_party_waits_for_itself() {
        let turns = Turns::new(1, 8);
        let mut held = turns.enter("a".to_owned()).await.ok();
        let mut waiting: Vec<_> =
            ["a", "a", "a", "b"].into_iter().map(|party| (party, Box::pin(turns.enter(party.to_owned())))).collect();
        for (_, place) in &mut waiting {
            assert!(place.as_mut().now_or_never().is_none());
        }
        let mut order = Vec::new();
        while !waiting.is_empty() {
            drop(held.take());
            let next = waiting.iter_mut().position(|(_, place)| match place.as_mut().now_or_never() {
                Some(turn) => {
                    held = turn.ok();
                    true
                }
                None => false,
            });
            order.push(waiting.remove(next.unwrap()).0);
        }
        assert_eq!(order, ["a", "b", "a", "a"]);
    }

    #[tokio::test]
    async fn a_party_that_waits_too_often_is_refused_and_another_is_not() {
        let turns = Turns::new(1, 1);
        let _held = turns.enter("a".to_owned()).await.ok();
        let mut first = Box::pin(turns.enter("a".to_owned()));
        assert!(first.as_mut().now_or_never().is_none());
        assert_eq!(turns.enter("a".to_owned()).now_or_never().unwrap().err(), Some(Full));
        assert!(turns.enter("b".to_owned()).now_or_never().is_none());
    }

    #[tokio::test]
    async fn a_turn_of_somebody_who_went_away_is_not_lost() {
        let turns = Turns::new(1, 8);
        let held = turns.enter("a".to_owned()).await.ok();
        let mut gone = Box::pin(turns.enter("b".to_owned()));
        let mut told = Box::pin(turns.enter("c".to_owned()));
        assert!(gone.as_mut().now_or_never().is_none() && told.as_mut().now_or_never().is_none());
        drop(gone);
        drop(held);
        // It was handed over, and they went away before they took it.
        drop(told);
        assert!(turns.enter("d".to_owned()).now_or_never().unwrap().is_ok());
    }
}
