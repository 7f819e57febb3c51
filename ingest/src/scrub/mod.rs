//! Replaces the secrets in a log itself by the placeholders that an ingest would write. Every other
//! byte stays: only parts of JSON strings change, and records, lines and their order do not.
//!
//! The log is decoded as an ingest does, which finds the secrets of its events with their text. Each
//! string of a record is then searched by the rules, and for the secrets of the events of the same
//! record (`record.rs`). The result is decoded again: what is found there remains,
//! and a log that would be read otherwise than before is left as it is.

mod database;
mod file_secrets;
mod left_secrets;
mod log;
mod record;

pub use self::database::{
    DatabaseCopy, RowChange, copy_database, find_database, hash_database, put_back_database,
    replace_rows,
};
pub use self::file_secrets::{
    FileSecret, find_log_secrets, find_side_file_secrets, scrub_side_file,
};
pub use self::left_secrets::ColumnWithSecrets;
pub use self::log::{ScrubOutcome, ScrubRules, ScrubbedLog, find_obstacle_to_rewriting, scrub_log};
