//! Finds the part of a failed call's text that says what is wrong.

use std::sync::LazyLock;

use regex::Regex;

use super::finding::short;
use super::signature;
use crate::base::sanitize::clean;

/// Maximum size of the excerpt in bytes, and the maximum bytes of a line and lines of a text that
/// are examined.
const EXCERPT: usize = 400;
const LINE: usize = 300;
const LINES: usize = 4000;

/// Lines shorter than this, in bytes, get little weight: `error:` alone says nothing.
const LEAST: usize = 8;

/// Lines that only introduce the output of a command: whole lines, and beginnings of lines.
const WHOLE: &[&str] =
    &["output:", "output: (empty)", "stdout:", "stderr:", "error: (none)", "(no output)"];
const HEADS: &[&str] = &[
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

type Pattern = LazyLock<Option<Regex>>;

/// Matches lines that name an error.
static STRONG: Pattern = LazyLock::new(|| {
    Regex::new(
        r"(?i)(?:^|[^a-z])(?:error|fatal)(?:\[[a-z0-9]+\])?:|[a-z](?:error|exception):|assert(?:ion)?\b.*\bfail|\berror ts[0-9]|command not found|no such file|permission denied|\bundefined: |\bcannot find ",
    )
    .ok()
});

/// Matches lines that show that something is wrong.
static WEAK: Pattern = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b(?:errors?|fail(?:ed|ure|s)?|panicked|cannot|can't|could not|couldn't|not found|no matches|does not exist|doesn't|denied|refused|timed? ?out|unable|invalid|unknown|unrecognized|unexpected|undefined|missing|not allowed|aborted|conflict|must)\b",
    )
    .ok()
});

/// Matches lines that only report that a nested step failed.
static WRAPPER: Pattern = LazyLock::new(|| {
    Regex::new(
        r"(?i)script .*exited|task failed|exited with (?:code|error)|command failed|could not compile|test failed, to rerun|elifecycle|aborting due to|\bfound [0-9]+ (?:error|problem)|\b[0-9]+ (?:errors?|failed|failures?|problems?)\b|non-zero|test result: failed|^failures:",
    )
    .ok()
});

/// Matches lines that show success.
static RIGHT: Pattern = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b(?:0|no) (?:errors?|fail(?:ed|ures?|ing)?|warnings)\b|\b(?:failed|errors|failures): ?0\b|✓|\.\.\. ok$|^\s*(?:pass|ok)\b",
    )
    .ok()
});

/// The prefix with which Claude Code marks its own errors, as opposed to the tool's.
const TOOL_ERROR: &str = "<tool_use_error>";

/// The error that a text reports.
pub(super) struct Telling {
    /// The text from the most informative line on, shortened; empty if there was no output.
    pub excerpt: String,
    pub signature: String,
}

/// Finds the error in a text. `who` is the program or the tool; it is added to the signature if the
/// line has a weight of 0 or 1.
pub(super) fn telling(text: &str, who: &str, is_command_output: bool) -> Telling {
    let text = clean(text);
    // An agent's own error begins with what is wrong; the call's input follows it.
    let lines = if text.trim_start().starts_with(TOOL_ERROR) { 1 } else { LINES };
    let text = body(&text);
    // The weight, the start and the content of the line; the first of the heaviest lines wins.
    let mut best: Option<(u8, usize, &str)> = None;
    let mut last = None;
    let mut from = 0;
    for line in text.split_inclusive('\n').take(lines) {
        let start = from;
        from += line.len();
        let line = line.trim();
        let line = line.strip_prefix("Output: ").unwrap_or(line);
        if line.is_empty() || is_head(line) {
            continue;
        }
        let weight = weight(line);
        if best.is_none_or(|(heaviest, ..)| weight > heaviest) {
            best = Some((weight, start, line));
        }
        last = Some((0, start, line));
        if weight == 3 {
            break;
        }
    }
    // A command whose output names no error ends with the line that stopped it.
    let chosen = best.filter(|(weight, ..)| *weight > 0 || !is_command_output).or(last);
    let Some((weight, start, line)) = chosen else {
        let signature = format!("{who}: no output");
        return Telling { excerpt: String::new(), signature };
    };
    let line = signature::normalise(&line[..line.floor_char_boundary(LINE)]);
    let signature = if weight > 1 { line } else { format!("{who}: {line}") };
    let excerpt = text.get(start..).unwrap_or_default().trim_start();
    Telling { excerpt: short(excerpt, EXCERPT), signature }
}

/// Returns the text without the words that an agent wraps around it.
fn body(text: &str) -> &str {
    let text = text.trim_start();
    let sandboxed = text.split_once(", stdout: ");
    let sandboxed = sandboxed.filter(|(head, _)| head.starts_with("failed in sandbox"));
    let text = sandboxed.map_or(text, |(_, output)| output);
    let text = text.strip_prefix(TOOL_ERROR).unwrap_or(text).trim_end();
    text.strip_suffix("</tool_use_error>").unwrap_or(text)
}

/// Returns true if a line only introduces the output of a command.
pub(super) fn is_head(line: &str) -> bool {
    if line.len() > LINE {
        return false;
    }
    let lower = line.to_ascii_lowercase();
    let exit = lower.strip_prefix("exit code").or_else(|| lower.strip_prefix("exit status"));
    let only_code = |rest: &str| rest.trim_matches([':', ' ']).bytes().all(|b| b.is_ascii_digit());
    WHOLE.contains(&lower.as_str())
        || HEADS.iter().any(|head| lower.starts_with(head))
        || exit.is_some_and(only_code)
}

/// Returns how informative a line is: 3 names an error, 2 shows that something is wrong, 1 reports
/// that a nested step failed, 0 is anything else.
fn weight(line: &str) -> u8 {
    let line = &line[..line.floor_char_boundary(LINE)];
    // A command that is echoed before it runs may contain many such words.
    if line.starts_with("$ ") || line.contains("] $ ") {
        return 0;
    }
    let has = |pattern: &Pattern| match &**pattern {
        Some(pattern) => pattern.is_match(line),
        None => false,
    };
    let most = if line.len() < LEAST { 1 } else { 3 };
    let weight = if has(&RIGHT) {
        0
    } else if has(&WRAPPER) {
        1
    } else if has(&STRONG) {
        3
    } else if has(&WEAK) {
        2
    } else {
        0
    };
    weight.min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patterns_compile() {
        for pattern in [&STRONG, &WEAK, &WRAPPER, &RIGHT] {
            assert!(pattern.is_some());
        }
    }

    #[test]
    fn the_line_that_says_what_is_wrong_is_found() {
        let check = |text: &str, excerpt: &str, signature: &str| {
            let told = telling(text, "cargo test", true);
            assert!(told.excerpt.starts_with(excerpt), "{}", told.excerpt);
            assert_eq!(told.signature, signature);
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
        let told = telling("<tool_use_error>File has gone.</tool_use_error>", "Read", false);
        assert_eq!(
            (told.excerpt.as_str(), told.signature.as_str()),
            ("File has gone.", "Read: File has gone.")
        );
        let echoed = "<tool_use_error>Text not found.\nText: Error: unexpected</tool_use_error>";
        assert_eq!(telling(echoed, "Edit", false).signature, "Text not found.");
    }
}
