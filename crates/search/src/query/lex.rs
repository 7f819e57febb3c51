//! Splits a query into words, phrases and regular expressions.

/// One word, phrase, qualifier or regular expression of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    /// True if a minus precedes the token.
    pub(super) is_excluded: bool,
    /// 1-based position of the token's first character.
    pub(super) position: usize,
}

/// The kinds of tokens, with their text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TokenKind {
    Word(String),
    /// The name and the value of `name:"value"`.
    Qualified(String, String),
    Phrase(String),
    /// The source between the slashes.
    Regex(String),
}

/// A token whose closing quote is missing, with its 1-based position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnclosedQuote {
    pub(super) position: usize,
}

/// Splits `text` into tokens.
pub(super) fn split_tokens(text: &str) -> Result<Vec<Token>, UnclosedQuote> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let offset = text.len() - rest.len();
        let position = text[..offset].chars().count() + 1;
        // `--flag` and a lone dash are words.
        let after_minus = rest.strip_prefix('-').and_then(|after| after.chars().next());
        let excluded = after_minus.is_some_and(|c| !c.is_whitespace() && c != '-');
        let body = if excluded { &rest[1..] } else { rest };
        let (kind, length) = parse_token(body).ok_or(UnclosedQuote { position })?;
        tokens.push(Token { kind, is_excluded: excluded, position });
        rest = body[length..].trim_start();
    }
    Ok(tokens)
}

/// Parses the first token and returns it with its length; `None` if a quote is not closed.
fn parse_token(text: &str) -> Option<(TokenKind, usize)> {
    if let Some(quoted) = text.strip_prefix('"') {
        let (phrase, length) = parse_phrase(quoted)?;
        return Some((TokenKind::Phrase(phrase), length + 1));
    }
    if let Some((source, length)) = parse_regex(text) {
        return Some((TokenKind::Regex(source.to_owned()), length));
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    if let Some((name, _)) = text[..end].split_once(":\"")
        && !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_lowercase())
    {
        let (value, length) = parse_phrase(&text[name.len() + 2..])?;
        return Some((TokenKind::Qualified(name.to_owned(), value), name.len() + 2 + length));
    }
    Some((TokenKind::Word(text[..end].to_owned()), end))
}

/// Parses the text up to the closing quote; returns it with its length including that quote.
/// `\"` means a quote and `\\` a backslash. Every other backslash is kept as written.
fn parse_phrase(text: &str) -> Option<(String, usize)> {
    let mut out = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((out, at + 1)),
            '\\' => {
                let escaped = chars.next_if(|(_, next)| matches!(next, '"' | '\\'));
                out.push(escaped.map_or('\\', |(_, next)| next));
            }
            c => out.push(c),
        }
    }
    None
}

/// Parses a regular expression: a slash, at least one character, a slash, then a space or the
/// end. Paths and comments (`/etc/hosts`, `//`) are words.
fn parse_regex(text: &str) -> Option<(&str, usize)> {
    let body = text.strip_prefix('/')?;
    let mut escaped = false;
    let end = body.find(|c| {
        let closes = c == '/' && !escaped;
        escaped = c == '\\' && !escaped;
        closes
    })?;
    let after = body[end + 1..].chars().next();
    if end == 0 || after.is_some_and(|c| !c.is_whitespace()) {
        return None;
    }
    Some((&body[..end], end + 2))
}

#[cfg(test)]
mod tests {
    use super::TokenKind::{Phrase, Qualified, Regex, Word};
    use super::*;

    fn kinds(text: &str) -> Vec<TokenKind> {
        split_tokens(text).expect(text).into_iter().map(|token| token.kind).collect()
    }

    #[test]
    fn words_phrases_and_regexes() {
        let word = |text: &str| Word(text.to_owned());
        assert_eq!(kinds("a  b\n- --x"), [word("a"), word("b"), word("-"), word("--x")]);
        assert_eq!(kinds(r#""a \"b\" \\ \n""#), [Phrase("a \"b\" \\ \\n".to_owned())]);
        assert_eq!(kinds(r"/a\/b c/ x"), [Regex(r"a\/b c".to_owned()), word("x")]);
        assert_eq!(kinds("/etc/hosts // /x"), [word("/etc/hosts"), word("//"), word("/x")]);
        let branch = Qualified("branch".to_owned(), "a b".to_owned());
        assert_eq!(kinds(r#"branch:"a b" x:y"#), [branch, word("x:y")]);
    }

    #[test]
    fn exclusion_and_position_count_characters() {
        let got = split_tokens("é -\"b c\" -d").expect("tokens");
        assert_eq!(
            got.iter().map(|t| (t.is_excluded, t.position)).collect::<Vec<_>>(),
            [(false, 1), (true, 3), (true, 10)]
        );
        assert_eq!(split_tokens("é \"open"), Err(UnclosedQuote { position: 3 }));
    }
}
