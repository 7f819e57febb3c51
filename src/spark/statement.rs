//! Refuses statements that could run other code than a query.
//!
//! Functions of Java, names that are computed, and scripts (`SELECT TRANSFORM(..) USING 'program'`) are
//! refused. To find them, a statement is split into tokens as the lexer of Spark splits it
//! (`SqlBaseLexer.g4`). Where the two could differ, the statement is refused: what hides in a text here
//! might be a call there.

use schemas::{ErrorCode, ToolError};

/// Functions that run code of Java, and the clause whose names are computed.
const REFUSED_CALLS: [&str; 4] = ["reflect", "try_reflect", "java_method", "identifier"];

/// Symbols of SQL outside of names, texts and comments.
const SYMBOLS: &str = "=<>!+-*/%~&|^:?(),.[]{};";

/// A token, without its quotes.
#[derive(Debug, PartialEq, Eq)]
enum SqlToken {
    /// A name, a keyword or a number; in lower case.
    Word(String),
    /// A text in single quotes or a raw one.
    Text,
    /// A text in double quotes, which some settings make a name; in lower case.
    Quoted(String),
    Symbol(char),
}

/// Returns an error if a statement may run other code, or cannot be told from one that does.
pub(super) fn check_statement(sql: &str) -> Result<(), ToolError> {
    let tokens = Lexer::new(sql).split().map_err(|part| refuse_part(&part))?;
    for (at, token) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1);
        let is_call = next == Some(&SqlToken::Symbol('('));
        match token {
            SqlToken::Word(name) | SqlToken::Quoted(name)
                if is_call && REFUSED_CALLS.contains(&name.as_str()) =>
            {
                return Err(refuse_call(name));
            }
            SqlToken::Word(name) if name == "using" && !is_call => {
                return Err(refuse_call("a script with USING"));
            }
            SqlToken::Word(_) | SqlToken::Quoted(_) | SqlToken::Text | SqlToken::Symbol(_) => {}
        }
    }
    Ok(())
}

fn refuse_call(name: &str) -> ToolError {
    let message = format!(
        "The query calls {name}, which can run other code. Only queries over sessions and events are allowed"
    );
    ToolError::new(ErrorCode::SqlNotAllowed, message).with_detail("name", name)
}

fn refuse_part(part: &str) -> ToolError {
    let message = format!(
        "The query has {part}, which is not accepted with --engine: what follows it could be read in two ways. Leave it out, or put names with special characters into backquotes"
    );
    ToolError::new(ErrorCode::SqlNotAllowed, message)
}

/// Splits a statement into tokens. The errors name the part that is not accepted.
struct Lexer<'s> {
    rest: &'s str,
    tokens: Vec<SqlToken>,
}

impl<'s> Lexer<'s> {
    fn new(sql: &'s str) -> Self {
        Self { rest: sql, tokens: Vec::new() }
    }

    fn split(mut self) -> Result<Vec<SqlToken>, String> {
        while let Some(letter) = self.rest.chars().next() {
            if self.rest.starts_with("--") {
                self.skip_line_comment()?;
            } else if self.rest.starts_with("/*") {
                self.skip_comment()?;
            } else if self.rest.starts_with("://") {
                return Err("an address (://) outside of a string".to_owned());
            } else if matches!(letter, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c') {
                self.rest = &self.rest[1..];
            } else if letter.is_ascii_alphanumeric() || letter == '_' {
                self.take_word()?;
            } else if letter == '\'' {
                self.take_quoted('\'')?;
                self.tokens.push(SqlToken::Text);
            } else if letter == '"' {
                let name = self.take_quoted('"')?.to_lowercase();
                self.tokens.push(SqlToken::Quoted(name));
            } else if letter == '`' {
                let name = self.take_name()?;
                self.tokens.push(SqlToken::Word(name));
            } else if SYMBOLS.contains(letter) {
                self.tokens.push(SqlToken::Symbol(letter));
                self.rest = &self.rest[1..];
            } else {
                let shown = letter.escape_debug();
                return Err(format!("the character '{shown}' outside of names and strings"));
            }
        }
        Ok(self.tokens)
    }

