//! Why a command did not do what it was asked, in the words a person reads and with the number a script reads. Every text
//! says what happened, what was not done, and what to do next.

use adjutant_core::run::command::Refusal;
use adjutant_engine::EngineError;
use adjutant_engine::models::ModelError;
use adjutant_engine::store::StoreError;
use adjutant_engine::tools::FileError;
use serde_json::{Value, json};
use std::borrow::Cow;

use crate::cli::words::ours;

/// What the shell is told: one number per reaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what was asked.
    Done = 0,
    /// Something else went wrong.
    Other = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    /// The run ended without an answer.
    RunFailed = 3,
    /// Not signed in, or not allowed.
    Forbidden = 4,
    /// The run waits for a person.
    NeedsPerson = 5,
    /// It was denied, rejected or stopped.
    Rejected = 6,
    /// A budget or a rate is used up.
    Spent = 7,
    /// A server, provider or database cannot be reached.
    Unreachable = 8,
    /// A replay diverged, or a chain is broken.
    Broken = 9,
    /// A person pressed Ctrl-C.
    Interrupted = 130,
}

/// A command that did not do what it was asked.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// The machine's word.
    pub(crate) code: Cow<'static, str>,
    /// What happened, and what was not done.
    pub(crate) message: String,
    /// What to do next.
    pub(crate) hint: Option<String>,
    /// The parts of what is wrong, where there are several.
    pub(crate) problems: Vec<String>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { exit, code: code.into(), message: message.into(), hint: None, problems: Vec::new() }
    }

    /// The command line or the configuration is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, "validation_failed", message)
    }

    /// Anything that has no reaction of its own.
    pub(crate) fn other(message: impl Into<String>) -> Self {
        Self::new(Exit::Other, "internal", message)
    }

    fn content_blocked(error: &EngineError) -> Self {
        let what = format!("{} Nothing was started, and it was recorded.", sentence(&error.to_string()));
        Self::new(Exit::Rejected, "content_blocked", what)
            .hint("say it without that, or change content_filter in the agent's file")
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(Exit::Other, "not_found", message)
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    pub(crate) fn problems(self, problems: Vec<String>) -> Self {
        Self { problems, ..self }
    }

    /// The failure as `application/problem+json`.
    pub(crate) fn problem(&self) -> Value {
        let mut problem =
            json!({"type": "about:blank", "title": title(&self.code), "detail": self.message, "code": self.code});
        if let Some(hint) = &self.hint {
            problem["hint"] = json!(ours(hint));
        }
        if !self.problems.is_empty() {
            let errors: Vec<_> = self.problems.iter().map(|detail| json!({"detail": detail})).collect();
            problem["errors"] = json!(errors);
        }
        problem
    }

    /// The failure as lines for a person.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("error: {}", self.message)];
        lines.extend(self.problems.iter().map(|problem| format!("  {problem}")));
        lines.extend(self.hint.iter().map(|hint| format!("hint: {}", ours(hint))));
        lines
    }
}

