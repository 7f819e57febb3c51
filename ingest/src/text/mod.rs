//! Text and JSON as logs contain them: cleaned, parsed without loss, and rendered for readers.

pub(crate) mod damaged_json;
pub mod json;
pub mod names;
pub(crate) mod render;
mod repair;
pub mod sanitize;
