//! The archive: the logs of this machine as their agents wrote them, from which a log that was deleted
//! is written again (docs/archive.md), and those that came with sessions of other machines. No search
//! reads it.
//!
//! ```text
//! state(id 0, record)     the generation up to which the archive is complete
//! state(id 1, record)     the generation after which logs of sessions that are gone were removed
//! files(id, record)       a file: its path, its session, how it is kept, and how much of it
//! frames(id, record)      a compressed piece of a file: where it begins in the file, and its length there
//! ```
//!
//! A record ends with a checksum over its bytes, its table and its place. The frames of a file follow
//! each other without a gap; its record says how many there are. The logs are read again after the
//! commit of their rows, and only if they still begin with what was ingested. So a run that is killed
//! loses nothing: the next one finds which files the archive does not have yet.

pub(crate) mod archive_file;
mod content;
mod foreign;
mod keep;
pub(crate) mod names;
mod read;

pub use archive_file::{ArchivedFile, LogOrigin};
pub use foreign::ForeignLog;
pub use keep::ArchiveRules;
pub use names::KeepLogs;
pub use read::{LogArchive, UnpackError};