/// The code with its first letter raised and its words apart.
pub(crate) fn title(code: &str) -> String {
    let words = code.replace('_', " ");
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

impl From<EngineError> for Failure {
    #[allow(clippy::too_many_lines, reason = "one arm for each thing that can go wrong")]
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::NotFound { what, name } => not_found(what, &name),
            EngineError::Refused(refusal) => refusal.into(),
            EngineError::InUse { what, run } => {
                Self::new(Exit::Other, "busy", format!("The {what} is in use by {run}. Nothing was taken away."))
                    .hint(format!("adjutant runs cancel {run}, or wait for it"))
            }
            EngineError::Busy(run) => {
                Self::new(Exit::Other, "busy", format!("The chat is busy with {run}. Nothing was started."))
                    .hint(format!("wait for it (adjutant runs watch {run}), or stop it (adjutant runs cancel {run})"))
            }
            EngineError::Unauthenticated => Self::new(
                Exit::Forbidden,
                "unauthenticated",
                format!("{} Nothing was done.", sentence(&error.to_string())),
            ),
            EngineError::TooMany { retry_after } => Self::new(
                Exit::Spent,
                "rate_limited",
                format!("It was tried too often. Nothing was done; wait {} s.", retry_after.as_secs() + 1),
            ),
            EngineError::Taken { .. } => {
                Self::new(Exit::Other, "conflict", format!("{} Nothing was written.", sentence(&error.to_string())))
            }
            EngineError::AgentInactive(slug) => Self::new(
                Exit::Other,
                "agent_inactive",
                format!("The agent `{slug}` is switched off. Nothing was started."),
            )
            .hint(format!(
                "adjutant agents enable {slug} switches it on, or choose another agent (adjutant agents ls)"
            )),
            EngineError::ContentBlocked { .. } => Self::content_blocked(&error),
            EngineError::OutOfScope { .. } => Self::new(
                Exit::Rejected,
                "scope_violation",
                format!("{} Nothing was done.", sentence(&error.to_string())),
            )
            .hint("choose another notebook, or add it to scope.notebooks of the agent"),
            EngineError::RateLimited { ref agent, wait } => {
                let seconds = wait.as_millis().div_ceil(1000);
                let what =
                    format!("The agent `{agent}` has used up its model calls of this hour. Nothing was started.");
                Self::new(Exit::Spent, "rate_limited", what)
                    .hint(format!("try again in {seconds} s, or raise max_requests_per_hour in its file"))
            }
            EngineError::BudgetExhausted { whose, period, .. } => {
                let text = format!("{} Nothing was started.", sentence(&error.to_string()));
                Self::new(Exit::Spent, "budget_exhausted", text)
                    .hint(format!("raise the budget of the {whose} for the {period}, or wait"))
            }
            EngineError::PriceUnknown { .. } => {
                let text = format!("{} Nothing was asked.", sentence(&error.to_string()));
                Self::new(Exit::Spent, "price_unknown", text).hint(GIVE_PRICE)
            }
            EngineError::Invalid(why) => Self::usage(sentence(&why)),
            EngineError::InvalidAgent(problems) => Self::usage("The agent cannot be saved; it stays as it was.")
                .problems(problems.iter().map(ToString::to_string).collect()),
            EngineError::InvalidRule(problems) => {
                Self::usage("The rule cannot be saved. Nothing was written.").problems(problems)
            }
            EngineError::BadLog { run, why } => Self::new(
                Exit::Broken,
                "log_broken",
                format!("The log of {run} cannot be followed: {why}. The run is left as it is."),
            )
            .hint(format!("adjutant audit verify checks every log; adjutant runs export {run} keeps what can be read")),
            EngineError::Erased { run } => Self::new(
                Exit::Other,
                "erased",
                format!("What happened in {run} was erased. Its chain still verifies."),
            ),
            EngineError::Notebook { name, why } => Self::new(
                Exit::Other,
                "notebook_unavailable",
                format!("The notebook `{name}` cannot be opened: {why}. Nothing was read or written there."),
            )
            .hint("put its folder back where it was (adjutant doctor names it), then try again"),
            EngineError::File { path, why } => left(&path, &why),
            EngineError::Halted { reason } => halted(&reason),
            EngineError::Model(error) => provider(&error),
            EngineError::Store(error) => error.into(),
        }
    }
}

/// What helps where nobody knows what a model costs.
pub(crate) const GIVE_PRICE: &str = "give the price in the configuration (input_usd, output_usd of the provider), or let an \
                                     admin set allow_unpriced of the budget";

/// How everything goes on, in the words of the command line.
pub(crate) const LET_GO_ON: &str = "adjutant halt shows why; adjutant halt off lets it go on";

fn provider(error: &ModelError) -> Failure {
    let what = format!("{} Nothing was made.", sentence(&error.to_string()));
    match error {
        ModelError::UnknownModel { .. } | ModelError::Broken { .. } => Failure::usage(what),
        ModelError::Network { .. } | ModelError::Timeout { .. } => {
            Failure::new(Exit::Unreachable, "provider_timeout", what)
        }
        _ => Failure::new(Exit::Other, "provider_error", what),
    }
}

fn halted(reason: &str) -> Failure {
    Failure::new(Exit::Other, "halted", format!("Everything is stopped here: {reason}. Nothing was started."))
        .hint(LET_GO_ON)
}

fn left(path: &str, why: &FileError) -> Failure {
    Failure::new(Exit::Other, "file", format!("{path} was left as it is: {why}."))
}

fn not_found(what: &str, name: &str) -> Failure {
    let failure = Failure::not_found(format!("There is no {what} `{name}`."));
    Failure { hint: where_to_look(what).map(str::to_owned), ..failure }
}

/// The command that lists things of a kind.
pub(crate) fn where_to_look(what: &str) -> Option<&'static str> {
    Some(match what {
        "agent" => "adjutant agents ls shows the agents there are",
        "run" => "adjutant runs ls shows the runs there are",
        "approval" => "adjutant inbox shows what waits for you",
        "rule" => "adjutant rules ls shows the rules there are",
        "notebook" => "adjutant ws notebooks shows the notebooks there are",
        "workspace" => "adjutant ws ls shows the workspaces you are in",
        "key" => "adjutant keys shows the keys there are",
        "user" | "person" => "adjutant users ls shows who there is",
        "token" => "adjutant tokens ls shows your tokens",
        _ => return None,
    })
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let message = format!("{} Nothing was recorded.", sentence(&refusal.to_string()));
        match refusal {
            Refusal::NoSuchApproval => not_found("approval", "of this kind"),
            Refusal::AlreadyDecided(_) | Refusal::Superseded => Self::new(Exit::Other, "already_decided", message),
            Refusal::Expired => Self::new(Exit::Other, "expired", message),
            Refusal::StaleFingerprint => Self::new(Exit::Other, "stale_version", message),
            Refusal::ScopeNotOffered => Self::usage(message).hint("leave --for out"),
            Refusal::BadArguments(_) | Refusal::NoMessage | Refusal::BadSpan(_) => Self::usage(message),
            Refusal::Ended(_) | Refusal::NotInDoubt | Refusal::NotPaused => Self::new(Exit::Other, "conflict", message),
        }
    }
}

