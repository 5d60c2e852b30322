//! What holds for every run that could ever be: runs are played by rolling dice, and cut, reread, shuffled and forged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use adjutant_core::content::Content;
use adjutant_core::message::{Message, Part, Role};
use adjutant_core::run::event::{Event, RunStarted};
use adjutant_core::run::state::State;
use adjutant_core::run::status::Status;
use adjutant_core::run::step::{Step, step};
use adjutant_core::run::transcript;
use adjutant_core::time::Time;
use proptest::prelude::*;

use crate::given::{START, Story, start};
use crate::play::{Mood, Player, dice, small};

const WINDOWS: [u64; 7] = [0, 150, 400, 900, 2500, 12_000, 400_000];

fn moods() -> impl Strategy<Value = Mood> {
    prop_oneof![Just(Mood::Finishing), Just(Mood::Restless), Just(Mood::Stubborn)]
}

/// The states of a log, from before its first event to after its last.
fn prefixes(log: &[(Event, Time)]) -> Vec<State> {
    let mut state = State::default();
    let mut states = vec![state.clone()];
    for (event, time) in log {
        state.apply(event, state.seq + 1, *time).unwrap();
        states.push(state.clone());
    }
    states
}

fn with_window(state: &State, window: u64) -> State {
    let mut state = state.clone();
    if let Some(start) = &mut state.start {
        start.limits.context_bytes = window;
    }
    state
}

/// The last message of the user, without notes put before it.
fn task(messages: &[Message]) -> Option<&Part> {
    messages.iter().rev().find(|message| message.role == Role::User)?.parts.last()
}

fn calls(messages: &[Message]) -> Vec<&Part> {
    messages.iter().flat_map(|message| &message.parts).filter(|part| matches!(part, Part::Call { .. })).collect()
}

/// Whatever is left out: a provider accepts the rest, it fits, and the task is in it.
fn check_requests(state: &State, base: &[Message]) -> Result<(), TestCaseError> {
    let tools = Arc::default();
    let (whole, dropped) = transcript::request(&with_window(state, u64::MAX), base, &tools).unwrap();
    prop_assert_eq!(transcript::check(&whole.messages), Ok(()));
    prop_assert_eq!(dropped, 0);
    let fixed = state.start.as_ref().map_or(0, |start| start.system_prompt.len() + start.tools.len());
    let mut fitted_before = false;
    for window in WINDOWS {
        match transcript::request(&with_window(state, window), base, &tools) {
            Ok((request, _)) if state.start.is_some() => {
                let messages = &request.messages;
                prop_assert_eq!(transcript::check(messages), Ok(()), "window {}", window);
                prop_assert!(transcript::size(messages) + fixed <= window, "window {}", window);
                prop_assert_eq!(task(messages), task(&whole.messages), "window {}", window);
                if has_fresh_results(&whole.messages) {
                    prop_assert!(calls(messages).last() == calls(&whole.messages).last(), "window {}", window);
                }
                fitted_before = true;
            }
            Ok(_) => {}
            Err(overflow) => {
                prop_assert!(!fitted_before, "what fits a smaller window fits a larger one");
                prop_assert!(overflow.needed > window && overflow.window == window);
            }
        }
    }
    Ok(())
}

/// Whether the model is about to read results: then the newest of them are never left out.
fn has_fresh_results(messages: &[Message]) -> bool {
    messages.last().is_some_and(|last| last.role == Role::Tool)
}

