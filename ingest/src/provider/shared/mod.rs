//! Code that the decoders of several providers use.

pub(crate) mod agents;
pub(crate) mod arguments;
pub(crate) mod blocks;
pub(crate) mod chat;
pub(crate) mod chat_export;
pub(crate) mod database;
pub(crate) mod document;
pub(crate) mod drift;
pub(crate) mod file_uri;
pub(crate) mod function_response;
pub(crate) mod identity;
pub mod machine_text;
pub(crate) mod prompt;
pub(crate) mod protobuf;
pub(crate) mod records;
pub(crate) mod refusal;
pub(crate) mod shares;
pub(crate) mod sidecar;
pub(crate) mod user_query;
