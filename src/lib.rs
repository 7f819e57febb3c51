//! `sessions`: search, read and count the session logs of coding agents.
//!
//! The layers depend only on those before them: `store` <- `search`, `sql` <- `tools` <- `report`,
//! `export`, `server` (MCP) <- `cli`. Only `sql` names duckdb, only `server` names rmcp,
//! only `cli` names clap, and only `output` prints. `tests/it/layers.rs` enforces this.
//! ARCHITECTURE.md describes the rest.

pub mod app;
mod clean;
pub mod cli;
mod columns;
mod csp;
pub mod error;
pub mod export;
mod fold;
pub mod help;
mod leftovers;
mod outfile;
pub mod output;
mod parallel;
mod pending;
mod refresh;
pub mod report;
pub mod search;
pub mod server;
pub mod setup;
pub mod sql;
mod stem;
pub mod store;
pub mod tools;
pub mod watch;
