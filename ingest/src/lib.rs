//! Reads the log files of coding agents into Arrow batches.
//!
//! `discover` finds files, and `plan` compares them with the checkpoints. `run` decodes what
//! changed into batches and hands them with new checkpoints to a [`run::Sink`]. This crate does not
//! know how the store keeps them, and it prints nothing.
//!
//! A line that cannot be read becomes a [`schemas::problem::Problem`]; only that line is lost.

mod arguments;
pub mod batch;
mod branches;
pub mod clean;
pub mod columns;
pub mod container;
pub mod discover;
mod fingerprint;
pub mod json;
mod ledger;
mod lineage;
pub mod lines;
mod masked_target;
mod original_order;
pub mod plan;
pub mod provider;
mod records;
pub mod redact;
mod relatives;
pub mod remask;
mod render;
mod replay;
pub mod report;
mod repository;
pub mod run;
pub mod sniff;
pub mod stream;
mod tree;
mod worker;
