//! Parses the query language: words, "phrases" and /regexes/ that must all occur, `OR` between two
//! of them, `-` before terms that must not occur, and qualifiers for rarer needs.

use schemas::tool::search::{ParsedQuery, SearchSort};
use schemas::{Timestamp, limits};

use super::error::{QueryError, QueryErrorKind};
use super::lex::{self, Token, TokenKind};
use super::pattern::{self, Pattern};
use crate::store::Grams;

/// A parsed query.
#[derive(Debug, Clone, Default)]
pub struct Query {
    pub clauses: Vec<Clause>,
    /// Qualifiers that name a value.
    pub filters: Vec<Filter>,
    /// True if upper and lower case differ: `case:yes`.
    pub case_sensitive: bool,
    /// `Some(true)` selects failed events, `Some(false)` the others: `is:error`, `-is:error`.
    pub errors: Option<bool>,
    /// True if copied history is included: `is:replay`.
    pub with_replay: bool,
    /// Exclusive upper bound of the time, in microseconds: `until:`.
    pub until: Option<i64>,
    pub sort: SearchSort,
    /// True if the search continues after the page is full until everything is counted:
    /// `total:exact`.
    pub exact_total: bool,
    /// The terms that were parsed as qualifiers, as written.
    pub qualifiers: Vec<String>,
}

/// A term of the query: one of `any` must occur, or none of them if it is excluded.
#[derive(Debug, Clone)]
pub struct Clause {
    pub any: Vec<Pattern>,
    pub excluded: bool,
    /// True for a bare word, which a ranked search does not require.
    pub optional: bool,
}

/// The field that a qualifier examines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    Tool,
    Model,
    Branch,
    File,
    Agent,
    Label,
}

impl Field {
    /// Returns true if the field belongs to the session and not to the event.
    pub fn is_of_session(self) -> bool {
        match self {
            Self::Agent | Self::Label => true,
            Self::Tool | Self::Model | Self::Branch | Self::File => false,
        }
    }
}

/// A condition on a field: one of `any` (lower case) must be part of it, or none of them if it is
/// excluded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    pub field: Field,
    pub any: Vec<String>,
    pub excluded: bool,
}

impl Filter {
    /// Returns true if `value` passes; `None` means that the event does not have the field.
    pub fn passes(&self, value: Option<&str>) -> bool {
        let holds = value.is_some_and(|value| {
            let value = value.to_lowercase();
            self.any.iter().any(|wanted| value.contains(wanted.as_str()))
        });
        holds != self.excluded
    }
}

impl Query {
    /// Parses a query.
    pub fn parse(text: &str, now: Timestamp) -> Result<Self, QueryError> {
        if text.len() > limits::QUERY_BYTES {
            return Err(QueryErrorKind::TooLong { bytes: text.len() }.into());
        }
        let tokens = lex::tokens(text)
            .map_err(|unclosed| QueryError::at(unclosed.position, QueryErrorKind::OpenQuote))?;
        // A regex needs the case setting when it is compiled, wherever the qualifier is in the
        // query.
        let case = |token: &&Token| token.kind == TokenKind::Word("case:yes".to_owned());
        let case_sensitive = tokens.iter().find(case).is_some_and(|token| !token.excluded);
        let mut query = Self { case_sensitive, ..Self::default() };
        query.read(tokens, now)?;
        if query.clauses.iter().all(|clause| clause.excluded) && query.qualifiers.is_empty() {
            return Err(QueryErrorKind::NothingToFind.into());
        }
        Ok(query)
    }

