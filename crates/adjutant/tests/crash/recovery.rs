//! Going on after a crash, as a person would: resume the run, say what became of a call if that is asked, and go on.

use serde_json::Value;

use crate::bell::Seen;
use crate::checks::{Told, at_the_end, right_after_a_crash};
use crate::house::{Done, House, RUNG};

/// How a run came to its end after a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ending {
    /// Nothing had been recorded: the task was given again.
    StartedAgain,
    /// It had been over already.
    WasOver,
    /// It went on by itself.
    WentOn,
    /// A person said that the bell had been rung.
    SaidHappened,
    /// A person said that the bell had not been rung, and it was.
    SaidRun,
}

impl Ending {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::StartedAgain => "nothing recorded, started again",
            Self::WasOver => "was over already",
            Self::WentOn => "went on by itself",
            Self::SaidHappened => "in doubt, happened",
            Self::SaidRun => "in doubt, run",
        }
    }
}

/// Brings a run that was killed to its end and checks everything on the way.
pub(crate) async fn recover(house: &House) -> (Ending, Told) {
    house.lease_runs_out().await;
    let crashed = Seen::look(house);
    let told = Told::read(house).await;
    right_after_a_crash(told.as_ref(), &crashed);
    let (ending, told) = match told {
        None => (Ending::StartedAgain, Told::heard(&Done::of(house.start()).await)),
        Some(told) if told.is_over() => (Ending::WasOver, Told::heard(&watch(house, &told).await)),
        Some(told) => go_on(house, &told, &crashed).await,
    };
    at_the_end(house, &told, &crashed).await;
    (ending, told)
}

/// Follows a run from its beginning, and drives it.
pub(crate) async fn watch(house: &House, told: &Told) -> Done {
    house.adjutant(&["runs", "watch", &told.run, "--json", "--approve", "fail"]).await
}

/// A call whose end is not recorded is in doubt if only a person can tell, and only then.
async fn go_on(house: &House, told: &Told, crashed: &Seen) -> (Ending, Told) {
    let must_ask = told.started("ring_bell") && !told.ended("ring_bell");
    let watched = watch(house, told).await;
    if !must_ask {
        return (Ending::WentOn, Told::heard(&watched));
    }
    assert_eq!(watched.status.code(), Some(5), "{watched}");
    let item = doubt(house).await.unwrap();
    let shown = house.document(&["inbox", "show", &item]).await;
    assert_eq!(shown["arguments"]["text"], RUNG, "whoever says that it is to run sees what would: {shown}");
    // Asking is not doing: the bell is as it was when the process died.
    assert_eq!(Seen::look(house).rings, crashed.rings);
    let (word, ending) = match crashed.rings {
        0 => ("run", Ending::SaidRun),
        _ => ("happened", Ending::SaidHappened),
    };
    house.document(&["inbox", "resolve", &item, word]).await;
    (ending, Told::heard(&watch(house, told).await))
}

/// The one thing that waits for a person, if anything does: it must be about the bell.
pub(crate) async fn doubt(house: &House) -> Option<String> {
    let inbox = house.document(&["inbox", "ls"]).await;
    let items: &Vec<Value> = inbox["data"].as_array().unwrap();
    assert!(items.len() <= 1, "{inbox}");
    let item = items.first()?;
    assert_eq!((item["kind"].as_str(), item["tool_name"].as_str()), (Some("in_doubt"), Some("ring_bell")), "{item}");
    Some(item["id"].as_str().unwrap().to_owned())
}
