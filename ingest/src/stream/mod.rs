//! The way from a record to rows: coordinates, joined calls, sums, copies and abandoned branches.
//!
//! Decoders push drafts to a [`Stream`]. This room knows no provider's format.

pub mod batch;
mod branches;
mod calls;
mod draft;
mod events;
pub(crate) mod ledger;
mod messages;
mod put_back;
mod record;
mod recount;
pub mod replay;
mod repository;
mod session;
mod state;
pub(crate) mod tool_kind;
pub(crate) mod tree;

pub use self::draft::{Draft, RecordAt, micros};
pub use self::events::Stream;
pub(crate) use self::messages::{Dropped, Messages};
pub use self::session::TitleFrom;
pub use self::state::StreamState;