const WRONG_KEY: &str = "The database is sealed with another master key. Nothing was read or changed.";

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Stale { .. } => {
                Self::new(Exit::Other, "stale_version", "Somebody else was faster. Nothing was written.")
                    .hint("try again")
            }
            StoreError::Conflict(why) => {
                Self::new(Exit::Other, "conflict", format!("{} Nothing was written.", sentence(&why)))
            }
            StoreError::UsedUp(_) => Self::new(Exit::Spent, "rate_limited", "A rate is used up. Nothing was written.")
                .hint("try again in a minute"),
            StoreError::Overspent(_) => {
                Self::new(Exit::Spent, "budget_exhausted", "A budget is used up. Nothing was written.")
                    .hint("raise the budget, or wait until it comes back")
            }
            StoreError::NotFound => Self::not_found("There is no such thing in the database."),
            StoreError::Unavailable(source) => Self::new(
                Exit::Unreachable,
                "unavailable",
                format!("The database cannot be reached: {source}. Nothing was done."),
            )
            .hint("look whether it runs and whether database_url is right (adjutant config show --origin)"),
            StoreError::Corrupt(why) => Self::new(
                Exit::Other,
                "database_damaged",
                format!("The database is damaged: {why}. Nothing was changed."),
            )
            .hint("keep a copy of the data directory as it is now, then restore a backup"),
            StoreError::NewerSchema { found, known } => Self::new(
                Exit::Usage,
                "newer_schema",
                format!(
                    "The database was last used by a newer Adjutant (it needs schema {found}, this one knows {known}). \
                     Nothing was changed."
                ),
            )
            .hint("start the newer version"),
            StoreError::OtherBuild => Self::new(
                Exit::Usage,
                "other_build",
                "The database was made by another development build of Adjutant, whose tables were not these. \
                 Nothing was changed.",
            )
            .hint("export its runs with the build that made it, or begin anew with another --data DIR or database"),
            StoreError::WrongKey => Self::new(Exit::Usage, "wrong_key", WRONG_KEY).hint("give the key it was made with: ADJUTANT_SECRET_KEY_FILE, or master.key in the data directory"),
            StoreError::Full(_) => Self::new(
                Exit::Other,
                "disk_full",
                "The disk is full. What is recorded stays; whatever was begun and not recorded is looked at again, or asked about, when its run goes on.",
            )
            .hint("make room, then try again"),
            StoreError::ReadOnly(_) => {
                Self::new(Exit::Usage, "read_only", "The database or its folder cannot be written. Nothing was done.")
                    .hint("make the data directory writable for this user, or choose another with --data DIR")
            }
            StoreError::Other(source) => Self::other(format!(
                "The database failed: {source}. What is recorded stays; whatever was begun and not recorded is looked at again, or asked about, when its run goes on."
            ))
            .hint("look at the disk and at what the system says of it (dmesg), then try again; adjutant doctor tells more"),
        }
    }
}

/// A text as a sentence.
pub(crate) fn sentence(text: &str) -> String {
    let mut letters = text.trim_end().chars();
    let raised: String = letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default();
    if raised.ends_with(['.', '!', '?']) { raised } else { format!("{raised}.") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_lines_for_a_person_and_a_problem_for_a_program() {
        let failure =
            Failure::usage("The agent cannot be saved.").problems(vec!["name: empty".to_owned()]).hint("say a name");
        assert_eq!(failure.lines(), ["error: The agent cannot be saved.", "  name: empty", "hint: say a name"]);
        assert_eq!(
            failure.problem(),
            json!({"type": "about:blank", "title": "Validation failed", "detail": "The agent cannot be saved.",
                "code": "validation_failed", "hint": "say a name", "errors": [{"detail": "name: empty"}]})
        );
    }

    #[test]
    fn every_text_of_the_store_says_what_was_not_done() {
        let errors = [
            StoreError::Stale { fenced: false },
            StoreError::Corrupt("page 3".to_owned()),
            StoreError::NewerSchema { found: 9, known: 1 },
            StoreError::OtherBuild,
            StoreError::WrongKey,
        ];
        for error in errors {
            let failure = Failure::from(error);
            assert!(failure.message.contains("Nothing was"), "{}", failure.message);
            assert!(failure.hint.is_some(), "{}", failure.message);
        }
    }
}
