//! Text and JSON as logs contain them: cleaned, parsed without loss, and rendered for readers.

pub mod json;
pub(crate) mod mend;
pub mod names;
pub(crate) mod render;
mod repair;
pub mod sanitize;
