//! Parses the query language: words, "phrases" and /regexes/ that must all occur, `OR` between two
//! of them, `-` before terms that must not occur, and qualifiers for rarer needs.

use schemas::tool::search::{ParsedQuery, SearchSort};
use schemas::{Timestamp, Zone, limits};

use super::error::{QueryError, QueryErrorKind};
use super::filter::{FieldFilter, FilterField};
use super::lex::{self, Token, TokenKind};
use super::pattern::{self, QueryPattern, RegexMistake};
use super::qualifier_token::{Qualifier, parse_time};
use store::Grams;

/// A parsed query.
#[derive(Debug, Clone, Default)]
pub struct Query {
    pub clauses: Vec<Clause>,
    /// Qualifiers that name a value.
    pub filters: Vec<FieldFilter>,
    /// True if upper and lower case differ: `case:yes`.
    pub is_case_sensitive: bool,
    /// `Some(true)` selects failed events, `Some(false)` the others: `is:error`, `-is:error`.
    pub errors: Option<bool>,
    /// True if copied history is included: `is:replay`.
    pub includes_replay: bool,
    /// Lower bound of the time, in microseconds: `since:` or `-until:`.
    pub since: Option<i64>,
    /// Exclusive upper bound of the time, in microseconds: `until:` or `-since:`.
    pub until: Option<i64>,
    pub sort: SearchSort,
    /// True if the search continues after the page is full until everything is counted:
    /// `total:exact`.
    pub must_count_all: bool,
    /// The terms that were parsed as qualifiers, as written.
    pub qualifiers: Vec<String>,
}

/// Terms of the query that `OR` joins, or a single term.
#[derive(Debug, Clone)]
pub struct Clause {
    /// The patterns, one of which must occur.
    pub any: Vec<QueryPattern>,
    /// True if none of `any` may occur.
    pub is_excluded: bool,
    /// True for a bare word, which a ranked search does not require.
    pub is_optional: bool,
}

impl Query {
    /// Parses a query.
    pub fn parse(text: &str, now: Timestamp) -> Result<Self, QueryError> {
        Self::parse_in_zone(text, now, &Zone::UTC)
    }

    /// Parses a query whose dates are of `zone`.
    pub fn parse_in_zone(text: &str, now: Timestamp, zone: &Zone) -> Result<Self, QueryError> {
        if text.len() > limits::QUERY_BYTES {
            return Err(QueryErrorKind::TooLong { bytes: text.len() }.into());
        }
        let tokens = lex::split_tokens(text)
            .map_err(|unclosed| QueryError::at(unclosed.position, QueryErrorKind::OpenQuote))?;
        // A regex needs the case setting when it is compiled, wherever the qualifier is in the
        // query.
        let case = tokens.iter().find(
            |token| matches!(&token.kind, TokenKind::Word(word) if word.as_str() == "case:yes"),
        );
        let case_sensitive = case.is_some_and(|token| !token.is_excluded);

        let mut query = Self { is_case_sensitive: case_sensitive, ..Self::default() };
        query.read_tokens(tokens, now, zone)?;
        if query.clauses.iter().all(|clause| clause.is_excluded) && query.qualifiers.is_empty() {
            return Err(QueryErrorKind::NothingToFind.into());
        }
        Ok(query)
    }

    /// Reads the tokens in order: `OR` joins the terms on both sides, `AND` means the same as a
    /// space, and `NOT` means a minus.
    fn read_tokens(
        &mut self,
        tokens: Vec<Token>,
        now: Timestamp,
        zone: &Zone,
    ) -> Result<(), QueryError> {
        let mut pending: Option<Operator> = None;
        let mut is_after_term = false;
        for mut token in tokens {
            if let Some(operator) = Operator::from_token(&token) {
                if pending.is_some()
                    || operator.word == "OR" && !is_after_term
                    || operator.word == "AND" && self.is_empty()
                {
                    return Err(operator.missing_term_error());
                }
                pending = Some(operator);
                continue;
            }

            let operator = pending.take();
            if operator.as_ref().is_some_and(|operator| operator.word == "NOT") {
                token.is_excluded = !token.is_excluded;
            }
            let or = operator.filter(|operator| operator.word == "OR");

            if self.apply_qualifier(&token, now, zone)? {
                if let Some(or) = or {
                    return Err(or.missing_term_error());
                }
                is_after_term = false;
                continue;
            }
            match (self.build_pattern(&token)?, or) {
                (Some(pattern), or) => self.push_term(pattern, &token, or)?,
                (None, Some(or)) => return Err(or.missing_term_error()),
                (None, None) => continue,
            }
            is_after_term = true;
        }
        match pending {
            Some(operator) => Err(operator.missing_term_error()),
            None => Ok(()),
        }
    }