    /// Applies a token as a qualifier if it is one; other words with a colon are plain words.
    fn qualifier(&mut self, token: &Token, now: Timestamp) -> Result<bool, QueryError> {
        let (name, value, quoted) = match &token.kind {
            TokenKind::Word(word) => match word.split_once(':') {
                // `file:///` begins a URL.
                Some((name, value)) if !value.is_empty() && !value.starts_with("//") => {
                    (name, value, false)
                }
                _ => return Ok(false),
            },
            TokenKind::Qualified(name, value) => (name.as_str(), value.as_str(), true),
            TokenKind::Phrase(_) | TokenKind::Regex(_) => return Ok(false),
        };
        let field = match name {
            "tool" => Some(Field::Tool),
            "model" => Some(Field::Model),
            "branch" => Some(Field::Branch),
            "file" => Some(Field::File),
            "agent" => Some(Field::Agent),
            "label" => Some(Field::Label),
            _ => None,
        };
        match (field, name, value) {
            (Some(field), ..) => {
                let values = if quoted { vec![value] } else { value.split(',').collect() };
                let any =
                    values.into_iter().filter(|value| !value.is_empty()).map(str::to_lowercase);
                let any: Vec<_> = any.collect();
                if any.is_empty() {
                    let kind = QueryErrorKind::NoValue { qualifier: name.to_owned() };
                    return Err(QueryError::at(token.position, kind));
                }
                self.filters.push(Filter { field, any, excluded: token.excluded });
            }
            (_, "is", "error") => self.errors = Some(!token.excluded),
            (_, "is", "replay") => self.with_replay = !token.excluded,
            (_, "case", "yes" | "no") => self.case_sensitive = (value == "yes") != token.excluded,
            (_, "sort", "relevance" | "recent") if !token.excluded => {
                self.sort =
                    if value == "recent" { SearchSort::Recent } else { SearchSort::Relevance };
            }
            (_, "total", "exact") => self.exact_total = !token.excluded,
            (_, "until", _) if !token.excluded => {
                let until = Timestamp::parse_since("until", value, now).map_err(|error| {
                    let (value, reason) = (value.to_owned(), error.message);
                    QueryError::at(token.position, QueryErrorKind::WrongTime { value, reason })
                })?;
                self.until = Some(until.0);
            }
            (_, "is" | "case" | "sort" | "total" | "until", _) => {
                let kind = QueryErrorKind::UnknownQualifier { written: written(token) };
                return Err(QueryError::at(token.position, kind));
            }
            _ => return Ok(false),
        }
        self.qualifiers.push(written(token));
        Ok(true)
    }

    /// Reads the tokens in order: `OR` joins the terms on both sides, `AND` means the same as a
    /// space, and `NOT` means a minus.
    fn read(&mut self, tokens: Vec<Token>, now: Timestamp) -> Result<(), QueryError> {
        // The pending operator, and whether a term directly precedes the current token.
        let mut operator: Option<(String, usize)> = None;
        let mut after_term = false;
        for mut token in tokens {
            if let TokenKind::Word(word) = &token.kind
                && !token.excluded
                && matches!(word.as_str(), "OR" | "AND" | "NOT")
            {
                if operator.is_some()
                    || word == "OR" && !after_term
                    || word == "AND" && self.is_empty()
                {
                    return Err(needs_terms(word, token.position));
                }
                operator = Some((word.clone(), token.position));
                continue;
            }
            let joined = operator.as_ref().filter(|(word, _)| word == "OR").map(|(_, at)| *at);
            if operator.take().is_some_and(|(word, _)| word == "NOT") {
                token.excluded = !token.excluded;
            }
            if self.qualifier(&token, now)? {
                match joined {
                    Some(position) => return Err(needs_terms("OR", position)),
                    None => after_term = false,
                }
                continue;
            }
            let Some(pattern) = self.pattern(&token)? else {
                match joined {
                    Some(position) => return Err(needs_terms("OR", position)),
                    None => continue,
                }
            };
            let optional = matches!(token.kind, TokenKind::Word(_));
            match (joined, self.clauses.last_mut()) {
                (Some(position), Some(last)) if token.excluded || last.excluded => {
                    return Err(QueryError::at(position, QueryErrorKind::ExcludedBesideOr));
                }
                (Some(_), Some(last)) => {
                    last.any.push(pattern);
                    last.optional &= optional;
                }
                _ => {
                    let clause = Clause { any: vec![pattern], excluded: token.excluded, optional };
                    self.clauses.push(clause);
                }
            }
            after_term = true;
        }
        operator.map_or(Ok(()), |(word, position)| Err(needs_terms(&word, position)))
    }

