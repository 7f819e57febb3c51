//! Reads a command line as it is typed in bash, and writes candidates into it.
//!
//! Bash inserts candidates as they are, so a `$(...)` in one would run at Enter. The line is therefore
//! read by bash's own rules of quoting, and a candidate is quoted for the place that it takes: outside
//! of quotes, or within the quote that the user opened. If that place is not certain, there is none.

use std::iter::Peekable;
use std::mem;
use std::str::CharIndices;

/// Characters besides letters and digits that bash takes literally outside of quotes.
const PLAIN: &str = "-_./:=@%+,";

/// The quote around a place of a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quote {
    None,
    Single,
    Double,
    /// `$'...'`
    Ansi,
}

/// A word of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Word {
    /// The word without its quotes.
    value: String,
    /// False if bash would replace a part of the word, such as a variable.
    is_literal: bool,
}

/// The place of a command line where a candidate is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BashPlace {
    /// The words up to the cursor, the last one possibly incomplete.
    pub(super) words: Vec<String>,
    /// The beginning of the last word that stays in the line: bash replaces only what follows a colon
    /// or an opening quote.
    kept: String,
    quote: Quote,
}

impl BashPlace {
    /// Reads a command line up to the cursor, whose end `replaced` is replaced by a candidate. `None`
    /// if nothing can be completed there, for example in the target of a redirection.
    pub(super) fn find(line: &str, replaced: &str) -> Option<Self> {
        let kept_bytes = line.strip_suffix(replaced)?.len();
        let mut reader = LineReader {
            chars: line.char_indices().peekable(),
            kept_bytes,
            words: Vec::new(),
            word: None,
            quote: Quote::None,
            is_target: false,
            place: None,
        };
        reader.read(line.len())?;
        let (kept, quote) = reader.place?;
        let word = reader.word.unwrap_or(Word { value: String::new(), is_literal: true });
        if !word.is_literal || reader.is_target {
            return None;
        }
        let assigned = reader.words.iter().take_while(|word| is_assignment(word)).count();
        let mut words = reader.words.split_off(assigned);
        words.push(word.value);
        Some(Self { words, kept, quote })
    }

    /// Returns the text that completes the last word to `candidate`. `None` if it does not begin with
    /// the part of the word that stays.
    pub(super) fn quote(&self, candidate: &str) -> Option<String> {
        let rest = candidate.strip_prefix(&self.kept)?;
        let mut out = String::with_capacity(rest.len());
        let mut before = self.kept.chars().next_back();
        let mut chars = rest.chars().peekable();
        while let Some(c) = chars.next() {
            let is_last = chars.peek().is_none();
            match self.quote {
                Quote::None => push_unquoted(&mut out, c, before),
                Quote::Single => push_single_quoted(&mut out, c, is_last),
                Quote::Double => push_double_quoted(&mut out, c, is_last),
                Quote::Ansi => push_ansi_quoted(&mut out, c),
            }
            before = Some(c);
        }
        Some(out)
    }
}

/// Appends a character outside of quotes. `before` is the one before it.
fn push_unquoted(out: &mut String, c: char, before: Option<char>) {
    // A tilde becomes a folder at the beginning, and after these in an assignment.
    let is_plain_tilde = c == '~' && !matches!(before, None | Some(':' | '='));
    if !c.is_alphanumeric() && !PLAIN.contains(c) && !is_plain_tilde {
        out.push('\\');
    }
    out.push(c);
}

/// Appends a character within single quotes. Bash appends the closing quote, unless the text ends with
/// that character; then it must be closed before.
fn push_single_quoted(out: &mut String, c: char, is_last: bool) {
    match c {
        '\'' if is_last => out.push_str(r"'\'"),
        '\'' => out.push_str(r"'\''"),
        c => out.push(c),
    }
}

