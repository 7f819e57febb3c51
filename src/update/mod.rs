//! Brings the store up to date with the logs: on request, behind a server's calls, or continuously.

pub mod ingest_logs;
pub(crate) mod refresher;
pub mod watch;
