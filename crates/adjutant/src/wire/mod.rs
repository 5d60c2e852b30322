//! The public JSON: what clients and scripts read. The only promise about shapes besides the stored events; both are pinned
//! by snapshots.

mod event;
mod row;
mod texts;

pub(crate) use event::{WireEvent, actor, event};
pub(crate) use row::{agent, approval, run};
pub(crate) use texts::Texts;
