//! Finds the secret that a command prints and nothing else, in the output of a call and below a prompt:
//!
//! ```text
//! $ vault kv get -field=password secret/db
//! Quay#91side
//! ```

use std::ops::Range;

use super::command::is_public_name;
use super::command_rules::PRINTED_RULES;
use super::env::{self, SETTING};
use super::names::{Strength, announced_secret};
use super::pattern::LazyRegex;
use super::phrases::is_word_phrase;
use super::rule::{PrintedValue, Recognizer, SecretRule};
use super::scan::SecretScan;

/// Number of bytes of the line of a command that are examined.
const MAX_COMMAND_BYTES: usize = 1000;

/// Number of bytes of an output that are examined.
const MAX_OUTPUT_BYTES: usize = 4 << 10;

/// The prompt of a shell.
static PROMPT: LazyRegex = LazyRegex::at_start(r"[^\n$#%❯]{0,80}[$#%❯] ");

/// Returns the kind of the secret that the last command of a line prints, or `None` if the rule is not
/// for this command or if it prints something else.
fn printed_kind(rule: &SecretRule, command: &str) -> Option<&'static str> {
    let Recognizer::Printed(PrintedValue { pattern, needs_secret_name }) = &rule.recognizer else {
        return None;
    };
    if !rule.anchors.iter().any(|anchor| command.contains(anchor)) {
        return None;
    }
    let found = pattern.captures(command)?;
    let path = found.get(1).map_or("", |name| name.as_str()).trim_matches(['"', '\'']);
    let name = path.rsplit(['/', ':']).next().unwrap_or_default();
    match announced_secret(name) {
        Some((kind, _)) => Some(kind),
        // The name of a database is often that of its password.
        None => (!needs_secret_name && (name == "db" || !is_public_name(name)))
            .then_some(rule.kind.name),
    }
}

/// Returns whether a rule is for a command that filters the environment, and the command is one.
fn prints_settings(rule: &SecretRule, command: &str) -> bool {
    let Recognizer::PrintedSettings(pattern) = &rule.recognizer else { return false };
    command.contains("grep") && pattern.regex().is_some_and(|regex| regex.is_match(command))
}

/// Masks the secret in the output of a command that prints nothing else.
pub(super) fn mask_output(scan: &mut SecretScan<'_>, command: &str, output: Range<usize>) {
    let command = command.trim_ascii();
    if command.len() > MAX_COMMAND_BYTES {
        return;
    }
    let output_text = scan.text_from(output.start, output.len().min(MAX_OUTPUT_BYTES));
    // Some agents write the code and the time of a call before its output.
    let lead = output_text.rfind("Output:\n").map_or(0, |at| at + "Output:\n".len());
    let printed = output_text.get(lead..).unwrap_or_default();
    let start = output.start + lead;
    // An earlier command of the line may print something before it.
    let is_alone = !command.contains([';', '&', '\n']);
    let mut lines = printed.lines().filter(|line| !line.trim_ascii().is_empty());
    let line = if is_alone { lines.next() } else { lines.next_back() };
    let value = line.unwrap_or_default().trim_ascii();
    let last_line = command.lines().next_back().unwrap_or_default();
    if is_printed_secret(value)
        && let Some((rule, kind)) =
            PRINTED_RULES.iter().find_map(|rule| Some((rule, printed_kind(rule, last_line)?)))
    {
        let at = value.as_ptr() as usize - printed.as_ptr() as usize;
        scan.rule = Some(&rule.kind);
        scan.add_secret_of(start + at, start + at + value.len(), kind);
    }
    if let Some(rule) = PRINTED_RULES.iter().find(|rule| prints_settings(rule, last_line)) {
        scan.rule = Some(&rule.kind);
        mask_environment(scan, start, printed);
    }
}

/// Returns whether a line is a secret and not a message about one.
fn is_printed_secret(line: &str) -> bool {
    let is_word = !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_graphic());
    let is_message = line.ends_with([':', '.', ',']);
    (is_word && !is_message || is_word_phrase(line)) && env::is_secret(line, Strength::Password)
}

/// Masks the values of an environment that contains only names of secrets.
fn mask_environment(scan: &mut SecretScan<'_>, start: usize, printed: &str) {
    let mut line_start = start;
    for line in printed.split('\n') {
        if let Some(name) = SETTING.captures(line).and_then(|found| found.get(1))
            && let Some((_, value)) = line.split_at_checked(name.end() + 1)
        {
            let value = value.trim_matches(['"', '\'', '\r']);
            let kind = announced_secret(name.as_str()).map_or(scan.kind(), |(kind, _)| kind);
            if !is_public_name(name.as_str()) && env::is_secret(value, Strength::Secret) {
                let value_start = line_start + line.rfind(value).unwrap_or_default();
                scan.add_secret_of(value_start, value_start + value.len(), kind);
            }
        }
        line_start += line.len() + 1;
    }
}

/// Masks the output below the prompt of the command at `at`.
pub(super) fn mask_output_below(scan: &mut SecretScan<'_>, at: usize) {
    if at < scan.command_end {
        return;
    }
    let line_start = scan.run_start(at, MAX_COMMAND_BYTES, |byte| byte != b'\n');
    let line_end = scan.skip_while(at, MAX_COMMAND_BYTES, |byte| byte != b'\n');
    scan.command_end = line_end;
    let line = scan.slice(line_start, line_end);
    let Some(prompt) = PROMPT.captures(line).and_then(|found| found.get(0)) else { return };
    let below = scan.text_from(line_end + 1, MAX_OUTPUT_BYTES);
    let mut length = 0;
    for line in below.split_inclusive('\n') {
        if PROMPT.captures(line).is_some() {
            break;
        }
        length += line.len();
    }
    mask_output(
        scan,
        line.get(prompt.end()..).unwrap_or_default(),
        line_end + 1..line_end + 1 + length,
    );
}
