//! The lake: sessions of many machines as immutable objects in a folder or a bucket (docs/team.md).
//!
//! `push` publishes sessions of the store, `pull` imports those of other machines. `listing` is what
//! a machine says it has published; it is written last, so that readers see whole pushes only.
//! `compact` joins the objects of closed days into larger ones for those who read much.

mod catalog;
#[cfg(feature = "cloud")]
mod cloud;
mod compact;
mod day_manifest;
mod entry;
mod fetch;
mod fetch_joined;
mod folder;
mod join_group;
mod listing;
mod objects;
mod place;
mod publisher;
mod pull;
mod pull_report;
mod push;
mod requests;
mod selection;
mod state;

pub use catalog::{JoinedEvents, JoinedPlace, LakeCatalog, LakeEvents, LakeRow, LakeSession};
pub use compact::{LakeCompaction, compact_lake};
pub use day_manifest::{DayManifest, parse_day_manifest};
pub use fetch::{SessionPart, decode_session};
pub use listing::{MachineListing, parse_listing};
pub use place::LakePlace;
pub use pull::pull_sessions;
pub use pull_report::{PullContent, PullFilter, PullReport};
pub use push::{PushOptions, PushReport, PushedSession, push_sessions};
pub use selection::find_published;
