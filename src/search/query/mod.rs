//! The query language: parses queries and compiles their terms to patterns.

mod error;
mod lex;
mod literals;
pub(super) mod multi;
mod parse;
pub(super) mod pattern;
mod qualifiers;

pub use error::{QueryError, QueryErrorKind};
pub use parse::{Clause, Field, Filter, Query};
pub use qualifiers::is_qualifier;
