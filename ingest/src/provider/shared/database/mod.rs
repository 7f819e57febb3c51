//! Reads sessions that an agent keeps in a database, and puts them together into documents.

pub(crate) mod cells;
pub(crate) mod connection;
pub(crate) mod document_text;
pub(crate) mod size_limit;
mod wal;
