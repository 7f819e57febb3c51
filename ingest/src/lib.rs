//! Reads the log files of coding agents into Arrow batches.
//!
//! `discover` finds files, and `plan` compares them with the checkpoints. `run` decodes what
//! changed into batches and hands them with new checkpoints to a [`run::Sink`]. This crate does not
//! know how the store keeps them, and it prints nothing.
//!
//! A line that cannot be read becomes a [`schemas::problem::Problem`]; only that line is lost.
//!
//! [`run::run`] has an example of all three steps. Before a text reaches the sink, its secrets are
//! masked by a [`redact::Redactor`]:
//!
//! ```rust
//! use ingest::redact::{Redactor, UserRule};
//!
//! let rule = UserRule { name: "badge".to_owned(), regex: "HB-[0-9]{8}".to_owned() };
//! let redactor = Redactor::new(&[rule])?;
//! let mut counts = Default::default();
//!
//! assert_eq!(redactor.mask("badge HB-12345678", &mut counts), "badge [REDACTED:badge]");
//! assert_eq!(counts.0.get("badge"), Some(&1));
//! # Ok::<(), ingest::redact::RuleError>(())
//! ```

#![warn(missing_docs)]

pub mod discover;
pub mod plan;
pub mod provider;
pub mod redact;
pub mod relocate;
pub mod rows;
pub mod run;
pub mod scrub;
pub mod source;
pub mod stream;
pub mod text;
