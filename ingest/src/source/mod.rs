//! Opens the files of logs: plain, compressed or assembled, line by line or as a whole.

pub(crate) mod assembly;
pub(crate) mod bounded_file;
pub mod candidate;
pub(crate) mod container;
pub(crate) mod fingerprint;
pub mod line_source;
pub mod lines;
pub mod panics;
