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