    fn is_empty(&self) -> bool {
        self.clauses.is_empty() && self.qualifiers.is_empty()
    }

    /// Applies a token as a qualifier and returns true if it is one. Other words with a colon are
    /// plain words.
    fn apply_qualifier(
        &mut self,
        token: &Token,
        now: Timestamp,
        zone: &Zone,
    ) -> Result<bool, QueryError> {
        let Some(qualifier) = Qualifier::from_token(token) else { return Ok(false) };
        if let Some(field) = FilterField::from_name(qualifier.name) {
            self.filters.push(qualifier.parse_filter(field, token)?);
            self.qualifiers.push(written_form(token));
            return Ok(true);
        }
        match (qualifier.name, qualifier.value) {
            ("is", "error") => self.errors = Some(!token.is_excluded),
            ("is", "replay") => self.includes_replay = !token.is_excluded,
            ("case", "yes") => self.is_case_sensitive = !token.is_excluded,
            ("case", "no") => self.is_case_sensitive = token.is_excluded,
            ("sort", "relevance") if !token.is_excluded => self.sort = SearchSort::Relevance,
            ("sort", "newest" | "recent") if !token.is_excluded => self.sort = SearchSort::Newest,
            ("sort", "oldest") if !token.is_excluded => self.sort = SearchSort::Oldest,
            ("total", "exact") => self.must_count_all = !token.is_excluded,
            (name @ ("since" | "until"), value) => {
                let time = parse_time(name, value, token, now, zone)?;
                if (name == "since") == token.is_excluded {
                    self.until = Some(self.until.map_or(time, |other| other.min(time)));
                } else {
                    self.since = Some(self.since.map_or(time, |other| other.max(time)));
                }
            }
            ("is" | "case" | "sort" | "total", _) => {
                let kind = QueryErrorKind::UnknownQualifier { written: written_form(token) };
                return Err(QueryError::at(token.position, kind));
            }
            _ => return Ok(false),
        }
        self.qualifiers.push(written_form(token));
        Ok(true)
    }

    /// Builds the pattern of a token; `None` for an empty phrase, which every text contains.
    fn build_pattern(&self, token: &Token) -> Result<Option<QueryPattern>, QueryError> {
        match &token.kind {
            TokenKind::Word(text) | TokenKind::Phrase(text) if text.is_empty() => Ok(None),
            TokenKind::Word(text) | TokenKind::Phrase(text) => {
                Ok(Some(QueryPattern::Text(text.clone())))
            }
            TokenKind::Qualified(..) => Ok(Some(QueryPattern::Text(written_form(token)))),
            TokenKind::Regex(source) => match QueryPattern::regex(source, self.is_case_sensitive) {
                Ok(pattern) => Ok(Some(pattern)),
                Err(bad) => Err(regex_error(token, bad)),
            },
        }
    }

    /// Adds the pattern of a term: to the clause before it after an `OR`, otherwise as a clause.
    fn push_term(
        &mut self,
        pattern: QueryPattern,
        token: &Token,
        or: Option<Operator>,
    ) -> Result<(), QueryError> {
        let optional = matches!(token.kind, TokenKind::Word(_));
        if let Some(or) = or
            && let Some(last) = self.clauses.last_mut()
        {
            if token.is_excluded || last.is_excluded {
                return Err(QueryError::at(or.position, QueryErrorKind::ExcludedNextToOr));
            }
            last.any.push(pattern);
            last.is_optional &= optional;
            return Ok(());
        }
        self.clauses.push(Clause {
            any: vec![pattern],
            is_excluded: token.is_excluded,
            is_optional: optional,
        });
        Ok(())
    }

    /// Returns the trigrams that a block must contain for one of its rows to match, for the skip
    /// index.
    pub(crate) fn required_grams(&self) -> Vec<Vec<Grams>> {
        let required = self.clauses.iter().filter(|clause| !clause.is_excluded);
        required.flat_map(|clause| pattern::required_grams(&clause.any)).collect()
    }

    /// Describes how the query was parsed, with every term as it could be written.
    pub fn to_parsed_query(&self) -> ParsedQuery {
        let is_ranked = self.sort == SearchSort::Relevance;
        let mut echo =
            ParsedQuery { qualifiers: self.qualifiers.clone(), ..ParsedQuery::default() };
        for clause in &self.clauses {
            let terms = clause.any.iter().map(pattern_as_term);
            if clause.is_excluded {
                echo.none_of.extend(terms);
            } else if clause.is_optional && is_ranked {
                for term in terms {
                    let word = without_punctuation(&term);
                    if !echo.any_of.iter().any(|known| known == word) {
                        echo.any_of.push(word.to_owned());
                    }
                }
            } else {
                echo.all_of.push(terms.collect::<Vec<_>>().join(" OR "));
            }
        }
        echo
    }
}

