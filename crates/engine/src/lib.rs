//! Making runs happen: use cases, the worker, the driver, the feed. The embeddable library of Adjutant; it speaks neither
//! HTTP nor SQL.

mod agent;
mod archive;
mod asking;
mod audit;
mod backtest;
mod base;
mod claims;
mod counting;
mod current;
mod driver;
mod ending;
mod engine;
mod env;
mod error;
mod evidence;
mod export;
mod feed;
mod filtering;
mod halting;
mod handles;
mod held;
mod lease;
mod live;
mod log;
mod marker;
mod marks;
mod meter;
mod patience;
mod projection;
mod prompt;
mod rates;
mod recovery;
mod replay;
mod safety;
mod service;
mod spending;
mod spoken;
mod starting;
mod surroundings;
mod toolbox;
mod trace;
mod work;
mod worker;

pub use adjutant_models as models;
pub use adjutant_models::ModelSource;
pub use adjutant_store as store;
pub use adjutant_tools as tools;
pub use adjutant_tools::net::provider_client;
pub use agent::{Agent, AgentBuilder, Approver, Observer};
pub use archive::{Archive, ArchiveVerified, is_archive, verify_archive};
pub use audit::{
    AuditEntry, AuditLog, AuditPage, AuditProblem, AuditRecorded, AuditVerified, LogsOf, PageOf, Redaction, RunBodies,
    is_whole_export, verify_whole_export,
};
pub use backtest::{Backtest, BacktestChange};
pub use current::{CurrentAgent, ShownTools, allowed_providers, workspace_filter, workspace_tools};
pub use driver::Exit;
pub use engine::{Engine, Parts};
pub use env::{Env, FromParts, Source};
pub use error::EngineError;
pub use export::{ExportProblem, Redacted, Verified, verify_export};
pub use feed::{FeedItem, Follower};
pub use handles::OpenNotebook;
pub use log::Recorded;
pub use meter::{BUCKETS_MS, Meter, Numbers, Times, ToolNumbers};
pub use projection::{Card, RunSummary};
pub use replay::{Divergence, Replay};
pub use service::{
    ALL_PROVIDERS, ALL_TOOLS, Account, ActionReport, BudgetReport, Caller, Can, ChatChange, Choice, ChosenBy,
    EffectivePrompt, EmbedAsk, Embeddings, EraseReport, EraseWhat, ErasedPart, FOREVER, Forecast, Fork, Frames,
    GroupBy, Halt, HaltOf, Heard, Home, ImportChat, ImportedRun, Interval, Invited, KeyOwner, KeyTest, Made, Meant,
    Member, Membership, ModelCallReport, NewKey, NewLink, NewRule, NoteAuthor, NoteChange, NoteHistory, NotePlace,
    NotesFound, Password, Pause, ReachReport, Rebuilt, Repriced, Resync, ResyncChange, Resynced, Right, Rights, Role,
    RunRef, RunReport, SavedNote, Secret, SeenMessage, SeenPart, SeenRequest, SeenSizes, SignIn, Spent, StartRun,
    TokenAsk, UndoMode, UndoOutcome, UndoReport, UndoneFile, UnknownWord, UsageLine, Via, WhenBusy, Wish,
    WorkspaceChange, attachment_name, invite_id, is_erased, kept_for, media_type, templates,
};
pub use spending::Unpriced;
pub use spoken::Piece;
pub use trace::{Collector, RequestTrace, Tracing, trace_of};
pub use worker::{Attendance, Worker};
