//! The contract of `sessions`: the types and names that all other crates use.
//!
//! It is plain data only: the event model, the tables, the arguments and answers of the tools, the
//! envelope, the errors and the limits. It does no I/O and depends on neither Arrow, DuckDB, an MCP
//! library nor clap.

#![warn(missing_docs)]

pub mod client;
mod closed_enum;
mod day_words;
pub mod envelope;
pub mod error;
mod error_doc;
pub mod event;
pub mod export;
pub mod hook;
pub mod id;
pub mod limits;
mod named_enum;
pub mod nearest;
pub mod price;
pub mod problem;
pub mod provider;
pub mod session;
mod short_time;
pub mod table;
pub mod text_cells;
pub mod time;
pub mod tool;
pub mod tool_kind;
pub mod usage;
pub mod view;
pub mod zone;

pub use error::{ErrorCode, ToolError};
pub use event::EventType;
pub use export::{ExportFormat, ExportLayout, ExportTable};
pub use id::EventId;
pub use nearest::nearest;
pub use provider::Provider;
pub use time::Timestamp;
pub use tool_kind::ToolKind;
pub use usage::{Confidence, Usage};
pub use zone::Zone;

/// Version of the tables and the manifest. A store of another version is refused, and the error says
/// what to do.
pub const SCHEMA_VERSION: u32 = 12;

/// Returns true for the default value of a type, such as 0, which JSON leaves out.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
