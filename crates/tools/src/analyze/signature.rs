//! Computes error signatures: a message without the parts that vary between occurrences.

use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Maximum length of a signature in bytes.
const MAX_SIGNATURE_BYTES: usize = 160;

/// Matches quoted names, addresses, times, paths, hashes and numbers, in the order in which they
/// are tried. Digits within a word are kept: E0502 and TS2345 name an error.
const VARYING: &str = concat!(
    r#"(?P<name>"[^"\n]+"|`[^`\n]+`|\B'[^'\n]+'\B|‘[^’\n]+’|“[^”\n]+”)"#,
    r"|(?P<url>[A-Za-z][A-Za-z0-9+.-]*://[^\s<>)]+)",
    r"|(?P<time>[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?",
    r"|\b[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?)",
    r"|(?P<path>(?:\b[A-Za-z]:)?[A-Za-z0-9_.~@+-]*(?:[/\\][A-Za-z0-9_.@+%$~*\[\]-]+)+[/\\]?(?::[0-9]+)*",
    r"|[A-Za-z0-9_-]+\.[A-Za-z][A-Za-z0-9]{0,4}(?::[0-9]+)+)",
    r"|(?P<hash>\b0x[0-9A-Fa-f]+|\b[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b|\b[0-9a-f]{7,64}\b)",
    r"|(?P<n>\b[0-9]+(?:[.,_][0-9]+)*)",
);

static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(VARYING).ok());

/// The places in a text where a path with line and column numbers ends.
static LINE_NUMBERS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?::[0-9]+)+$").ok());

/// Replaces the varying parts of a line with `<name>`, `<url>`, `<time>`, `<path>`, `<hash>` and
/// `<n>`.
pub(super) fn normalize_line(line: &str) -> String {
    replace_varying(line, &["name", "url", "time", "path", "hash", "n"])
}

/// Replaces only what varies between two occurrences of the very same error: times, hashes and
/// numbers. The names, addresses and paths in it stay.
pub(super) fn normalize_numbers(line: &str) -> String {
    replace_varying(line, &["time", "hash", "n"])
}

/// Replaces the varying parts of these kinds.
fn replace_varying(line: &str, replaced: &[&str]) -> String {
    let Some(pattern) = &*PATTERN else { return line.to_owned() };
    let plain = pattern.replace_all(line, |found: &Captures<'_>| {
        let text = found.get(0).map_or("", |found| found.as_str());
        let kinds = ["name", "url", "time", "path", "hash", "n"];
        let kind = kinds.into_iter().find(|kind| found.name(kind).is_some());
        match kind {
            Some(kind) if !replaced.contains(&kind) => without_line_numbers(text),
            // A word may consist only of letters that are also hexadecimal digits.
            Some("hash") if !text.contains(|c: char| c.is_ascii_digit()) => text.to_owned(),
            Some("hash") if text.bytes().all(|byte| byte.is_ascii_digit()) => "<n>".to_owned(),
            Some(kind) => format!("<{kind}>"),
            None => text.to_owned(),
        }
    });
    let mut signature = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    signature.truncate(signature.floor_char_boundary(MAX_SIGNATURE_BYTES));
    signature
}

/// Returns a path without the numbers of a line and a column at its end.
fn without_line_numbers(path: &str) -> String {
    let Some(numbers) = &*LINE_NUMBERS else { return path.to_owned() };
    numbers.replace(path, ":<n>").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_error_keeps_its_names_and_paths() {
        for (line, want) in [
            (
                "error: script \"lint\" exited with code 1",
                "error: script \"lint\" exited with code <n>",
            ),
            ("src/a/b.ts(398,32): error TS2304", "src/a/b.ts(<n>): error TS2304"),
            ("main.rs:12:5 is odd", "main.rs:<n> is odd"),
            ("could not apply fb89908 to `x`", "could not apply <hash> to `x`"),
            ("zsh:1: command not found: pyhton", "zsh:<n>: command not found: pyhton"),
        ] {
            assert_eq!(normalize_numbers(line), want);
        }
    }

    #[test]
    fn varying_parts_are_replaced_and_the_rest_stays() {
        for (line, want) in [
            (
                "error: script \"lint\" exited with code 1",
                "error: script <name> exited with code <n>",
            ),
            (
                "src/a/b.ts(398,32): error TS2345: Argument of type 'string' is not assignable",
                "<path>(<n>): error TS2345: Argument of type <name> is not assignable",
            ),
            (
                "error[E0502]: cannot borrow `x` as mutable",
                "error[E0502]: cannot borrow <name> as mutable",
            ),
            ("sed: can't read /home/m/x.md: No such file", "sed: can't read <path>: No such file"),
            (
                "fatal: unable to access 'https://h.example/a.git/'",
                "fatal: unable to access <name>",
            ),
            ("see https://h.example/a?b=1 for more", "see <url> for more"),
            ("Timeout of 2000ms exceeded", "Timeout of <n>ms exceeded"),
            ("2026-10-14T09:12:31.250Z  retry 3 of 10", "<time> retry <n> of <n>"),
            ("2026/01/29 11:06:59 INFO deleted", "<time> INFO deleted"),
            ("could not apply fb89908... fix it", "could not apply <hash>... fix it"),
            ("request 01a13941-6cb9-7f1e-a741-65890d73c8a5 died", "request <hash> died"),
            ("the defaced facade at 0x7ffe12", "the defaced facade at <hash>"),
            ("main.rs:12:5 \t is   odd", "<path> is odd"),
            ("C:\\Users\\m\\x.txt is missing", "<path> is missing"),
            ("", ""),
        ] {
            assert_eq!(normalize_line(line), want);
        }
        assert!(normalize_line(&"word 日本 ".repeat(99)).len() <= MAX_SIGNATURE_BYTES);
    }
}