    fn is_empty(&self) -> bool {
        self.clauses.is_empty() && self.qualifiers.is_empty()
    }

    /// Builds the pattern of a token; `None` for an empty phrase, which every text contains.
    fn pattern(&self, token: &Token) -> Result<Option<Pattern>, QueryError> {
        Ok(match &token.kind {
            TokenKind::Word(text) | TokenKind::Phrase(text) => {
                (!text.is_empty()).then(|| Pattern::Text(text.clone()))
            }
            TokenKind::Qualified(..) => Some(Pattern::Text(written(token))),
            TokenKind::Regex(source) => {
                let pattern = Pattern::regex(source, self.case_sensitive).map_err(|bad| {
                    // The position counts from after the slash, and after the minus if there is
                    // one.
                    let inside = bad.position.map_or(0, |at| at + usize::from(token.excluded));
                    let (begin, reason) = (token.position, bad.reason);
                    let kind = QueryErrorKind::WrongRegex { begin, reason };
                    QueryError::at(begin + inside, kind)
                })?;
                Some(pattern)
            }
        })
    }

    /// Returns the trigrams that a block must contain for one of its rows to match, for the skip
    /// index.
    pub(crate) fn needs(&self) -> Vec<Vec<Grams>> {
        let required = self.clauses.iter().filter(|clause| !clause.excluded);
        required.flat_map(|clause| pattern::needs(&clause.any)).collect()
    }

    /// Describes how the query was parsed, with every term as it could be written.
    pub fn echo(&self) -> ParsedQuery {
        let ranked = self.sort == SearchSort::Relevance;
        let mut echo =
            ParsedQuery { qualifiers: self.qualifiers.clone(), ..ParsedQuery::default() };
        for clause in &self.clauses {
            let terms = clause.any.iter().map(echo_pattern);
            match (clause.excluded, clause.optional && ranked) {
                (true, _) => echo.none_of.extend(terms),
                (false, true) => echo.any_of.extend(terms),
                (false, false) => echo.all_of.push(terms.collect::<Vec<_>>().join(" OR ")),
            }
        }
        echo
    }
}

/// Returns a token as it was written, without the quotes of a phrase.
fn written(token: &Token) -> String {
    let minus = if token.excluded { "-" } else { "" };
    match &token.kind {
        TokenKind::Word(text) | TokenKind::Phrase(text) => format!("{minus}{text}"),
        TokenKind::Qualified(name, value) => format!("{minus}{name}:\"{value}\""),
        TokenKind::Regex(source) => format!("{minus}/{source}/"),
    }
}

/// Returns a pattern as a query term that parses to the same pattern.
fn echo_pattern(pattern: &Pattern) -> String {
    match pattern {
        Pattern::Regex { source, .. } => format!("/{source}/"),
        Pattern::Text(text) => {
            let alone = lex::tokens(text).is_ok_and(|tokens| match tokens.as_slice() {
                [token @ Token { kind: TokenKind::Word(word), excluded: false, .. }] => {
                    word == text
                        && !matches!(text.as_str(), "OR" | "AND" | "NOT")
                        && matches!(Query::default().qualifier(token, Timestamp(0)), Ok(false))
                }
                _ => false,
            });
            if alone {
                return text.clone();
            }
            format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
        }
    }
}

