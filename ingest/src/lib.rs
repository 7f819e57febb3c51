//! Reads the log files of coding agents into Arrow batches.
//!
//! `discover` finds files, and `plan` compares them with the checkpoints. `run` decodes what
//! changed into batches and hands them with new checkpoints to a [`run::Sink`]. This crate does not
//! know how the store keeps them, and it prints nothing.
//!
//! A line that cannot be read becomes a [`schemas::problem::Problem`]; only that line is lost.

pub mod discover;
pub mod plan;
pub mod provider;
pub mod redact;
pub mod run;
pub mod source;
pub mod stream;
pub mod text;
