//! Errors of parsing a query.

use std::fmt;

use schemas::limits;

use super::qualifiers::QUALIFIERS;

/// The reason why a query cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct QueryError {
    /// 1-based character; `None` if the whole query is wrong.
    pub position: Option<usize>,
    pub kind: QueryErrorKind,
}

/// The kinds of mistakes in a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueryErrorKind {
    TooLong {
        bytes: usize,
    },
    NothingToFind,
    OpenQuote,
    NoValue {
        qualifier: String,
    },
    WrongTime {
        value: String,
        reason: String,
    },
    UnknownQualifier {
        /// The qualifier and its value, as written.
        written: String,
    },
    /// `OR`, `AND` or `NOT` without a term that it needs.
    MissingTerm {
        operator: String,
    },
    ExcludedNextToOr,
    WrongRegex {
        /// 1-based character at which the regular expression begins.
        begin: usize,
        reason: String,
    },
}

impl QueryError {
    pub(super) fn at(position: usize, kind: QueryErrorKind) -> Self {
        Self { position: Some(position), kind }
    }
}

impl From<QueryErrorKind> for QueryError {
    fn from(kind: QueryErrorKind) -> Self {
        Self { position: None, kind }
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.position.unwrap_or_default();
        match &self.kind {
            QueryErrorKind::TooLong { bytes } => {
                write!(
                    f,
                    "it has {bytes} bytes; at most {} are allowed. Shorten it",
                    limits::QUERY_BYTES
                )
            }
            QueryErrorKind::NothingToFind => {
                write!(f, "nothing to search for. Give at least one word, \"phrase\" or /regex/")
            }
            QueryErrorKind::OpenQuote => write!(
                f,
                "the quote at character {at} is not closed. Add a closing \" or leave it out; inside quotes \\\" is a quote"
            ),
            QueryErrorKind::NoValue { qualifier } => write!(
                f,
                "{qualifier}: at character {at} has no value. Write {qualifier}:something"
            ),
            QueryErrorKind::WrongTime { reason, .. } => write!(f, "character {at}: {reason}"),
            QueryErrorKind::UnknownQualifier { written } => write!(
                f,
                "'{written}' at character {at} is not a known qualifier. The qualifiers are {QUALIFIERS}. Quote it to search for it as text"
            ),
            QueryErrorKind::MissingTerm { operator } => {
                let side = if operator == "NOT" { "after it" } else { "on either side" };
                let lists = if operator == "OR" {
                    "; values of a qualifier go into one list, tool:Bash,Edit"
                } else {
                    ""
                };
                write!(
                    f,
                    "the {operator} at character {at} needs a term {side}{lists}. Quote it to search for it as text"
                )
            }
            QueryErrorKind::ExcludedNextToOr => write!(
                f,
                "the OR at character {at} is next to an excluded term. Exclude terms outside of OR"
            ),
            QueryErrorKind::WrongRegex { begin, reason } => write!(
                f,
                "the regular expression at character {begin} is not valid: {reason} (character {at}). Quote it to search for it as text"
            ),
        }
    }
}