fn needs_terms(operator: &str, position: usize) -> QueryError {
    QueryError::at(position, QueryErrorKind::MissingTerm { operator: operator.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Query, QueryError> {
        Query::parse(text, Timestamp(0))
    }

    fn check(text: &str, all_of: &[&str], none_of: &[&str], qualifiers: &[&str]) {
        let query = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let echo = query.echo();
        assert_eq!((&echo.all_of[..], &echo.none_of[..]), (&own(all_of)[..], &own(none_of)[..]));
        assert_eq!(echo.qualifiers, own(qualifiers), "{text}");
        let minus = echo.none_of.iter().map(|term| format!("-{term}"));
        let again: Vec<String> =
            echo.all_of.iter().cloned().chain(minus).chain(echo.qualifiers.clone()).collect();
        assert_eq!(parse(&again.join(" ")).expect("parses").echo(), echo, "{text}");
    }

    fn own(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn words_phrases_exclusions_and_qualifiers() {
        check("budget  retry", &["budget", "retry"], &[], &[]);
        check(
            r#""is shared" -"not this" -nor"#,
            &[r#""is shared""#],
            &[r#""not this""#, "nor"],
            &[],
        );
        check("tool:Bash is:error panic", &["panic"], &[], &["tool:Bash", "is:error"]);
        check(r#""tool:Bash""#, &[r#""tool:Bash""#], &[], &[]);
        check("std::fs http://x a:b -", &["std::fs", "http://x", "a:b", "-"], &[], &[]);
        check("--release", &["--release"], &[], &[]);
        check(
            r#"-tool:Read,Write branch:"a b" x"#,
            &["x"],
            &[],
            &["-tool:Read,Write", "branch:\"a b\""],
        );
        check(r#""a \"b\" c\d""#, &[r#""a \"b\" c\\d""#], &[], &[]);
    }

    #[test]
    fn or_and_not() {
        check("a b OR c OR \"d e\" f", &["a", "b OR c OR \"d e\"", "f"], &[], &[]);
        check("a AND b NOT c", &["a", "b"], &["c"], &[]);
        check("\"OR\" /x[0-9]/ OR y -/z/", &["\"OR\"", "/x[0-9]/ OR y"], &["/z/"], &[]);
    }

    #[test]
    fn operators_bind_what_is_beside_them() {
        let query = parse("NOT is:error NOT tool:Bash cargo").expect("parses");
        assert_eq!((query.errors, query.filters[0].excluded), (Some(false), true));
        assert_eq!(query.echo().all_of, own(&["cargo"]));
        check("NOT -cargo", &["cargo"], &[], &[]);
        check("is:error AND x", &["x"], &[], &["is:error"]);
    }

    #[test]
    fn filters_hold_their_values() {
        let query = parse("-tool:Read,Write file:Main.rs x").expect("parses");
        let [tool, file] = query.filters.as_slice() else { panic!("{:?}", query.filters) };
        assert!(!tool.passes(Some("MultiWrite")) && tool.passes(Some("Bash")) && tool.passes(None));
        assert!(file.passes(Some("src/main.rs")) && !file.passes(None));
    }

    #[test]
    fn a_ranked_query_insists_on_no_word() {
        let echo = parse("why is it slow \"skip index\" -x sort:relevance").expect("parses").echo();
        assert_eq!(echo.any_of, own(&["why", "is", "it", "slow"]));
        assert_eq!((echo.all_of, echo.none_of), (own(&["\"skip index\""]), own(&["x"])));
    }

    #[test]
    fn mistakes_say_where_and_what() {
        for (text, position, says) in [
            (r#"é "open"#, 3, "not closed"),
            ("is:broken x", 1, "is:error"),
            ("é is:broken x", 3, "character 3"),
            ("a OR", 3, "either side"),
            ("OR a", 1, "either side"),
            ("a OR OR b", 6, "either side"),
            ("a NOT", 3, "after it"),
            ("a tool:x OR b", 10, "tool:Bash,Edit"),
            ("a OR tool:x", 3, "tool:Bash,Edit"),
            ("a OR \"\" b", 3, "either side"),
            ("a AND", 3, "either side"),
            ("a AND AND b", 7, "either side"),
            ("x -tool:,", 3, "no value"),
            ("model:\"\"", 1, "no value"),
            ("total:all x", 1, "total:exact"),
            ("x until:soon", 3, "'7d'"),
            ("a OR -b", 3, "excluded"),
            ("x /a(b/", 5, "unclosed group"),
            ("x -/a(b/", 6, "unclosed group"),
        ] {
            let error = parse(text).expect_err(text);
            assert_eq!(error.position, Some(position), "{text}: {error}");
            assert!(error.to_string().contains(says), "{text}: {error}");
        }
        for (text, says) in [("", "nothing to search"), ("-only", "nothing to search")] {
            assert!(parse(text).expect_err(text).to_string().contains(says), "{text}");
        }
    }
}
