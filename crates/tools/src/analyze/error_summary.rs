//! Finds the line of a failed call's text that names the error.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::signature;
use crate::reply::convert::shorten;
use base::dropped_text::kept_part;
use base::sanitize::clean_text;

/// Maximum size of the excerpt in bytes.
const MAX_EXCERPT_BYTES: usize = 400;

/// Maximum number of bytes of a line that are examined.
const MAX_LINE_BYTES: usize = 300;

/// Maximum number of lines of a text that are examined.
const MAX_LINES: usize = 4000;

/// Lines shorter than this get little weight: `error:` alone says nothing.
const MIN_LINE_BYTES: usize = 8;

/// Lines that only introduce the output of a command.
const HEADER_LINES: &[&str] =
    &["output:", "output: (empty)", "stdout:", "stderr:", "error: (none)", "(no output)"];

/// Beginnings of lines that only introduce the output of a command.
const HEADER_BEGINNINGS: &[&str] = &[
    "chunk id: ",
    "wall time: ",
    "process exited with code ",
    "command exited with code ",
    "(command exited with code ",
    "original token count: ",
    "total output lines: ",
    "command: ",
    "directory: ",
    "signal: ",
    "background pids: ",
    "process group pgid: ",
    "<shellid: ",
];

/// A pattern of lines, compiled on first use; `None` if it is invalid, which a test excludes.
type ErrorPattern = LazyLock<Option<Regex>>;

/// Matches lines that name an error.
static STRONG: ErrorPattern = LazyLock::new(|| {
    Regex::new(
        r"(?i)(?:^|[^a-z])(?:error|fatal)(?:\[[a-z0-9]+\])?:|[a-z](?:error|exception):|assert(?:ion)?\b.*\bfail|\berror ts[0-9]|command not found|no such file|permission denied|\bundefined: |\bcannot find ",
    )
    .ok()
});

/// Matches lines that show that something is wrong.
static WEAK: ErrorPattern = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b(?:errors?|fail(?:ed|ure|s)?|panicked|cannot|can't|could not|couldn't|not found|no matches|does not exist|doesn't|denied|refused|timed? ?out|unable|invalid|unknown|unrecognized|unexpected|undefined|missing|not allowed|aborted|conflict|must)\b",
    )
    .ok()
});

/// Matches lines that only report that a nested step failed.
static WRAPPER: ErrorPattern = LazyLock::new(|| {
    Regex::new(
        r"(?i)script .*exited|task failed|exited with (?:code|error)|command failed|could not compile|test failed, to rerun|elifecycle|aborting due to|\bfound [0-9]+ (?:error|problem)|\b[0-9]+ (?:errors?|failed|failures?|problems?)\b|non-zero|test result: failed|^failures:",
    )
    .ok()
});

/// Matches lines that show success.
static SUCCESS: ErrorPattern = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b(?:0|no) (?:errors?|fail(?:ed|ures?|ing)?|warnings)\b|\b(?:failed|errors|failures): ?0\b|[✓✔]|\.\.\. ok$|^\s*(?:pass|ok)\b",
    )
    .ok()
});

/// The weight of a line that names an error.
const MAX_WEIGHT: u8 = 3;

/// The prefix with which Claude Code marks its own errors, as opposed to the tool's.
const TOOL_ERROR: &str = "<tool_use_error>";

/// The error that a text reports.
pub(super) struct ErrorSummary {
    /// The text from the most informative line on, shortened; empty if there was no output.
    pub excerpt: String,
    pub signature: String,
    /// True if the first line of the excerpt names an error or shows that something is wrong. It
    /// is then characteristic of the error, whatever program printed it.
    pub names_error: bool,
}

/// A line that may name the error.
#[derive(Debug, Clone, Copy)]
struct ErrorLine<'t> {
    weight: u8,
    /// The byte offset at which the line begins.
    start: usize,
    text: &'t str,
}

/// Finds the error in a text. `who` is the program or the tool; it is added to the signature if the
/// line has a weight of 0 or 1.
pub(super) fn summarize_error(text: &str, who: &str, is_command_output: bool) -> ErrorSummary {
    let kept = kept_part(text);
    let is_dropped = kept.len() < text.len();
    let text = clean_text(kept);
    // An agent's own error begins with what is wrong; the call's input follows it.
    let max_lines = if text.trim_start().starts_with(TOOL_ERROR) { 1 } else { MAX_LINES };
    let text = strip_wrapping(&text);
    let Some(line) = error_line(text, max_lines, is_command_output) else {
        let reason = if is_dropped { "text dropped by retention" } else { "no output" };
        let signature = format!("{who}: {reason}");
        return ErrorSummary { excerpt: String::new(), signature, names_error: false };
    };
    let examined = &line.text[..line.text.floor_char_boundary(MAX_LINE_BYTES)];
    let error = signature::normalize_line(examined);
    let signature = if line.weight > 1 { error } else { format!("{who}: {error}") };
    let excerpt = text.get(line.start..).unwrap_or_default().trim_start();
    ErrorSummary {
        excerpt: shorten(excerpt, MAX_EXCERPT_BYTES),
        signature,
        names_error: line.weight > 1,
    }
}

