//! `sessions`: search, read and count the session logs of coding agents.
//!
//! Layers, each knowing only those before it: `store` <- `search`, `sql` <- `tools` <- `report`,
//! `export`, `server` (MCP) <- `cli`. Only `sql` names duckdb, only `server` names rmcp, only `cli` names clap, only
//! `output` prints; `tests/it/layers.rs` enforces it. ARCHITECTURE.md tells the rest.

pub mod app;
mod clean;
pub mod cli;
mod columns;
mod cores;
pub mod error;
pub mod export;
mod fold;
pub mod help;
mod leftovers;
mod outfile;
pub mod output;
mod pending;
mod policy;
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
