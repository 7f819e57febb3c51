//! From the log files of coding agents to Arrow batches.
//!
//! `discover` finds files, `plan` compares them with the checkpoints, `run` decodes what changed
//! into batches and hands them with new checkpoints to a [`run::Sink`]. Nothing here knows how
//! the store keeps them, and nothing prints.
//!
//! A line that cannot be read becomes a [`schemas::problem::Problem`] and costs that line only.

mod arguments;
pub mod batch;
mod branches;
mod checkpoint;
pub mod clean;
pub mod columns;
pub mod container;
pub mod discover;
mod family;
mod history;
pub mod json;
mod kin;
mod ledger;
pub mod lines;
mod link;
mod masked_target;
pub mod plan;
pub mod provider;
mod records;
pub mod redact;
pub mod remask;
mod render;
pub mod report;
mod repository;
pub mod run;
pub mod sniff;
pub mod stream;
mod tree;
mod worker;