#[test]
fn the_dice_reach_every_kind_of_event_and_every_status() {
    let mut kinds = BTreeSet::new();
    let mut statuses = BTreeSet::new();
    let mut seed = 1_u64;
    for _ in 0..300 {
        let mut die = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            u16::try_from(seed >> 48).unwrap()
        };
        let rolls = (0..240).map(|_| die()).collect();
        let story = Player::played(small(6, 9), rolls, Mood::Finishing);
        kinds.extend(story.log.iter().map(|(event, _)| event.kind()));
        statuses.extend(prefixes(&story.log).iter().map(|state| state.status().word()));
    }
    assert_eq!(kinds, Event::KINDS.iter().copied().collect());
    assert_eq!(statuses, Status::ALL.iter().map(|status| status.word()).collect());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_run_comes_to_an_end_and_every_call_has_one_result(rolls in dice(), mood in moods()) {
        let story = Player::played(small(6, 9), rolls, mood);
        prop_assert!(story.state.end.is_some());
        let mut results: BTreeMap<&str, u32> = BTreeMap::new();
        let mut proposed = 0;
        for (event, _) in &story.log {
            proposed += usize::from(matches!(event, Event::CallProposed(_)));
            if let Event::CallEnded(body) = event {
                *results.entry(body.call.as_str()).or_default() += 1;
            }
        }
        prop_assert!(results.values().all(|count| *count == 1));
        // What a lost answer proposed was never made.
        prop_assert!(results.len() <= proposed);
        prop_assert_eq!(results.len(), story.state.calls().count());
        prop_assert!(story.state.turns.len() <= 6);
        prop_assert!(story.state.calls().filter(|call| call.started.is_some()).count() <= 9);
    }

    #[test]
    fn any_prefix_of_any_run_gives_a_transcript_a_provider_accepts(rolls in dice(), mood in moods()) {
        let story = Player::played(start(), rolls, mood);
        for state in prefixes(&story.log) {
            prop_assert_eq!(transcript::check(&transcript::messages(&state)), Ok(()));
        }
    }

    #[test]
    fn any_request_on_any_base_is_accepted_fits_and_holds_the_task(
        older in dice(), old in dice(), rolls in dice(), cut in any::<prop::sample::Index>(),
        old_cut in any::<prop::sample::Index>(), silent in any::<bool>(), old_silent in any::<bool>(),
    ) {
        let begin = |silent: bool| RunStarted { user_message: (!silent).then(|| Content::from("Do it.")), ..start() };
        let before = Player::played(start(), older, Mood::Finishing);
        let base = Player::played(begin(old_silent), old, Mood::Finishing);
        let bases = prefixes(&base.log);
        let near = transcript::messages(&bases[old_cut.index(bases.len())]);
        let far = [transcript::messages(&before.state), near.clone()].concat();
        let own = Player::played(begin(silent), rolls, Mood::Finishing);
        let states = prefixes(&own.log);
        let state = &states[cut.index(states.len())];
        check_requests(state, &far)?;
        // A base is read only as far as the window reaches, so it may begin anywhere between two runs.
        check_requests(state, &near)?;
        check_requests(state, &[])?;
    }

    #[test]
    fn a_log_read_back_folds_to_the_same_state(rolls in dice(), mood in moods(), salt in any::<[u8; 16]>()) {
        let story = Player::played(start(), rolls, mood);
        let mut read_back = State::default();
        for (event, time) in &story.log {
            let body = event.encode(salt).unwrap();
            let digits: String = salt.iter().map(|byte| format!("{byte:02x}")).collect();
            prop_assert!(body.starts_with(format!("{{\"salt\":\"{digits}\",").as_bytes()), "the salt comes first");
            let read = Event::decode(event.kind(), &body).unwrap();
            prop_assert_eq!(&read, event);
            prop_assert_eq!(read.encode(salt).unwrap(), body, "what is read is what was written");
            prop_assert!(Event::KINDS.contains(&event.kind()));
            read_back.apply(&read, read_back.seq + 1, *time).unwrap();
        }
        prop_assert_eq!(&read_back, &story.state);
        prop_assert_eq!(step(&read_back, story.now), Step::Done);
        prop_assert!(prefixes(&story.log).last() == Some(&story.state));
    }

    #[test]
    fn what_comes_next_does_not_depend_on_how_often_one_asks(rolls in dice(), later in 0..5000_i64) {
        let story = Player::played(start(), rolls, Mood::Finishing);
        for state in prefixes(&story.log) {
            let now = Time::from_millis(state.updated_at.millis() + later);
            prop_assert_eq!(step(&state, now), step(&state, now));
            if let Step::Wait(Some(until)) = step(&state, now) {
                prop_assert!(until > now);
            }
        }
    }

    #[test]
    fn events_in_any_order_never_panic_and_a_refused_one_changes_nothing(
        rolls in dice(), mood in moods(), order in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..120),
    ) {
        let story = Player::played(small(4, 9), rolls, mood);
        let mut state = State::default();
        let first = (story.log[0].0.clone(), 0_u8);
        let garbage = order.iter().map(|(index, twist)| (story.log[index.index(story.log.len())].0.clone(), *twist));
        for (event, twist) in std::iter::once(first).chain(garbage) {
            let event = twisted(event, twist, &story);
            let before = state.clone();
            let (seq, time) = (state.seq + 1, Time::from_millis(START.millis() + i64::from(twist)));
            if state.apply(&event, seq, time).is_err() {
                prop_assert_eq!(&state, &before);
            }
            prop_assert!(state.labels.covers(before.labels));
            prop_assert_eq!(transcript::check(&transcript::messages(&state)), Ok(()));
            let _ = (step(&state, time), state.status(), state.due());
        }
    }

    #[test]
    fn a_log_that_was_cut_anywhere_can_be_driven_to_its_end(
        rolls in dice(), more in dice(), cut in any::<prop::sample::Index>(), mood in moods(),
    ) {
        let story = Player::played(small(6, 9), rolls, mood);
        let at = 1 + cut.index(story.log.len());
        let mut player = Player::new(small(6, 9), more, Mood::Finishing);
        player.story = Story { state: State::default(), log: Vec::new(), now: START };
        for (event, time) in &story.log[..at] {
            player.story.now = *time;
            player.story.add(event.clone());
        }
        player.resume(at);
        prop_assert!(player.story.state.end.is_some());
    }
}

