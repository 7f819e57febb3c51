//! Looks up how a call that fails now was fixed in earlier sessions.
//!
//! A fix is reported only if the very same error, up to numbers, times and hashes, was printed
//! before by the same program, and if a later call of that session shows what was done about it.

use std::sync::LazyLock;

use regex::Regex;
use schemas::session::EventRow;
use schemas::table::EventColumn;
use schemas::tool::analyze::FixMatch;
use schemas::{EventType, ToolError, ToolKind};

use super::action::CALL_COLUMNS;
use super::command::{CommandLine, parse_programs};
use super::past_fix::{ErrorIdentity, KnownFix, identify_error, read_fix};
use super::past_rows::{HistoryScope, find_past_rows, read_past_rows, words_of};
use crate::error::store_error;
use store::{RowFacts, Snapshot};

/// Maximum number of earlier failures with the words of the error whose texts are read.
const MAX_READ_FAILURES: usize = 48;

/// Maximum number of earlier failures with the same error whose fixes are looked for.
const MAX_TRIED_FAILURES: usize = 6;

/// Matches errors that may be gone when the same is tried again, so that no fix explains it; `None`
/// if the pattern is invalid, which a test excludes.
static TRANSIENT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)time(?:d)? ?out|econn|connection (?:refused|reset|closed)|failed to connect|temporar|rate limit|too many requests|\b(?:429|502|503|504)\b|network|try again",
    )
    .ok()
});

/// A call that failed a moment ago.
#[derive(Debug, Clone)]
pub struct LiveFailure<'a> {
    /// Name of the tool, as the agent calls it.
    pub tool: Option<&'a str>,
    /// The command line, if the tool ran one.
    pub command: Option<&'a str>,
    /// The folder in which it ran.
    pub folder: Option<&'a str>,
    /// What the call returned.
    pub output: &'a str,
    /// False if it is not known whether the call failed. Then only an earlier failure of the same
    /// command line counts.
    pub is_certain: bool,
}

/// Returns the newest useful fix of the same error in the sessions of `scope`; `None` if there is
/// none, or if the output does not name an error. `stop` ends the lookup.
///
/// # Errors
/// Returns an error if the store cannot be read.
pub fn find_known_fix(
    snapshot: &Snapshot,
    scope: &HistoryScope,
    failure: &LiveFailure<'_>,
    stop: &dyn Fn() -> bool,
) -> Result<Option<KnownFix>, ToolError> {
    let Some(error) = identify_failure(failure) else { return Ok(None) };
    let words = words_of(&error.line);
    if words.is_empty() || stop() {
        return Ok(None);
    }
    let is_failure =
        |fact: &RowFacts| fact.event_type == EventType::ToolResult && fact.is_error == Some(true);
    let places = find_past_rows(snapshot, scope, &words, &is_failure, MAX_READ_FAILURES)
        .map_err(store_error)?;
    let mut columns = CALL_COLUMNS.to_vec();
    columns.push(EventColumn::Text);
    let mut tried = 0;
    for (place, row) in read_past_rows(snapshot, &places, &columns).map_err(store_error)? {
        if !is_same_failure(failure, &error, &row) {
            continue;
        }
        tried += 1;
        if tried > MAX_TRIED_FAILURES || stop() {
            break;
        }
        let Some(fix) = read_fix(snapshot, place, scope.until)? else { continue };
        // What an edit did for one command says little about another one.
        let has_edits = !fix.edits.is_empty() || fix.between.is_empty();
        let is_by_edit = fix.matched == FixMatch::SameCall && has_edits;
        let is_same = |command| is_same_command(command, failure.folder, row.command.as_deref());
        if fix.is_useful() && (!is_by_edit || failure.command.is_some_and(is_same)) {
            return Ok(Some(fix));
        }
    }
    Ok(None)
}

/// Returns the error by which the same failure of another call is recognized; `None` if the output does
/// not name one, if the error may be gone when the same is tried again, or if it is of a tool that says
/// itself what is wrong with a call.
pub(super) fn identify_failure(failure: &LiveFailure<'_>) -> Option<ErrorIdentity> {
    let kind = failure.command.map(|_| ToolKind::Execute);
    let kind = kind.or_else(|| failure.tool.map(ToolKind::from_name));
    let error = identify_error(failure.output, failure.command, failure.tool, kind)?;
    let is_transient = TRANSIENT.as_ref().is_none_or(|pattern| pattern.is_match(&error.line));
    (!is_transient && may_need_help(kind)).then_some(error)
}

/// Returns true if a failed result, with its text, has the error of a failure and is like it.
pub(super) fn is_same_failure(
    failure: &LiveFailure<'_>,
    error: &ErrorIdentity,
    row: &EventRow,
) -> bool {
    let kind = row.tool_kind.as_deref().and_then(|kind| kind.parse().ok());
    let of_row = identify_error(&row.text, row.command.as_deref(), row.tool_name.as_deref(), kind);
    of_row.is_some_and(|of_row| of_row.line == error.line) && is_like(failure, row)
}

/// Returns true for calls whose failures are worth a hint. The tools that agents have for files and
/// searches say themselves what is wrong with a call.
fn may_need_help(kind: Option<ToolKind>) -> bool {
    match kind {
        None | Some(ToolKind::Execute | ToolKind::Mcp | ToolKind::Other) => true,
        Some(
            ToolKind::Read
            | ToolKind::Edit
            | ToolKind::Write
            | ToolKind::Search
            | ToolKind::Web
            | ToolKind::Plan
            | ToolKind::Agent,
        ) => false,
    }
}

/// Returns true if an earlier failure is of the same program or tool as the call of now, or of the
/// same command line where it is not certain that the call failed.
fn is_like(failure: &LiveFailure<'_>, row: &EventRow) -> bool {
    if !failure.is_certain {
        let same = |command| is_same_command(command, failure.folder, row.command.as_deref());
        return failure.command.is_some_and(same);
    }
    match (failure.command, row.command.as_deref()) {
        (Some(command), Some(other)) => {
            let programs = parse_programs(other);
            parse_programs(command).iter().any(|program| programs.contains(program))
        }
        // A pasted error names no call.
        (None, _) if failure.tool.is_none() => true,
        (None, None) => failure.tool == row.tool_name.as_deref(),
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// Returns true if both command lines are the same. The folder of the earlier one is not known.
pub(super) fn is_same_command(command: &str, folder: Option<&str>, other: Option<&str>) -> bool {
    let Some(other) = other else { return false };
    command.trim() == other.trim()
        || CommandLine::parse(command, folder).is_same_as(&CommandLine::parse(other, folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_pass_are_recognized() {
        let is_transient = |line| TRANSIENT.as_ref().is_some_and(|pattern| pattern.is_match(line));
        for line in ["Error: Timeout of <n>ms exceeded", "connect ECONNREFUSED", "HTTP 503"] {
            assert!(is_transient(line), "{line}");
        }
        assert!(!is_transient("error: unrecognized subcommand 'bun'"));
    }

    #[test]
    fn the_same_command_may_change_to_its_folder_first() {
        assert!(is_same_command("npm test", None, Some(" npm test\n")));
        assert!(is_same_command("cd /a && npm test", None, Some("cd /a; npm test")));
        assert!(!is_same_command("npm test", None, Some("npm test -- x")));
        assert!(!is_same_command("npm test", None, None));
    }
}
