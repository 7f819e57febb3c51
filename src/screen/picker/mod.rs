//! The picker: a list of sessions that the typed text narrows, with a preview of the selected one.

mod filters;
mod finder;
mod keys;
mod row;
mod state;
mod titles;
mod view;

pub(super) use self::finder::{FinderAnswer, FinderRequest, start_finder};
pub(super) use self::keys::PickerEffect;
pub(super) use self::state::Picker;
