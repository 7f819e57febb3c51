//! The reading view: one conversation, from its first prompt to its last answer.

mod areas;
mod keys;
mod state;
mod view;

pub(super) use self::keys::ReaderEffect;
pub(super) use self::state::Reader;
