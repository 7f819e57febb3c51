//! Tokens of a query that are written like a qualifier, and the values that they name.

use schemas::{Timestamp, Zone};

use super::error::{QueryError, QueryErrorKind};
use super::filter::{FieldFilter, FilterField};
use super::lex::{Token, TokenKind};

/// A token that is written like a qualifier: `name:value` or `name:"value"`.
pub(super) struct Qualifier<'t> {
    pub(super) name: &'t str,
    pub(super) value: &'t str,
    is_quoted: bool,
}

impl<'t> Qualifier<'t> {
    pub(super) fn from_token(token: &'t Token) -> Option<Self> {
        match &token.kind {
            TokenKind::Word(word) => {
                let (name, value) = word.split_once(':')?;
                // `file:///` begins a URL.
                if value.is_empty() || value.starts_with("//") {
                    return None;
                }
                Some(Self { name, value, is_quoted: false })
            }
            TokenKind::Qualified(name, value) => Some(Self { name, value, is_quoted: true }),
            TokenKind::Phrase(_) | TokenKind::Regex(_) => None,
        }
    }

    /// Parses the values of a filter. Commas separate values that are not quoted.
    pub(super) fn parse_filter(
        &self,
        field: FilterField,
        token: &Token,
    ) -> Result<FieldFilter, QueryError> {
        let values =
            if self.is_quoted { vec![self.value] } else { self.value.split(',').collect() };
        let values = values.into_iter().filter(|value| !value.is_empty());
        let any: Vec<String> = values.map(str::to_lowercase).collect();
        if any.is_empty() {
            let kind = QueryErrorKind::NoValue { qualifier: self.name.to_owned() };
            return Err(QueryError::at(token.position, kind));
        }
        Ok(FieldFilter { field, any, is_excluded: token.is_excluded })
    }
}

/// Parses the value of `since:` or `until:` to microseconds since the epoch. Words of the value may be
/// joined by `_`: `since:last_week`.
pub(super) fn parse_time(
    name: &str,
    value: &str,
    token: &Token,
    now: Timestamp,
    zone: &Zone,
) -> Result<i64, QueryError> {
    let words = value.replace('_', " ");
    let time = zone.parse_since(name, &words, now).map_err(|error| {
        let kind = QueryErrorKind::WrongTime { value: value.to_owned(), reason: error.message };
        QueryError::at(token.position, kind)
    })?;
    Ok(time.0)
}
