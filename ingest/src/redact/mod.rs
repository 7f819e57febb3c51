//! Masks secrets before any part of a log is stored: `[REDACTED:github_token]` replaces a secret.
//!
//! One pass finds the places where an anchor of a rule occurs (`redactor.rs`, `anchors.rs`). Only
//! these places are examined further: the shape of a token (`shapes.rs`, `rules.rs`, and `wrapped.rs`
//! over line breaks), the value under a name (`assign.rs`, `names.rs`, `paired.rs` for names and
//! values in two fields, `table_columns.rs` for columns, `phrases.rs` for words of sentences, and
//! `env.rs` for dotenv files), the text around a value (`context.rs`, `commands.rs`,
//! `command_pairs.rs`, `dialogue.rs`, `printed.rs` for what a command prints), a private
//! key (`pem.rs`, `written_key.rs`, `web_key.rs`, `bitcoin_key.rs`, `nostr_key.rs`,
//! `seed_phrase.rs`), an encrypted file (`ansible_vault.rs`) or a
//! manifest of Kubernetes (`kube_secret.rs`). Seed phrases and keys of Bitcoin are also found without
//! an anchor, by their checksum (`bare_secrets.rs`). Encoded text is decoded for all rules with an
//! anchor (`encoded.rs`).
//! Values without a shape count as secrets if they look random and are not placeholders
//! (`entropy.rs`, and `encoded_login.rs` for logins in base64). Users add rules of their own
//! (`user_rule.rs`). The masked secrets of a session are counted (`secrets.rs`). The columns of rows
//! are masked in `columns.rs`.

mod anchors;
mod ansible_vault;
mod assign;
mod bare_secrets;
mod bip39;
mod bitcoin_key;
pub mod columns;
mod command_pairs;
mod commands;
mod context;
mod dialogue;
mod encoded;
mod encoded_login;
mod entropy;
mod env;
mod known_names;
mod kube_secret;
mod names;
mod nostr_key;
mod paired;
mod pattern;
mod pem;
mod phrases;
mod placeholder;
mod printed;
mod redactor;
mod rules;
mod scan;
mod secrets;
mod seed_phrase;
mod shapes;
mod table_columns;
mod user_rule;
mod value;
mod web_key;
mod words;
mod wrapped;
mod written_key;

pub(crate) use placeholder::has_placeholder;
pub(crate) use redactor::hash_rules;
pub use redactor::{Redactor, SecretCounts};
pub(crate) use secrets::{MaskedColumns, MaskedSecrets, SessionSecrets, mask_text};
pub use user_rule::{RuleError, UserRule, parse_user_rules};