/// Appends a character within double quotes. For the last one, the same holds as within single quotes.
fn push_double_quoted(out: &mut String, c: char, is_last: bool) {
    match c {
        '"' if is_last => out.push_str(r#""\""#),
        // The history is expanded within these quotes, also after a backslash.
        '!' if is_last => out.push_str(r#""\!"""#),
        '!' => out.push_str(r#""\!""#),
        '$' | '`' | '"' | '\\' => {
            out.push('\\');
            out.push(c);
        }
        c => out.push(c),
    }
}

/// Appends a character within `$'...'`.
fn push_ansi_quoted(out: &mut String, c: char) {
    match c {
        // The history takes `\'` for the closing quote.
        '\'' => out.push_str(r"\x27"),
        '!' => out.push_str(r"\x21"),
        '\\' => out.push_str(r"\\"),
        c => out.push(c),
    }
}

/// Returns a description of a candidate that is harmless at a prompt. Bash has no place for a
/// description, so it follows the candidate in the list of candidates, and a key may insert that.
pub(super) fn harmless_description(description: &str) -> String {
    let shown = |c: char| match c {
        '\'' => '’',
        '"' => '”',
        c if c.is_alphanumeric() || "-_./:@%+,".contains(c) => c,
        _ => ' ',
    };
    let text: String = description.chars().map(shown).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns true if a word before the command sets a variable.
fn is_assignment(word: &str) -> bool {
    let is_name = |name: &str| {
        !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    word.split_once('=').is_some_and(|(name, _)| !name.is_empty() && is_name(name))
}

/// Splits a command line into words.
struct LineReader<'l> {
    chars: Peekable<CharIndices<'l>>,
    /// Number of bytes that stay in the line.
    kept_bytes: usize,
    /// The words before the last one.
    words: Vec<String>,
    /// The word that is being read.
    word: Option<Word>,
    quote: Quote,
    /// True if the word is the target of a redirection.
    is_target: bool,
    /// The part of this word that stays, and the quote at its end.
    place: Option<(String, Quote)>,
}

impl LineReader<'_> {
    /// Reads the whole line, of this number of bytes. `None` if there is more than one command in it,
    /// or something else that this reader does not understand.
    fn read(&mut self, length: usize) -> Option<()> {
        // A part that ends within an escape has no place.
        while let Some((at, c)) = self.chars.next() {
            self.note_place(at);
            match self.quote {
                Quote::None => self.read_unquoted(c)?,
                Quote::Single if c == '\'' => self.quote = Quote::None,
                Quote::Single => self.push(c),
                Quote::Double => self.read_double_quoted(c)?,
                Quote::Ansi => self.read_ansi_quoted(c)?,
            }
        }
        self.note_place(length);
        Some(())
    }

    fn read_unquoted(&mut self, c: char) -> Option<()> {
        match c {
            '\\' => return self.push_escaped(),
            '\'' => self.open(Quote::Single),
            '"' => self.open(Quote::Double),
            '$' if self.next_is(&['\'']) => {
                self.chars.next();
                self.open(Quote::Ansi);
            }
            '$' | '`' | '*' | '?' | '[' | '{' => self.push_replaced(c),
            '~' if self.word.is_none() => self.push_replaced(c),
            ' ' | '\t' => self.end_word(),
            '<' | '>' => {
                // A number before it belongs to the redirection.
                if self.word.as_ref().is_some_and(is_number) {
                    self.word = None;
                }
                self.end_word();
                self.is_target = true;
            }
            '#' if self.word.is_none() => return None,
            ';' | '|' | '&' | '(' | ')' | '\n' => return None,
            c => self.push(c),
        }
        Some(())
    }

    fn read_double_quoted(&mut self, c: char) -> Option<()> {
        match c {
            '"' => self.quote = Quote::None,
            '\\' if self.chars.peek().is_none() || self.next_is(&['$', '`', '"', '\\']) => {
                return self.push_escaped();
            }
            '$' | '`' => self.push_replaced(c),
            c => self.push(c),
        }
        Some(())
    }

    /// Reads a character within `$'...'`. Only the escapes are known that [`BashPlace::quote`] writes.
    fn read_ansi_quoted(&mut self, c: char) -> Option<()> {
        match c {
            '\'' => self.quote = Quote::None,
            '\\' if self.next_is(&['\\', '\'', '"', '?']) => return self.push_escaped(),
            '\\' if self.next_is(&['x']) => {
                let digits: String = self.chars.by_ref().skip(1).take(2).map(|(_, c)| c).collect();
                let byte = u8::from_str_radix(&digits, 16).ok().filter(u8::is_ascii)?;
                self.push(char::from(byte));
            }
            '\\' => return None,
            c => self.push(c),
        }
        Some(())
    }

    /// Notes the place of candidates if the part that stays ends here.
    fn note_place(&mut self, at: usize) {
        if at == self.kept_bytes {
            let kept = self.word.as_ref().map_or("", |word| &word.value);
            self.place = Some((kept.to_owned(), self.quote));
        }
    }

    fn next_is(&mut self, any: &[char]) -> bool {
        self.chars.peek().is_some_and(|(_, next)| any.contains(next))
    }

    fn word(&mut self) -> &mut Word {
        self.word.get_or_insert(Word { value: String::new(), is_literal: true })
    }

    fn push(&mut self, c: char) {
        self.word().value.push(c);
    }

    /// Appends a character with which a part begins that bash replaces.
    fn push_replaced(&mut self, c: char) {
        let word = self.word();
        word.is_literal = false;
        word.value.push(c);
    }

    /// Appends the character after a backslash. `None` if the line ends there, and a candidate would
    /// follow the backslash.
    fn push_escaped(&mut self) -> Option<()> {
        match self.chars.next() {
            Some((_, c)) => self.push(c),
            None => {
                self.place.as_ref()?;
            }
        }
        Some(())
    }

    fn open(&mut self, quote: Quote) {
        self.word();
        self.quote = quote;
    }

    /// Ends the word. The target of a redirection is not a word of the command.
    fn end_word(&mut self) {
        self.place = None;
        if let Some(word) = self.word.take()
            && !mem::take(&mut self.is_target)
        {
            self.words.push(word.value);
        }
    }
}

/// Returns true if a word can be the number of a file that is redirected.
fn is_number(word: &Word) -> bool {
    word.value.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(line: &str, replaced: &str, candidate: &str) -> Option<String> {
        let text = BashPlace::find(line, replaced)?.quote(candidate)?;
        Some(format!("{}{text}", &line[..line.len() - replaced.len()]))
    }

    #[test]
    fn candidates_are_quoted_for_their_place() {
        let evil = "7f$(x)`y`'\"!\\ z";
        for (line, replaced, wanted) in [
            ("s show 7", "7", r#"s show 7f\$\(x\)\`y\`\'\"\!\\\ z"#),
            ("s show ", "", r#"s show 7f\$\(x\)\`y\`\'\"\!\\\ z"#),
            ("s show '7", "7", r#"s show '7f$(x)`y`'\''"!\ z"#),
            ("s show \"7f\\$", "7f\\$", r#"s show "7f\$(x)\`y\`'\""\!"\\ z"#),
            ("s show $'7f", "7f", r#"s show $'7f$(x)`y`\x27"\x21\\ z"#),
            ("s show $'7f$(x)`y`\\x27", "7f$(x)`y`\\x27", r#"s show $'7f$(x)`y`\x27"\x21\\ z"#),
            ("s show \"7\"f\\$", "\"7\"f\\$", r#"s show 7f\$\(x\)\`y\`\'\"\!\\\ z"#),
            ("s show 7\\", "7\\", r#"s show 7f\$\(x\)\`y\`\'\"\!\\\ z"#),
        ] {
            assert_eq!(completed(line, replaced, evil).as_deref(), Some(wanted), "{line}");
        }
        for (line, candidate, wanted) in [
            // What bash does not close is closed.
            ("s show '7", "7'", r#"s show '7'\'"#),
            ("s show \"7", "7\"", r#"s show "7"\""#),
            ("s show \"7", "7!", r#"s show "7"\!"""#),
        ] {
            assert_eq!(completed(line, "7", candidate).as_deref(), Some(wanted), "{line}");
        }
        let find = |line, replaced| BashPlace::find(line, replaced).map(|place| place.words);
        let project = completed("s list --project=ac", "ac", "--project=ac me");
        assert_eq!(project.as_deref(), Some(r"s list --project=ac\ me"));
        assert_eq!(completed("s show a", "a", "a~2").as_deref(), Some("s show a~2"));
        assert_eq!(completed("s show ", "", "~root:~x").as_deref(), Some(r"s show \~root:\~x"));
        assert_eq!(
            find("X=1 s '' a\\ b 2> err \"c d\" e", "e"),
            Some(words(&["s", "", "a b", "c d", "e"]))
        );
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn an_uncertain_place_has_no_candidates() {
        for (line, replaced) in [
            ("s show a\\", ""),
            ("s show a\\$", "$"),
            ("s show $HOME", "HOME"),
            ("s show \"$(7f", "7f"),
            ("s show `7f", "7f"),
            ("s show ~7f", "~7f"),
            ("s show a*b", "a*b"),
            ("s show $'a\\u0041", "41"),
            ("s show x > 7f", "7f"),
            ("s show a b", "a b"),
            ("s show 7f", "other"),
            ("a; s show 7f", "7f"),
        ] {
            assert_eq!(BashPlace::find(line, replaced), None, "{line}");
        }
    }

    #[test]
    fn descriptions_have_nothing_that_runs() {
        assert_eq!(harmless_description("Don't $(touch x); `y` \"z\""), "Don’t touch x y ”z”");
    }
}
