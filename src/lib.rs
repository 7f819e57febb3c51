//! `sessions`: search, read and analyze the session logs of your coding agents.
//!
//! The program uses the crates `store` <- `search`, `sql` <- `tools`. Its own layers depend only on
//! those before them: `report`, `export`, `server` (MCP) <- `cli`. Only `server` names rmcp, only
//! `cli` names clap, and only `output` prints. `tests/it/layers/` enforces this. ARCHITECTURE.md
//! describes the rest.

pub mod app;
pub mod cli;
pub mod config;
pub mod export;
mod files;
mod git;
pub mod help;
pub mod hooks;
pub mod lake;
pub mod output;
mod page;
pub mod plugin;
pub mod report;
pub mod resume;
mod screen;
pub mod scrub;
pub mod server;
pub mod setup;
#[cfg(feature = "spark")]
pub mod spark;
mod travel;
pub mod update;
