//! The page in TypeScript (`source/`), its built files (`bundle/`), and documents that have them inside.
//! `sessions web` serves the files; reports, transcripts and the apps of MCP clients are documents.

mod bundle;
mod document;
mod escape;

pub(crate) use self::bundle::{BundledFile, SCRIPT, STYLE, find_file};
pub(crate) use self::document::{FrozenDocument, FrozenView, PackedTalk, ShownDetails};
pub(crate) use self::escape::{escape_attribute, escape_html};
