//! What may be asked of a run: accepted as events that can follow, or refused with the reason.

use adjutant_core::content::Hash;
use adjutant_core::guard::judge::Decision as Verdict;
use adjutant_core::run::command::{Command, Decide, Refusal, accept};
use adjutant_core::run::event::{
    Actor, CancelAsked, Decision, DoubtOutcome, EndStatus, Event, GrantScope, PauseReason, Paused,
};
use adjutant_core::run::status::Status;

use crate::given::{PATIENCE, Story, approval_id, at, call_id, person};

impl Story {
    /// Asks something of the run; what is accepted is recorded.
    fn command(&mut self, command: &Command) -> Result<Vec<&'static str>, Refusal> {
        let events = accept(&self.state, command, self.now)?;
        let kinds = events.iter().map(Event::kind).collect();
        for event in events {
            self.add(event);
        }
        Ok(kinds)
    }

    fn told(&mut self, decide: Decide) -> Result<Vec<&'static str>, Refusal> {
        self.command(&Command::Decide(decide))
    }
}

fn held() -> Story {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md")]).holds("a", 1);
    story
}

fn cancel() -> Command {
    Command::Cancel { by: person(), reason: "enough".to_owned() }
}

fn resolve(outcome: DoubtOutcome) -> Command {
    Command::Resolve { call: call_id("a"), outcome, result: Some("sent".to_owned()), by: person() }
}

#[test]
fn a_decision_is_recorded_once() {
    let mut story = held();
    assert_eq!(story.told(Story::decide(1, Decision::Approve)), Ok(vec!["approval_decided"]));
    let Err(Refusal::AlreadyDecided(decided)) = story.told(Story::decide(1, Decision::Reject)) else { panic!() };
    assert_eq!((decided.decision, decided.by), (Decision::Approve, person()));
}

#[test]
fn an_unknown_approval_is_refused_and_so_is_one_about_a_doubt() {
    let mut story = held();
    assert_eq!(story.told(Story::decide(9, Decision::Approve)), Err(Refusal::NoSuchApproval));
    let mut story = Story::new();
    story.writes(&[("a", "/a.md")]).allows("a").starts("a").doubts("a", 1);
    assert_eq!(story.told(Story::decide(1, Decision::Approve)), Err(Refusal::NoSuchApproval));
}

#[test]
fn a_decision_after_the_expiry_is_refused_even_before_the_expiry_is_recorded() {
    let mut story = held();
    story.at(PATIENCE - 1);
    assert!(story.clone().told(Story::decide(1, Decision::Approve)).is_ok());
    story.at(PATIENCE);
    assert_eq!(story.told(Story::decide(1, Decision::Approve)), Err(Refusal::Expired));
    assert!(story.told(Decide { by: Actor::Clock, ..Story::decide(1, Decision::Reject) }).is_ok());
    assert_eq!(story.told(Story::decide(1, Decision::Approve)), Err(Refusal::Expired));
}

#[test]
fn a_decision_about_something_else_than_what_would_run_is_refused() {
    let mut story = held();
    let seen = |fingerprint| Decide { fingerprint: Some(fingerprint), ..Story::decide(1, Decision::Approve) };
    assert_eq!(story.told(seen(Hash::of(b"another"))), Err(Refusal::StaleFingerprint));
    assert!(story.told(seen(Hash::of(&[1]))).is_ok());
}

#[test]
fn a_question_that_was_replaced_or_settled_is_closed() {
    let mut story = held();
    let again = story.question("a", 2);
    story.add(again);
    assert_eq!(story.told(Story::decide(1, Decision::Approve)), Err(Refusal::Superseded));
    story.add(CancelAsked { by: person(), reason: "enough".to_owned() });
    let mut ended = story.result("a", "Not run.");
    (ended.allowed, ended.is_error) = (false, true);
    story.add(ended).finishes(EndStatus::Cancelled);
    assert_eq!(story.told(Story::decide(2, Decision::Approve)), Err(Refusal::Superseded));
}

#[test]
fn a_scope_that_was_not_offered_is_refused() {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md")]);
    story.judged("a", crate::given::verdict(adjutant_core::guard::judge::Decision::Ask, "requires_approval"));
    let mut question = story.question("a", 1);
    question.allowed_scopes = vec![GrantScope::Once];
    story.add(question);
    let wide = |decision| Decide { scope: GrantScope::Run, ..Story::decide(1, decision) };
    assert_eq!(story.told(wide(Decision::Approve)), Err(Refusal::ScopeNotOffered));
    assert_eq!(held().told(wide(Decision::Approve)), Ok(vec!["approval_decided"]));
    let wider = |scope| Decide { scope, ..Story::decide(1, Decision::Approve) };
    for scope in [GrantScope::Chat, GrantScope::Always] {
        assert_eq!(story.told(wider(scope)), Err(Refusal::ScopeNotOffered), "{scope:?}");
    }
    for decision in [Decision::Reject, Decision::Stop, Decision::Respond, Decision::Edit] {
        assert_eq!(held().told(wide(decision)), Err(Refusal::ScopeNotOffered), "only a plain yes reaches further");
    }
}

