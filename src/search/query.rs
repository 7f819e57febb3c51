//! The query language (DESIGN.md section 5): words and "phrases" that must all occur, `-word`
//! that must not, qualifiers for what is rarely needed.

use schemas::tool::search::ParsedQuery;
use schemas::{ErrorCode, Timestamp, ToolError, limits};

/// A text that must or must not occur.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    pub text: String,
    pub excluded: bool,
}

/// A parsed query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    pub terms: Vec<Term>,
    /// Upper and lower case differ: `case:yes`.
    pub case_sensitive: bool,
    /// Part of the tool's name: `tool:`.
    pub tool: Option<String>,
    /// Only failed results: `is:error`.
    pub errors_only: bool,
    /// Copied history too: `is:replay`.
    pub with_replay: bool,
    /// Microseconds: `until:`.
    pub until: Option<i64>,
    /// Part of the model's name: `model:`.
    pub model: Option<String>,
    /// Part of the branch's name: `branch:`.
    pub branch: Option<String>,
    /// What was taken for a qualifier, as written.
    pub qualifiers: Vec<String>,
}

/// Names of the qualifiers, for messages.
const QUALIFIERS: &[&str] =
    &["tool:", "is:error", "is:replay", "until:", "model:", "branch:", "case:yes", "case:no"];

impl Query {
    /// Parses a query. A query without a term must have a qualifier.
    pub fn parse(text: &str, now: Timestamp) -> Result<Self, ToolError> {
        if text.len() > limits::QUERY_BYTES {
            let message = format!(
                "query: {} bytes are too many. At most {}",
                text.len(),
                limits::QUERY_BYTES
            );
            return Err(ToolError::new(ErrorCode::InvalidQuery, message));
        }
        let mut query = Self::default();
        let mut rest = text;
        loop {
            rest = rest.trim_start();
            if rest.is_empty() {
                break;
            }
            let position = text.len() - rest.len();
            // `--flag` and a lone dash are words.
            let mut after = rest.chars().skip(1);
            let excluded = rest.starts_with('-')
                && after.next().is_some_and(|c| !c.is_whitespace() && c != '-');
            let body = if excluded { &rest[1..] } else { rest };
            rest = if let Some(quoted) = body.strip_prefix('"') {
                let Some(end) = quoted.find('"') else {
                    let column = text[..position].chars().count() + 1;
                    let message = format!(
                        "query: the quote at character {column} is not closed. Add a closing \" or leave it out"
                    );
                    return Err(
                        ToolError::new(ErrorCode::InvalidQuery, message).with("position", column)
                    );
                };
                query.term(&quoted[..end], excluded);
                &quoted[end + 1..]
            } else {
                let end = body.find(char::is_whitespace).unwrap_or(body.len());
                let word = &body[..end];
                if excluded || !query.qualifier(word, now)? {
                    query.term(word, excluded);
                }
                &body[end..]
            };
        }
        let only_excluded = query.terms.iter().all(|term| term.excluded);
        if only_excluded && query.qualifiers.is_empty() {
            let message = "query: nothing to search for. Give at least one word or \"phrase\"; list_sessions lists sessions without a query";
            return Err(ToolError::new(ErrorCode::InvalidQuery, message));
        }
        Ok(query)
    }

    fn term(&mut self, text: &str, excluded: bool) {
        if !text.is_empty() {
            self.terms.push(Term { text: text.to_owned(), excluded });
        }
    }

    /// Takes `word` as a qualifier if it is one; other words with a colon are plain words.
    fn qualifier(&mut self, word: &str, now: Timestamp) -> Result<bool, ToolError> {
        let Some((name, value)) = word.split_once(':') else { return Ok(false) };
        let text = || (!value.is_empty()).then(|| value.to_lowercase());
        match (name, value) {
            ("is", "error") => self.errors_only = true,
            ("is", "replay") => self.with_replay = true,
            ("case", "yes") => self.case_sensitive = true,
            ("case", "no") => self.case_sensitive = false,
            ("is" | "case", _) if !value.is_empty() => {
                let message = format!(
                    "query: '{word}' is no qualifier. Known: {}. Quote it to search for it as text",
                    QUALIFIERS.join(" ")
                );
                return Err(ToolError::new(ErrorCode::InvalidQuery, message).with("value", word));
            }
            ("tool", _) if text().is_some() => self.tool = text(),
            ("model", _) if text().is_some() => self.model = text(),
            ("branch", _) if text().is_some() => self.branch = text(),
            ("until", _) if !value.is_empty() => {
                let until = Timestamp::parse_since("until", value, now)
                    .map_err(|error| ToolError { code: ErrorCode::InvalidQuery, ..error })?;
                self.until = Some(until.0);
            }
            _ => return Ok(false),
        }
        self.qualifiers.push(word.to_owned());
        Ok(true)
    }

    /// Whether it asks for what only the columns of an event tell.
    pub(super) fn needs_columns(&self) -> bool {
        self.tool.is_some() || self.model.is_some() || self.branch.is_some()
    }

    /// How the query was understood.
    pub fn echo(&self) -> ParsedQuery {
        let texts = |excluded: bool| {
            self.terms
                .iter()
                .filter(|term| term.excluded == excluded)
                .map(|term| term.text.clone())
                .collect()
        };
        ParsedQuery {
            terms: texts(false),
            excluded: texts(true),
            qualifiers: self.qualifiers.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Query, ToolError> {
        Query::parse(text, Timestamp(0))
    }

    fn check(text: &str, terms: &[&str], excluded: &[&str], qualifiers: &[&str]) {
        let echo = parse(text).expect(text).echo();
        assert_eq!(
            (echo.terms, echo.excluded, echo.qualifiers),
            (own(terms), own(excluded), own(qualifiers)),
            "{text}"
        );
    }

    fn own(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn words_phrases_exclusions_and_qualifiers() {
        check("budget  retry", &["budget", "retry"], &[], &[]);
        check(
            r#""budget is shared" -"not this" -nor"#,
            &["budget is shared"],
            &["not this", "nor"],
            &[],
        );
        check("tool:Bash is:error panic", &["panic"], &[], &["tool:Bash", "is:error"]);
        check(r#""tool:Bash""#, &["tool:Bash"], &[], &[]);
        check("std::fs http://x a:b -", &["std::fs", "http://x", "a:b", "-"], &[], &[]);
        check("--release", &["--release"], &[], &[]);
    }

    #[test]
    fn mistakes_say_where_and_what() {
        let message = |text: &str| parse(text).expect_err(text).message;
        assert!(message(r#"é "open"#).contains("character 3"), "{}", message(r#"é "open"#));
        assert!(message("").contains("nothing to search for"));
        assert!(message("-only").contains("nothing to search for"));
        assert!(message("is:broken x").contains("is:error"));
        assert!(message("until:soon x").contains("'7d'"));
    }
}
