//! Brings the store up to date with the logs: on request, behind a server's calls, or continuously.

pub mod archive;
mod filtered_target;
pub mod forget;
pub mod ingest_logs;
mod known_sessions;
pub(crate) mod log_rules;
pub(crate) mod masking;
pub(crate) mod refresher;
pub mod retention;
mod root_watch;
mod unchanged_logs;
pub mod watch;
pub(crate) mod write_lock;
