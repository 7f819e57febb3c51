//! The contract of `sessions`: the words every other crate uses.
//!
//! Plain data only: the event model, the tables, the arguments and answers of the tools, the
//! envelope, the errors and the limits. No I/O, no Arrow, no DuckDB, no MCP library, no clap.

pub mod client;
mod closed_enum;
pub mod envelope;
pub mod error;
mod error_doc;
pub mod event;
pub mod export;
pub mod id;
pub mod limits;
mod named_enum;
pub mod nearest;
pub mod price;
pub mod problem;
pub mod provider;
pub mod session;
pub mod table;
pub mod time;
pub mod tool;
pub mod tool_kind;
pub mod usage;
pub mod view;

pub use error::{ErrorCode, ToolError};
pub use event::EventType;
pub use export::ExportFormat;
pub use id::EventId;
pub use nearest::nearest;
pub use provider::Provider;
pub use time::Timestamp;
pub use tool_kind::ToolKind;
pub use usage::{Confidence, Usage};

/// Version of the tables and the manifest. A store of a newer version is refused; one of an older
/// version is opened or the message says what to do.
pub const SCHEMA_VERSION: u32 = 9;
