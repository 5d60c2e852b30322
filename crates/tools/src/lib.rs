//! Acting on the world: one file per tool, grouped in toolsets, and the confined file layer they share. Tools run only with
//! a permit; they know no database and no model, only the narrow handles of [`World`].

mod arguments;
mod diff;
mod files;
mod kv;
pub mod limits;
pub mod memory;
mod meta;
pub mod net;
pub mod notebook;
mod output;
mod registry;
#[cfg(test)]
mod testing;
mod tool;
mod trial;
mod world;

pub use arguments::help;
pub use files::{Freshness, refresh};
pub use notebook::{Confinement, FileError, Notebook, folder_hash};
pub use registry::Registry;
pub use tool::Tool;
pub use trial::Trial;
pub use world::{Catalog, HandleError, Hit, IndexHandle, IndexedFile, KvHandle, Stamp, World};
