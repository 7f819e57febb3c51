//! What a failed call's text has in common with others of its kind.

/// Lines looked at, and characters of a signature.
const LINES: usize = 400;
const CHARS: usize = 160;

/// How agents frame the output of a command; says nothing of what went wrong.
const FRAMES: &[&str] = &[
    "exit code",
    "wall time",
    "chunk id",
    "process exited",
    "command exited",
    "original token count",
    "output:",
    "$ ",
    "> ",
];

/// Words of lines that say what went wrong.
const TELLING: &[&str] = &[
    "error",
    "fail",
    "fatal",
    "panic",
    "exception",
    "denied",
    "not found",
    "no such",
    "cannot",
    "can't",
    "refused",
    "timed out",
    "rejected",
    "invalid",
    "doesn't",
    "does not",
];

/// Begin lines of tests that passed, whatever they are called.
const PASSED: &[&str] = &["✔", "✓", "(pass)", "ok ", "pass "];

/// The line that tells most, with paths, ids and numbers taken out.
pub(super) fn signature(text: &str) -> String {
    let plain = text.replace("<tool_use_error>", "").replace("</tool_use_error>", "");
    let lines: Vec<&str> =
        plain.lines().map(str::trim).filter(|line| !line.is_empty()).take(LINES).collect();
    let begins = |line: &str, with: &[&str]| {
        let line = line.to_lowercase();
        with.iter().any(|beginning| line.starts_with(beginning))
    };
    let says = |line: &&&str| {
        let lower = line.to_lowercase();
        !begins(line, PASSED) && TELLING.iter().any(|word| lower.contains(word))
    };
    let mut content = lines.iter().filter(|line| !begins(line, FRAMES));
    let line = content.clone().find(says).or_else(|| content.next()).or(lines.first());
    let words = line.unwrap_or(&"").split_whitespace().map(word);
    let found = words.collect::<Vec<_>>().join(" ");
    match found.char_indices().nth(CHARS) {
        Some((at, _)) => found.get(..at).unwrap_or_default().to_owned(),
        None if found.is_empty() => "(no text)".to_owned(),
        None => found,
    }
}

/// A word without what differs from time to time.
fn word(word: &str) -> String {
    let around = |c: char| !c.is_alphanumeric() && !matches!(c, '/' | '\\' | '.' | '~' | '_' | '-');
    let core = word.trim_matches(around);
    let is_path = core.len() > 1 && core.contains(['/', '\\']);
    let digits = core.bytes().filter(u8::is_ascii_digit).count();
    let hexadecimal = core.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let stands_for = match core {
        _ if is_path => "<path>".to_owned(),
        _ if core.len() >= 7 && digits > 0 && hexadecimal => "<id>".to_owned(),
        // Digits inside a word stay: E0502 names an error.
        _ if core.starts_with(|c: char| c.is_ascii_digit()) => "<n>".to_owned(),
        core => core.to_owned(),
    };
    if core.is_empty() { word.to_owned() } else { word.replacen(core, &stands_for, 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alike_errors_have_one_signature() {
        let same = [
            (
                "Exit code 101\nrunning 3 tests\nerror[E0502]: cannot borrow at src/a.rs:12",
                "Exit code 101\nerror[E0502]: cannot borrow at lib/b.rs:7:3",
            ),
            ("<tool_use_error>File does not exist.</tool_use_error>", "File does not exist."),
            (
                "✔ no error here\nfatal: commit 3f2a9b1c not found",
                "fatal: commit 77aa01d not found",
            ),
            ("Process exited with code 1", "Process exited with code 2"),
        ];
        for (one, other) in same {
            assert_eq!(signature(one), signature(other));
        }
        assert_eq!(
            signature("Exit code 2\n\n$ make\nmake: no rule for 'x' in /tmp/y, stop: 3 errors"),
            "make: no rule for 'x' in <path>, stop: <n> errors"
        );
        assert_eq!(signature(" \n"), "(no text)");
        assert!(signature(&"é".repeat(500)).chars().count() <= CHARS);
    }
}