/// Returns the lines of an output that say something, without the parts that vary between two occurrences of
/// the very same error: times, hashes and numbers. Returns `None` if there are more than `most`.
pub(super) fn distinct_lines(text: &str, most: usize) -> Option<BTreeSet<String>> {
    let text = clean_text(kept_part(text));
    let mut lines = BTreeSet::new();
    for line in strip_wrapping(&text).lines().map(str::trim) {
        let line = line.strip_prefix("Output: ").unwrap_or(line);
        if !line.is_empty() && !is_header_line(line) {
            lines.insert(signature::normalize_numbers(line));
        }
        if lines.len() > most {
            return None;
        }
    }
    Some(lines)
}

/// Returns the first of the most informative lines. If no line of a command's output names an
/// error, it is the last line, with which the command stopped.
fn error_line(text: &str, max_lines: usize, is_command_output: bool) -> Option<ErrorLine<'_>> {
    let mut best: Option<ErrorLine<'_>> = None;
    let mut last = None;
    let mut end = 0;
    for line in text.split_inclusive('\n').take(max_lines) {
        let start = end;
        end += line.len();
        let line = line.trim();
        let line = line.strip_prefix("Output: ").unwrap_or(line);
        if line.is_empty() || is_header_line(line) {
            continue;
        }
        let weight = line_weight(line);
        if best.is_none_or(|best| weight > best.weight) {
            best = Some(ErrorLine { weight, start, text: line });
        }
        last = Some(ErrorLine { weight: 0, start, text: line });
        if weight == MAX_WEIGHT {
            break;
        }
    }
    match best {
        Some(best) if best.weight > 0 || !is_command_output => Some(best),
        Some(_) | None => last,
    }
}

/// Returns the signatures of the errors that a text names, as the terminal printed it: at most `max`,
/// the first of the most informative lines first. If no line names an error, they are those of the
/// last line, with which a command stopped, and of the first.
pub(super) fn named_errors(text: &str, max: usize) -> Vec<String> {
    let text = clean_text(text);
    let mut lines: Vec<(u8, &str)> = Vec::new();
    for line in strip_wrapping(&text).lines().take(MAX_LINES).map(str::trim) {
        if let Some(error) = line.strip_prefix(TOOL_ERROR) {
            // An agent's own error; the call's input follows it.
            lines = vec![(MAX_WEIGHT, strip_wrapping(error))];
            break;
        }
        if !line.is_empty() && !line.starts_with("$ ") && !is_header_line(line) {
            lines.push((line_weight(line), line));
        }
    }
    // Sorting is stable: lines of one weight stay in their order.
    lines.sort_by_key(|(weight, _)| Reverse(*weight));
    let best = lines.first().map_or(0, |(weight, _)| *weight);
    if best == 0 {
        lines = lines.last().into_iter().chain(lines.first()).copied().collect();
    }

    let mut signatures: Vec<String> = Vec::new();
    for (_, line) in lines.into_iter().filter(|(weight, _)| *weight >= best.min(2)) {
        let examined = &line[..line.floor_char_boundary(MAX_LINE_BYTES)];
        let signature = signature::normalize_line(examined);
        if signatures.len() < max && !signatures.contains(&signature) {
            signatures.push(signature);
        }
    }
    signatures
}

/// Returns true if a line of a text names an error, or if one of several lines shows that something is
/// wrong.
pub(crate) fn names_error(text: &str) -> bool {
    let least = if text.contains('\n') { 2 } else { MAX_WEIGHT };
    clean_text(text).lines().take(MAX_LINES).any(|line| line_weight(line.trim()) >= least)
}

/// Returns the text without the words that an agent wraps around it.
fn strip_wrapping(text: &str) -> &str {
    let text = text.trim_start();
    let text = match text.split_once(", stdout: ") {
        Some((head, output)) if head.starts_with("failed in sandbox") => output,
        _ => text,
    };
    let text = text.strip_prefix(TOOL_ERROR).unwrap_or(text).trim_end();
    text.strip_suffix("</tool_use_error>").unwrap_or(text)
}