fn regex_error(token: &Token, bad: RegexMistake) -> QueryError {
    // The position counts from after the slash, and after the minus if there is one.
    let inside = bad.position.map_or(0, |at| at + usize::from(token.is_excluded));
    let kind = QueryErrorKind::WrongRegex { begin: token.position, reason: bad.reason };
    QueryError::at(token.position + inside, kind)
}

/// The words that combine terms.
const OPERATORS: [&str; 3] = ["OR", "AND", "NOT"];

/// One of [`OPERATORS`] in a query.
struct Operator {
    word: &'static str,
    /// 1-based position of its first character.
    position: usize,
}

impl Operator {
    fn from_token(token: &Token) -> Option<Self> {
        let TokenKind::Word(text) = &token.kind else { return None };
        if token.is_excluded {
            return None;
        }
        let word = OPERATORS.into_iter().find(|word| *word == text.as_str())?;
        Some(Self { word, position: token.position })
    }

    fn missing_term_error(&self) -> QueryError {
        let kind = QueryErrorKind::MissingTerm { operator: self.word.to_owned() };
        QueryError::at(self.position, kind)
    }
}

/// Returns a token as it was written, without the quotes of a phrase.
fn written_form(token: &Token) -> String {
    let minus = if token.is_excluded { "-" } else { "" };
    match &token.kind {
        TokenKind::Word(text) | TokenKind::Phrase(text) => format!("{minus}{text}"),
        TokenKind::Qualified(name, value) => format!("{minus}{name}:\"{value}\""),
        TokenKind::Regex(source) => format!("{minus}/{source}/"),
    }
}

/// Returns a word of a ranked query without the punctuation of the sentence that it is from.
pub(crate) fn without_punctuation(word: &str) -> &str {
    let kept = word.trim_start_matches('(');
    let is_call = kept.contains('(');
    let kept = kept.trim_end_matches(|c| {
        matches!(c, ',' | ';' | ':' | '.' | '?' | '!') || c == ')' && !is_call
    });
    if kept.is_empty() { word } else { kept }
}

/// Returns a pattern as a query term that parses to the same pattern.
fn pattern_as_term(pattern: &QueryPattern) -> String {
    match pattern {
        QueryPattern::Regex { source, .. } => format!("/{source}/"),
        QueryPattern::Text(text) if is_bare_word(text) => text.clone(),
        QueryPattern::Text(text) => {
            format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
        }
    }
}

/// Returns true if a text is parsed as a word that means the text itself.
fn is_bare_word(text: &str) -> bool {
    let Ok(tokens) = lex::split_tokens(text) else { return false };
    let [token @ Token { kind: TokenKind::Word(word), is_excluded: false, .. }] = tokens.as_slice()
    else {
        return false;
    };
    let parsed = Query::default().apply_qualifier(token, Timestamp(0), &Zone::UTC);
    let is_qualifier = !matches!(parsed, Ok(false));
    word == text && !OPERATORS.contains(&text) && !is_qualifier
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Query, QueryError> {
        Query::parse(text, Timestamp(0))
    }

    fn check(text: &str, all_of: &[&str], none_of: &[&str], qualifiers: &[&str]) {
        let query = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let echo = query.to_parsed_query();
        assert_eq!((&echo.all_of[..], &echo.none_of[..]), (&own(all_of)[..], &own(none_of)[..]));
        assert_eq!(echo.qualifiers, own(qualifiers), "{text}");
        let minus = echo.none_of.iter().map(|term| format!("-{term}"));
        let again: Vec<String> =
            echo.all_of.iter().cloned().chain(minus).chain(echo.qualifiers.clone()).collect();
        assert_eq!(parse(&again.join(" ")).expect("parses").to_parsed_query(), echo, "{text}");
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
    fn operators_bind_what_is_next_to_them() {
        let query = parse("NOT is:error NOT tool:Bash cargo").expect("parses");
        assert_eq!((query.errors, query.filters[0].is_excluded), (Some(false), true));
        assert_eq!(query.to_parsed_query().all_of, own(&["cargo"]));
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
        let echo = parse("why is it slow \"skip index\" -x sort:relevance")
            .expect("parses")
            .to_parsed_query();
        assert_eq!(echo.any_of, own(&["why", "is", "it", "slow"]));
        assert_eq!((echo.all_of, echo.none_of), (own(&["\"skip index\""]), own(&["x"])));
    }

    #[test]
    fn words_of_a_ranked_query_are_shown_once_and_without_punctuation() {
        let query = parse("sort:relevance (slow slow, f(x), .env: C++ ?!").expect("parses");
        let words = ["slow", "f(x)", ".env", "C++", "?!"];
        assert_eq!(query.to_parsed_query().any_of, own(&words));
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