    /// Skips a comment up to the end of its line. Spark continues one after a backslash.
    fn skip_line_comment(&mut self) -> Result<(), String> {
        let end = self.rest.find(['\r', '\n']).unwrap_or(self.rest.len());
        if self.rest[..end].ends_with('\\') {
            return Err("a comment that ends in a backslash".to_owned());
        }
        self.rest = &self.rest[end..];
        Ok(())
    }

    /// Skips a comment between `/*` and `*/`.
    fn skip_comment(&mut self) -> Result<(), String> {
        let comment = &self.rest[2..];
        let Some(end) = comment.find("*/") else {
            return Err("an unterminated comment".to_owned());
        };
        if comment.starts_with('+') {
            return Err("a hint (/*+)".to_owned());
        }
        // Spark reads the `/*` of `/*/` as the beginning of another comment.
        if comment[..=end].contains("/*") {
            return Err("a nested comment".to_owned());
        }
        self.rest = &comment[end + 2..];
        Ok(())
    }

    /// Takes a word, or the raw text that begins with `r`.
    fn take_word(&mut self) -> Result<(), String> {
        let is_end = |letter: char| !(letter.is_ascii_alphanumeric() || letter == '_');
        let end = self.rest.find(is_end).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        let word = word.to_ascii_lowercase();
        self.rest = rest;
        if word.starts_with(|letter: char| letter.is_ascii_digit()) && !is_number(&word) {
            return Err(format!("a word directly after a number: {word}"));
        }
        let quote = rest.chars().next().filter(|next| matches!(next, '\'' | '"'));
        let Some(quote) = quote.filter(|_| word.ends_with('r')) else {
            self.tokens.push(SqlToken::Word(word));
            return Ok(());
        };
        // After a number such as 1e+5, r begins a raw text.
        if word != "r" {
            return Err(format!("a string directly after {word}"));
        }
        let Some(end) = rest[1..].find(quote) else {
            return Err("an unterminated string".to_owned());
        };
        self.rest = &rest[end + 2..];
        self.tokens.push(SqlToken::Text);
        Ok(())
    }

    /// Takes a text in quotes, in which a backslash escapes the next character.
    fn take_quoted(&mut self, quote: char) -> Result<&'s str, String> {
        let text = &self.rest[1..];
        let mut is_escaped = false;
        for (at, letter) in text.char_indices() {
            if is_escaped {
                is_escaped = false;
            } else if letter == '\\' {
                is_escaped = true;
            } else if letter == quote {
                self.rest = &text[at + 1..];
                return Ok(&text[..at]);
            }
        }
        Err("an unterminated string".to_owned())
    }

    /// Takes a name in backquotes; two of them are one in the name.
    fn take_name(&mut self) -> Result<String, String> {
        let mut name = String::new();
        loop {
            let text = &self.rest[1..];
            let Some(end) = text.find('`') else {
                return Err("an unterminated name".to_owned());
            };
            name.push_str(&text[..end]);
            self.rest = &text[end + 1..];
            if !self.rest.starts_with('`') {
                return Ok(name.to_lowercase());
            }
            name.push('`');
        }
    }
}