/// The same event about something else: another call, another approval, another turn or attempt.
fn twisted(mut event: Event, twist: u8, story: &Story) -> Event {
    if twist < 64 {
        return event;
    }
    let calls: Vec<_> = story.state.calls().map(|call| call.id.clone()).collect();
    let approvals: Vec<_> = story.state.approvals.keys().copied().collect();
    let call = (!calls.is_empty()).then(|| calls[usize::from(twist) % calls.len()].clone());
    let approval = (!approvals.is_empty()).then(|| approvals[usize::from(twist) % approvals.len()]);
    match &mut event {
        Event::ModelRequested(body) => (body.turn, body.attempt) = (body.turn ^ 1, u32::from(twist)),
        Event::ModelAnswered(body) => body.calls = u32::from(twist % 4),
        Event::ModelFailed(body) => body.turn = u32::MAX,
        Event::Thought(body) => body.turn ^= 3,
        Event::Said(body) => body.turn ^= 3,
        Event::CallProposed(body) => body.call = call.unwrap_or_else(|| body.call.clone()),
        Event::CallJudged(body) => body.call = call.unwrap_or_else(|| body.call.clone()),
        Event::ApprovalAsked(body) => body.call = call.unwrap_or_else(|| body.call.clone()),
        Event::ApprovalDecided(body) => body.approval = approval.unwrap_or(body.approval),
        Event::CallStarted(body) => body.attempt = u32::from(twist) * u32::from(twist),
        Event::CallEnded(body) => {
            (body.call, body.allowed) = (call.unwrap_or_else(|| body.call.clone()), !body.allowed)
        }
        Event::CallInDoubt(body) => body.call = call.unwrap_or_else(|| body.call.clone()),
        Event::InDoubtResolved(body) => body.approval = approval.unwrap_or(body.approval),
        Event::RunStarted(_)
        | Event::LabelsRaised(_)
        | Event::ContentFiltered(_)
        | Event::BudgetAlerted(_)
        | Event::Paused(_)
        | Event::Resumed(_)
        | Event::CancelAsked(_)
        | Event::Cancelled(_)
        | Event::Errored(_)
        | Event::RunEnded(_) => {}
    }
    event
}
