//! Use cases: what a person or a program can ask of Adjutant. Each takes who asks; none of them speaks HTTP or SQL.

mod access;
mod agents;
mod approvals;
mod attach;
pub(crate) mod budgets;
mod chats;
mod choose;
mod erase;
mod halt;
mod home;
mod import;
mod keys;
mod linked;
mod notes;
mod plan;
mod reach;
mod report;
pub(crate) mod retention;
pub(crate) mod rules;
mod runs;
mod seen;
mod start;
mod templates;
mod told;
mod undo;
mod usage;
mod waiting;
mod workspaces;

pub use access::{
    Caller, Invited, Membership, Password, Right, Rights, Role, Secret, SignIn, TokenAsk, UnknownWord, Via,
};
pub(crate) use attach::FOLDER as ATTACHMENTS;
pub use attach::attachment_name;
pub use budgets::{BudgetReport, Spent};
pub use choose::{Choice, ChosenBy};
pub use erase::{EraseReport, EraseWhat, is_erased};
pub use halt::{Halt, HaltOf};
pub use home::Home;
pub use import::{ImportChat, ImportedRun};
pub use keys::{KeyOwner, KeyTest, NewKey};
pub use linked::NewLink;
pub use notes::{Meant, NoteAuthor, NoteChange, NoteHistory, NotePlace, NotesFound, SavedNote};
pub use reach::{Can, ReachReport, Wish};
pub use report::{Account, ActionReport, ModelCallReport, RunReport};
pub use retention::{ErasedPart, kept_for};
pub use rules::NewRule;
pub use runs::RunRef;
pub use seen::{SeenMessage, SeenPart, SeenRequest, SeenSizes};
pub use start::{Fork, StartRun};
pub use templates::{Resync, ResyncChange, Resynced, templates};
pub use told::EffectivePrompt;
pub use undo::{UndoMode, UndoOutcome, UndoReport, UndoneFile};
pub use usage::{Forecast, GroupBy, Interval, Repriced, UsageLine};
pub use waiting::{Heard, WhenBusy};
pub use workspaces::{FOREVER, WorkspaceChange};