/// Returns true if a word that begins with a digit is a number, or the part of one up to the sign of its
/// exponent. Spark ends a number where its exponent ends, and reads `5using` after `1e+` as two words.
fn is_number(word: &str) -> bool {
    let digits_end = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let rest = &word[digits_end(word)..];
    let rest = match rest.strip_prefix('e') {
        Some(exponent) => &exponent[digits_end(exponent)..],
        None => rest,
    };
    matches!(rest, "" | "l" | "s" | "y" | "f" | "d" | "bd")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_run_code_are_refused_however_they_are_written() {
        for sql in [
            "SELECT reflect('java.lang.System', 'exit', 0)",
            "SELECT Java_Method ('a', 'b')",
            "SELECT `reflect`('a', 'b')",
            "SELECT system.builtin.reflect('a', 'b')",
            "SELECT `system`.`builtin`.`REFLECT` ('a', 'b')",
            "SELECT \"reflect\"('a', 'b')",
            "SELECT try_reflect /* x */ ('a', 'b')",
            "SELECT reflect -- x\n ('a', 'b')",
            "SELECT reflect -- x\r('a', 'b')",
            "SELECT reflect/* x *//* y */\t(\n'a', 'b')",
            "SELECT identifier('ref' || 'lect')('a', 'b')",
            "SELECT 'it''s', reflect('a', 'b')",
            r"SELECT 'a\'', reflect('a', 'b')",
            r"SELECT r'a\', reflect('a', 'b')",
            r"SELECT R'a\', reflect('a', 'b')",
            "SELECT r\"a\\\", reflect('a', 'b')",
            "SELECT `a``b`, reflect('a', 'b')",
            "SELECT '--', reflect('a', 'b')",
            "SELECT \"/*\", reflect('a', 'b') AS `*/`",
            "SELECT TRANSFORM(text) USING 'sh -c id' FROM events",
            "MAP text using\n\"cat\" AS (a) FROM events",
            "REDUCE text USING r'cat' FROM events",
        ] {
            let error = check_statement(sql).expect_err(sql);
            assert_eq!(error.code, ErrorCode::SqlNotAllowed, "{sql}");
            assert!(error.message.contains("other code"), "{sql}: {}", error.message);
        }
    }

    #[test]
    fn what_spark_may_read_in_another_way_is_refused() {
        for sql in [
            "SELECT reflect/* /* */ */('a', 'b')",
            "SELECT 1 /*/*/ ' */ */, reflect('java.lang.System','exit') -- '",
            "MAP 1e+5USING 'sh -c id' AS a FROM events",
            "MAP 1.5e+5USING 'sh -c id' AS a FROM events",
            "REDUCE 1e+5DUSING 'sh -c id' AS a FROM events",
            "SELECT 5using",
            "SELECT reflect -- x \\\n y\n('a', 'b')",
            "SELECT /*+ x */ 1",
            "SELECT 1 /* x",
            "SELECT 'x",
            "SELECT \"x",
            "SELECT `x",
            "SELECT r'x",
            r"SELECT 1e+5r'\', reflect('a', 'b')",
            "SELECT a://x--, reflect('a', 'b')",
            "SELECT $$x$$, reflect('a', 'b')",
            "SELECT ${spark:x}",
            "SELECT text u\u{17f}ing 'x'",
            "SELECT reflect\u{a0}('a', 'b')",
            "SELECT \\u0072eflect('a', 'b')",
            "SELECT 1 # x",
            "SELECT @x",
            "SELECT 1\0",
        ] {
            let error = check_statement(sql).expect_err(sql);
            assert_eq!(error.code, ErrorCode::SqlNotAllowed, "{sql}");
        }
    }

    #[test]
    fn queries_are_accepted() {
        for sql in [
            "SELECT 1;",
            "SELECT 1L, 2S, 3Y, 4f, 5D, 6BD, 1.5, 1e5, 1e+5, 2.5e-3d, 1E5BD",
            "SELECT count(*) FROM events WHERE text LIKE '%reflect(%'",
            "SELECT reflect FROM (SELECT 1 AS reflect)",
            "SELECT e.* FROM events e JOIN sessions s USING (session_id)",
            "SELECT transform(array(1, 2), x -> x + 1)",
            "SELECT DATE'2026-10-14', X'1F', r'a\\d', 1e-5, .5, 2L -- the end",
            "SELECT /* all */ `größe`, \"Grüße\" FROM (SELECT 1 AS `größe`)",
            "WITH t AS (SELECT tool_name AS name, count(*) AS n FROM events GROUP BY 1) SELECT * FROM t WHERE n >= 2 AND name <> '${HOME}'",
            "SELECT map('a', 1)['a'], named_struct('x', 1).x, 5 % 2, ~1 & 3 | 4 ^ 1, 'a' || 'b', true != false",
        ] {
            assert_eq!(check_statement(sql).map_err(|error| error.message), Ok(()), "{sql}");
        }
    }
}
