//! The commands, one file each: the flags, their help, and the code that runs them.

pub(super) mod analyze;
pub(super) mod compact;
pub(super) mod completions;
pub(super) mod doctor;
pub(super) mod event;
pub(super) mod export;
pub(super) mod find;
pub(super) mod forget;
pub(super) mod ingest;
pub(super) mod label;
pub(super) mod list;
pub(super) mod mcp;
pub(super) mod plugin;
pub(super) mod query;
pub(super) mod report;
pub(super) mod search;
pub(super) mod setup;
pub(super) mod show;
pub(super) mod skill;
pub(super) mod sql_worker;
pub(super) mod stats;
pub(super) mod status;
pub(super) mod statusline;
pub(super) mod tools;
pub(super) mod upgrade;
pub(super) mod usage;