/// Returns true if a line only introduces the output of a command.
pub(super) fn is_header_line(line: &str) -> bool {
    if line.len() > MAX_LINE_BYTES {
        return false;
    }
    let lower = line.to_ascii_lowercase();
    if HEADER_LINES.contains(&lower.as_str())
        || HEADER_BEGINNINGS.iter().any(|beginning| lower.starts_with(beginning))
    {
        return true;
    }
    let exit = lower.strip_prefix("exit code").or_else(|| lower.strip_prefix("exit status"));
    let code = exit.map(|exit| exit.trim_matches([':', ' ']));
    code.is_some_and(|code| code.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns how informative a line is: 3 names an error, 2 shows that something is wrong, 1 reports
/// that a nested step failed, 0 is anything else.
fn line_weight(line: &str) -> u8 {
    let line = &line[..line.floor_char_boundary(MAX_LINE_BYTES)];
    // A command that is echoed before it runs may contain many such words.
    if line.starts_with("$ ") || line.contains("] $ ") {
        return 0;
    }
    let weight = if has_match(&SUCCESS, line) {
        0
    } else if has_match(&WRAPPER, line) {
        1
    } else if has_match(&STRONG, line) {
        MAX_WEIGHT
    } else if has_match(&WEAK, line) {
        2
    } else {
        0
    };
    if line.len() < MIN_LINE_BYTES { weight.min(1) } else { weight }
}

fn has_match(pattern: &ErrorPattern, line: &str) -> bool {
    match &**pattern {
        Some(pattern) => pattern.is_match(line),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_errors_of_a_pasted_text_are_named() {
        for (text, wanted) in [
            (
                "$ make\nerror: no rule\nerror: no rule\nfatal: stop",
                &["error: no rule", "fatal: stop"][..],
            ),
            ("$ make\nfirst\nsecond\nthird", &["third", "first"]),
            ("x\n<tool_use_error>It has gone.\nerror: x</tool_use_error>", &["It has gone."]),
            ("$ make", &[]),
        ] {
            assert_eq!(named_errors(text, 3), wanted, "{text}");
        }
    }

    #[test]
    fn the_patterns_compile() {
        for pattern in [&STRONG, &WEAK, &WRAPPER, &SUCCESS] {
            assert!(pattern.is_some());
        }
    }

    #[test]
    fn the_line_that_names_the_error_is_found() {
        let check = |text: &str, excerpt: &str, signature: &str| {
            let error = summarize_error(text, "cargo test", true);
            assert!(error.excerpt.starts_with(excerpt), "{}", error.excerpt);
            assert_eq!(error.signature, signature);
        };
        check(
            "Exit code 101\n   Compiling harbor v0.9.2\n test a ... ok\n\nthread 'a' panicked at src/a.rs:1:2:\nassertion `left == right` failed\n  left: 3",
            "assertion `left == right` failed\n  left: 3",
            "assertion <name> failed",
        );
        check(
            "Chunk ID: 5b4b9c\nWall time: 0.4844 seconds\nProcess exited with code 128\nOutput:\nhint: x\nfatal: Needed a single revision",
            "fatal:",
            "fatal: Needed a single revision",
        );
        check(
            "src/x.go:3:1: Error return value is not checked\nerror: script \"lint\" exited with code 1",
            "src/x.go",
            "<path>: Error return value is not checked",
        );
        check(
            "error: script \"lint\" exited with code 1",
            "error: script",
            "cargo test: error: script <name> exited with code <n>",
        );
        check("Exit code 1\na\nb", "b", "cargo test: b");
        check("Exit code 1", "", "cargo test: no output");
        check(
            "failed in sandbox LinuxSeccomp with execution error: sandbox denied exec error, exit code: 1, stdout: 0 failed\nboom, stderr: y",
            "boom",
            "cargo test: boom, stderr: y",
        );
        let passed = "✔ errors are shown\nnot ok 3 - it works";
        assert_eq!(summarize_error(passed, "npm", true).signature, "npm: not ok <n> - it works");
        let error =
            summarize_error("<tool_use_error>File has gone.</tool_use_error>", "Read", false);
        assert_eq!(
            (error.excerpt.as_str(), error.signature.as_str()),
            ("File has gone.", "Read: File has gone.")
        );
        let echoed = "<tool_use_error>Text not found.\nText: Error: unexpected</tool_use_error>";
        assert_eq!(summarize_error(echoed, "Edit", false).signature, "Text not found.");
    }
}
