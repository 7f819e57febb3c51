//! Turns decoded records into rows: coordinates, joined calls, sums, copies and abandoned branches.
//!
//! Decoders push decoded events to a [`Stream`]. This module does not know the format of any
//! provider.

pub mod batch;
mod branches;
mod calls;
mod decoded_event;
mod events;
mod excess;
pub mod forgotten;
mod forgotten_log;
mod found_secrets;
pub(crate) mod ledger;
mod log_folder;
mod messages;
mod pairing;
mod put_back;
mod recent;
mod record;
mod record_aliases;
mod recount;
pub mod replay;
mod repository;
mod session;
mod state;
pub(crate) mod tool_kind;
pub(crate) mod tree;

pub use self::decoded_event::{DecodedEvent, ModeWords, RecordAt, parse_micros};
pub use self::events::Stream;
pub(crate) use self::forgotten::ForgottenInLog;
pub(crate) use self::found_secrets::FoundSecret;
pub(crate) use self::ledger::UnknownItem;
pub(crate) use self::messages::{DocumentMessages, DroppedMessages};
pub(crate) use self::recent::{RecentIds, push_bounded};
pub use self::record_aliases::RecordAliases;
pub use self::recount::{CopyRecount, SessionRecount, TokenRecount};
pub(crate) use self::recount::{is_copied, without_counts};
pub(crate) use self::repository::Repositories;
pub use self::repository::{find_origin, normalize_address};
pub use self::session::TitleFrom;
pub(crate) use self::session::is_title_of;
pub use self::state::StreamState;
