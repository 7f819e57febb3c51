//! Masks secrets before any part of a log is stored: `[REDACTED:github_token]` replaces a secret.
//!
//! A rule is a row of a table (`rule.rs`): its kind, its anchors, what recognizes the secret, a sample
//! and a look-alike. The tables are `token_rules.rs`, `command_rules.rs` and `context_rules.rs`.
//! One pass finds the places where an anchor of a rule occurs (`redactor.rs`, `anchors.rs`). Only
//! these places are examined further: the shape of a token (`token.rs`, and `wrapped.rs`
//! over line breaks), the value under a name (`assign.rs`, `names.rs`, `paired.rs` for names and
//! values in two fields, `table_columns.rs` for columns, `phrases.rs` for words of sentences, and
//! `env.rs` for dotenv files), the text around a value (`context.rs`, `command.rs`, `printed.rs` for
//! what a command prints), a private key (`pem.rs`, `key_files.rs`, `checksum_keys.rs`,
//! `seed_phrase.rs`) or a manifest of Kubernetes (`kube_secret.rs`). Seed phrases and keys of Bitcoin
//! are also found without an anchor, by their checksum (`bare_secrets.rs`). Encoded text is decoded
//! for all rules with an anchor (`encoded.rs`).
//! Values without a shape count as secrets if they look random and are not placeholders
//! (`entropy.rs`). Users add rules of their own
//! (`user_rule.rs`). The masked secrets of a session are counted (`secrets.rs`). The columns of rows
//! are masked in `columns.rs`, the bytes of logs in `raw_log.rs`. `places.rs` finds where in a text the
//! secrets are, `json_strings.rs` the strings of a record. `explain.rs` tells which rule masked what.

mod anchors;
mod assign;
mod bare_secrets;
mod checksum_keys;
pub mod columns;
mod command;
mod command_rules;
mod context;
mod context_rules;
mod encoded;
mod entropy;
mod env;
mod explain;
pub(crate) mod json_strings;
mod key_files;
mod kube_secret;
mod names;
mod paired;
mod pattern;
mod pem;
mod phrases;
mod places;
mod printed;
pub mod raw_log;
mod redactor;
mod rule;
mod scan;
mod secrets;
mod seed_phrase;
mod table_columns;
mod token;
mod token_rules;
mod user_rule;
mod value;
mod wrapped;

pub use explain::{ExplainedMask, RuleInfo, built_in_rules, explain_masks};
pub(crate) use places::{
    KnownSecrets, SecretRange, find_all_places, find_known_places, replace_places,
};
pub(crate) use redactor::hash_rules;
pub use redactor::{Redactor, SecretCounts};
pub use scan::{has_placeholder, masked_kinds};
pub(crate) use secrets::{MaskedColumns, MaskedSecrets, SessionSecrets, mask_text};
pub(crate) use secrets::{find_secrets, mask_found_secrets};
pub use user_rule::{RuleError, UserRule, parse_user_rules};