#[test]
fn a_yes_that_lasts_writes_one_narrow_rule_that_ends() {
    let rule = |scope, lasts: Option<u64>| {
        let lasts = lasts.map(std::time::Duration::from_secs);
        let decide = Decide { scope, lasts, ..Story::decide(1, Decision::Approve) };
        let story = held();
        let events = accept(&story.state, &Command::Decide(decide), story.now)?;
        let [Event::ApprovalDecided(decided)] = events.as_slice() else { panic!("{events:?}") };
        Ok((decided.rule.clone().map(|rule| *rule), story))
    };
    for scope in [GrantScope::Run, GrantScope::Chat, GrantScope::Always] {
        let (written, story) = rule(scope, None).unwrap();
        let (written, start) = (written.unwrap(), story.state.start.clone().unwrap());
        assert_eq!(written.id.to_string()[5..], crate::given::approval_id(1).to_string()[9..]);
        assert_eq!((written.decision, written.tool.as_str()), (Verdict::Allow, "write_file"));
        assert_eq!((written.agent, written.when), (Some(start.agent), story.question("a", 1).place.unwrap()));
        assert_eq!(written.run, (scope == GrantScope::Run).then_some(start.run), "{scope:?}");
        assert_eq!(written.chat, (scope == GrantScope::Chat).then_some(start.chat), "{scope:?}");
        assert_eq!(written.expires_at, Some(story.now.after(adjutant_core::limits::LASTING_YES)));
        let (shorter, story) = rule(scope, Some(3600)).unwrap();
        assert_eq!(shorter.unwrap().expires_at, Some(story.now.after(std::time::Duration::from_secs(3600))));
    }
    assert_eq!(rule(GrantScope::Once, None).unwrap().0, None);
    for (scope, lasts) in [(GrantScope::Once, 3600), (GrantScope::Always, 59), (GrantScope::Chat, 31 * 86_400)] {
        assert!(matches!(rule(scope, Some(lasts)).map(drop), Err(Refusal::BadSpan(_))), "{scope:?} {lasts}");
    }
}

#[test]
fn only_a_person_says_a_yes_that_lasts() {
    let by = Actor::Rule("a script".to_owned());
    let decide = Decide { scope: GrantScope::Always, by, ..Story::decide(1, Decision::Approve) };
    assert_eq!(held().told(decide), Err(Refusal::ScopeNotOffered));
}

#[test]
fn an_edit_needs_a_json_object_and_nothing_else_takes_one() {
    let with = |decision, arguments: Option<&str>| {
        held().told(Decide { arguments: arguments.map(str::to_owned), ..Story::decide(1, decision) })
    };
    assert_eq!(with(Decision::Edit, Some("{\"path\":\"/b.md\"}")), Ok(vec!["approval_decided"]));
    for bad in [None, Some("[]"), Some("{\"a\":1,\"a\":2}"), Some("{} x"), Some("")] {
        assert!(matches!(with(Decision::Edit, bad), Err(Refusal::BadArguments(_))), "{bad:?}");
    }
    for decision in [Decision::Approve, Decision::Reject, Decision::Stop] {
        assert!(matches!(with(decision, Some("{}")), Err(Refusal::BadArguments(_))), "{decision:?}");
    }
}

#[test]
fn a_response_needs_a_message() {
    let with = |message: Option<&str>| {
        held().told(Decide { message: message.map(str::to_owned), ..Story::decide(1, Decision::Respond) })
    };
    assert_eq!(with(None), Err(Refusal::NoMessage));
    assert_eq!(with(Some("")), Err(Refusal::NoMessage));
    assert_eq!(with(Some("use /b")), Ok(vec!["approval_decided"]));
}

#[test]
fn a_stop_decides_and_cancels() {
    let mut story = held();
    assert_eq!(story.told(Story::decide(1, Decision::Stop)), Ok(vec!["approval_decided", "cancel_asked"]));
    assert_eq!(story.state.status(), Status::Cancelling);
}

#[test]
fn a_doubt_is_resolved_once() {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md")]).allows("a").starts("a");
    assert_eq!(story.command(&resolve(DoubtOutcome::Happened)), Err(Refusal::NotInDoubt));
    story.doubts("a", 1);
    assert_eq!(story.command(&resolve(DoubtOutcome::Happened)), Ok(vec!["in_doubt_resolved"]));
    assert_eq!(story.state.approvals[&approval_id(1)].resolved.as_ref().unwrap().0.by, person());
    assert_eq!(story.command(&resolve(DoubtOutcome::Run)), Err(Refusal::NotInDoubt));
    story.settles();
    assert_eq!(story.command(&resolve(DoubtOutcome::Run)), Err(Refusal::NotInDoubt));
}

#[test]
fn cancelling_twice_or_too_late_is_accepted_and_records_nothing() {
    let mut story = Story::new();
    assert_eq!(story.command(&cancel()), Ok(vec!["cancel_asked"]));
    assert_eq!(story.command(&cancel()), Ok(vec![]));
    story.finishes(EndStatus::Cancelled);
    assert_eq!(story.command(&cancel()), Ok(vec![]));
}

#[test]
fn pausing_twice_records_nothing_and_only_a_held_run_is_resumed() {
    let mut story = Story::new();
    let resume = Command::Resume { by: person() };
    assert_eq!(story.command(&resume), Err(Refusal::NotPaused));
    assert_eq!(story.command(&Command::Pause { by: person() }), Ok(vec!["paused"]));
    assert_eq!(story.command(&Command::Pause { by: person() }), Ok(vec![]));
    assert_eq!(story.command(&resume), Ok(vec!["resumed"]));
    story.says("Done.").finishes(EndStatus::Completed);
    assert_eq!(story.command(&Command::Pause { by: person() }), Err(Refusal::Ended(Status::Completed)));
    assert_eq!(story.command(&resume), Err(Refusal::Ended(Status::Completed)));
}

#[test]
fn a_persons_pause_outlasts_one_that_would_end_by_itself() {
    let mut story = Story::new();
    story.add(Paused { reason: PauseReason::Rate, until: Some(at(50)), by: None, ask: None });
    assert_eq!(story.command(&Command::Pause { by: person() }), Ok(vec!["paused"]));
    assert_eq!((story.state.status(), story.state.due()), (Status::Paused, None));
}
