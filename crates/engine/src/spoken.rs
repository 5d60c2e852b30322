//! What a model has said so far in a turn that is not over, and where each piece of it belongs. Whoever comes late is told all
//! of it, and a piece that comes twice changes nothing.

use adjutant_core::message::Delta;

/// A live piece of an answer. It has no place in the log: the durable event replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The turn it belongs to.
    pub turn: u32,
    /// Where it begins in what is said in this turn (its text, or its reasoning), in UTF-16 units, as pages count.
    pub at: usize,
    /// The piece.
    pub delta: Delta,
}

/// Bytes from which on nothing more is joined to a piece: whoever is far behind reads the log instead.
pub(crate) const JOINED_BYTES: usize = 1024;

impl Piece {
    /// Where what is said next begins.
    pub(crate) fn end(&self) -> usize {
        let (Delta::Text(text) | Delta::Thinking(text)) = &self.delta;
        self.at + units(text)
    }

    /// Takes in a piece that goes on where this one ends. False when it does not.
    pub(crate) fn join(&mut self, next: &Self) -> bool {
        let (Delta::Text(text) | Delta::Thinking(text)) = &self.delta;
        if self.turn != next.turn || text.len() >= JOINED_BYTES || self.end() != next.at {
            return false;
        }
        match (&mut self.delta, &next.delta) {
            (Delta::Text(text), Delta::Text(more)) | (Delta::Thinking(text), Delta::Thinking(more)) => {
                text.push_str(more)
            }
            (Delta::Text(_), Delta::Thinking(_)) | (Delta::Thinking(_), Delta::Text(_)) => return false,
        }
        true
    }
}

/// How long a text is where pages count.
pub(crate) fn units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// What is left of a text after so many units.
fn beyond(text: &str, mut known: usize) -> &str {
    let mut rest = text.chars();
    while known > 0 {
        let Some(letter) = rest.next() else { break };
        known = known.saturating_sub(letter.len_utf16());
    }
    rest.as_str()
}

/// The turn that a run is in, as far as it was heard.
#[derive(Debug, Default)]
pub(crate) struct Spoken {
    turn: u32,
    text: Part,
    thinking: Part,
    /// Whether the model is asked here; what other nodes say is only kept for those who listen.
    pub(crate) own: bool,
}

#[derive(Debug, Default)]
struct Part {
    said: String,
    units: usize,
}

impl Spoken {
    /// Nothing yet, of a model that is asked here.
    pub(crate) fn here() -> Self {
        Self { own: true, ..Self::default() }
    }

    /// The next piece, with its place.
    pub(crate) fn place(&mut self, turn: u32, delta: Delta) -> Piece {
        self.turn_to(turn);
        let (part, text) = self.part(&delta);
        let at = part.units;
        part.push(text);
        Piece { turn, at, delta }
    }

    /// A piece that has its place already. False when something before it is missing, and it was not taken in.
    pub(crate) fn take_in(&mut self, piece: &Piece) -> bool {
        self.turn_to(piece.turn);
        let (part, text) = self.part(&piece.delta);
        if piece.at == 0 {
            *part = Part::default();
        }
        // It may begin with what was heard already: whoever asked for the whole is told both.
        let Some(known) = part.units.checked_sub(piece.at) else { return false };
        part.push(beyond(text, known));
        true
    }

    /// All of it.
    pub(crate) fn so_far(&self) -> Vec<Piece> {
        let thinking = Delta::Thinking(self.thinking.said.clone());
        let parts = [(self.thinking.units, thinking), (self.text.units, Delta::Text(self.text.said.clone()))];
        let said = parts.into_iter().filter(|(units, _)| *units > 0);
        said.map(|(_, delta)| Piece { turn: self.turn, at: 0, delta }).collect()
    }

    /// The turn it is of.
    pub(crate) const fn turn(&self) -> u32 {
        self.turn
    }

    fn turn_to(&mut self, turn: u32) {
        if turn != self.turn {
            *self = Self { turn, own: self.own, ..Self::default() };
        }
    }

    fn part<'a>(&mut self, delta: &'a Delta) -> (&mut Part, &'a str) {
        match delta {
            Delta::Text(text) => (&mut self.text, text),
            Delta::Thinking(text) => (&mut self.thinking, text),
        }
    }
}

impl Part {
    fn push(&mut self, text: &str) {
        self.said.push_str(text);
        self.units += units(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Delta {
        Delta::Text(text.to_owned())
    }

    #[test]
    fn whoever_comes_late_hears_the_whole_turn_and_only_that() {
        let mut spoken = Spoken::default();
        spoken.place(1, text("old"));
        let first = spoken.place(2, text("hé 🙂 "));
        spoken.place(2, Delta::Thinking("hm".to_owned()));
        let second = spoken.place(2, text("there"));
        assert_eq!((first.at, second.at), (0, 6), "as many units as a page counts");
        let told = spoken.so_far();
        let thinking = Piece { turn: 2, at: 0, delta: Delta::Thinking("hm".to_owned()) };
        assert_eq!(told, [thinking, Piece { turn: 2, at: 0, delta: text("hé 🙂 there") }]);

        let mut heard = Spoken::default();
        assert!(!heard.take_in(&second), "its beginning was not heard");
        assert!(told.iter().all(|piece| heard.take_in(piece)), "the whole is heard afresh");
        assert!(heard.take_in(&second), "it is in the whole already");
        assert_eq!(heard.so_far(), spoken.so_far());
        let third = spoken.place(2, text("!"));
        let both = Piece { delta: text("there!"), ..second };
        assert!(heard.take_in(&both), "it begins with what was heard");
        assert!(heard.take_in(&third));
        assert_eq!(heard.so_far(), spoken.so_far());
    }
}
