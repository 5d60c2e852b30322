//! Answers of a SQLite file that are kept ready: nobody else writes to it, so what people set up (agents, rules, keys, budgets,
//! workspaces) is the same until this process writes something other than the work of runs.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::db::Text;
use crate::value::{Arg, Args, Row};

/// Bytes of the answers and their questions that are kept at the most; with more than these, all are read again.
const BYTES: usize = 16 * 1024 * 1024;
/// Bytes of one of them: a name that somebody asks for may be as long as a request.
const ANSWER_BYTES: usize = 256 * 1024;
/// About what an answer takes beside its texts.
const OVERHEAD: usize = 256;

/// What a transaction writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writes {
    /// Anything: nothing that is kept counts afterwards.
    Anything,
    /// What runs do, and what is noted beside them: no answer that is kept is read from that.
    Work,
}

/// What is kept, since something was last set up.
#[derive(Debug, Default)]
pub(crate) struct Kept(Mutex<Since>);

#[derive(Debug, Default)]
struct Since {
    /// How often something was set up.
    changes: u64,
    answers: HashMap<(Text, Args), Vec<Row>>,
    /// About the bytes that they take.
    bytes: usize,
}

/// A moment between two changes, before which nothing is kept that was read after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment(u64);

impl Kept {
    /// The answer, or the moment at which it has to be asked for.
    pub(crate) fn get(&self, question: &(Text, Args)) -> Result<Vec<Row>, Moment> {
        let since = self.since();
        since.answers.get(question).cloned().ok_or(Moment(since.changes))
    }

    /// Keeps an answer, unless something was set up since its moment: then nobody knows whether it was read before or after.
    pub(crate) fn keep(&self, question: (Text, Args), answer: &[Row], moment: Moment) {
        let bytes =
            OVERHEAD + question.1.iter().map(Arg::bytes).sum::<usize>() + answer.iter().map(Row::bytes).sum::<usize>();
        let mut since = self.since();
        if since.changes != moment.0 || bytes > ANSWER_BYTES {
            return;
        }
        if since.bytes + bytes > BYTES {
            since.forget();
        }
        since.bytes += bytes;
        since.answers.insert(question, answer.to_vec());
    }

    /// Something was written, or may have been.
    pub(crate) fn wrote(&self, what: Writes) {
        match what {
            Writes::Work => {}
            Writes::Anything => {
                let mut since = self.since();
                since.changes += 1;
                since.forget();
            }
        }
    }

    fn since(&self) -> MutexGuard<'_, Since> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Since {
    fn forget(&mut self) {
        self.answers.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Value, args};

    fn answer() -> Vec<Row> {
        vec![Row::new(vec![Value::Int(1)])]
    }

    #[test]
    fn an_answer_is_kept_until_something_is_set_up() {
        let (kept, question) = (Kept::default(), || (Text::from("SELECT $1"), args![1_i64]));
        let moment = kept.get(&question()).unwrap_err();
        kept.keep(question(), &answer(), moment);
        assert_eq!(kept.get(&question()).unwrap().len(), 1);
        assert!(kept.get(&(Text::from("SELECT $1"), args![2_i64])).is_err(), "other values are another question");
        kept.wrote(Writes::Work);
        assert!(kept.get(&question()).is_ok());
        kept.wrote(Writes::Anything);
        assert!(kept.get(&question()).is_err());
    }

    #[test]
    fn what_was_read_while_something_was_set_up_is_not_kept() {
        let (kept, question) = (Kept::default(), || (Text::from("SELECT 1"), args![]));
        let moment = kept.get(&question()).unwrap_err();
        kept.wrote(Writes::Anything);
        kept.keep(question(), &answer(), moment);
        assert!(kept.get(&question()).is_err());
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let kept = Kept::default();
        let keep = |name: String| {
            let question = || (Text::from("SELECT $1"), args![name.as_str()]);
            let moment = kept.get(&question()).unwrap_err();
            kept.keep(question(), &[], moment);
            kept.get(&question()).is_ok()
        };
        assert!(!keep("x".repeat(ANSWER_BYTES)), "an answer to a question that long is not kept");
        for number in 0..BYTES / 50_000 * 2 {
            assert!(keep(format!("{number:0>50000}")));
            assert!(kept.since().answers.len() <= BYTES / 50_000);
        }
    }
}
