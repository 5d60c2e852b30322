//! Notebook paths.
