//! Describes how a failed call of an earlier session was fixed.

use schemas::session::EventRow;
use schemas::tool::analyze::{FixEdit, FixMatch};
use schemas::{ToolError, ToolKind};

use super::action::{Action, CALL_COLUMNS, pair_calls};
use super::command::{is_reading_command, parse_programs};
use super::error_summary::summarize_error;
use super::failures::program_or_tool;
use super::fix::{self, FixingCall};
use super::past_rows::PastRow;
use super::signature::normalize_numbers;
use crate::error::store_error;
use crate::reply::convert::shorten;
use crate::reply::{convert, rows};
use base::sanitize::one_line;
use store::Snapshot;

/// Events before a result among which its call is looked for.
const CALL_REACH: u32 = 80;

/// Events after a failure among which its fix is looked for.
const FIX_REACH: u32 = 300;

/// Maximum number of calls between a failure and its fix. With more, the agent was busy with
/// something else in between.
const MAX_CALLS_BETWEEN: usize = 12;

/// Maximum number of commands between a failure and its fix that are reported.
const MAX_BETWEEN: usize = 3;

/// Maximum size of a shown command line or error line in bytes.
const MAX_SHOWN_BYTES: usize = 240;

/// A fix of an earlier failure that is like a call of now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownFix {
    /// Position in `Snapshot::sessions`.
    pub session: usize,
    /// Time of the earlier failure, in microseconds since the epoch.
    pub time: i64,
    /// Ids of the earlier failure and of the call that worked.
    pub failed_id: String,
    pub worked_id: String,
    /// How the call that worked is related to the one that failed.
    pub matched: FixMatch,
    pub calls_between: usize,
    /// The line that names the error. Untrusted, like the texts below.
    pub error_line: String,
    pub failed_call: String,
    pub worked_call: String,
    /// Commands that ran between the two and may have changed something.
    pub between: Vec<String>,
    /// The last edits between the two.
    pub edits: Vec<FixEdit>,
}

/// The line that names an error, without what varies between two occurrences of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ErrorIdentity {
    pub(super) line: String,
    /// The same line as it was printed, shortened.
    shown: String,
}

/// Returns the fix of a failed call in the store, however useful; `None` if nothing similar worked
/// afterwards. `event_index` is that of the result.
///
/// # Errors
/// Returns an error if the store cannot be read.
pub fn find_fix_of_event(
    snapshot: &Snapshot,
    session: usize,
    event_index: u32,
) -> Result<Option<KnownFix>, ToolError> {
    read_fix(snapshot, PastRow { time: 0, session, event_index }, i64::MAX)
}

/// Returns the line that names the error in an output; `None` if no line does.
pub(super) fn identify_error(
    output: &str,
    command: Option<&str>,
    tool: Option<&str>,
    kind: Option<ToolKind>,
) -> Option<ErrorIdentity> {
    let who = program_or_tool(command, tool);
    let summary = summarize_error(output, &who, kind == Some(ToolKind::Execute));
    if !summary.names_error {
        return None;
    }
    let first_line = summary.excerpt.lines().next()?.trim();
    // Gemini CLI writes the output after this word.
    let shown = first_line.strip_prefix("Output: ").unwrap_or(first_line);
    let line = normalize_numbers(shown);
    Some(ErrorIdentity { line, shown: shorten(shown, MAX_SHOWN_BYTES) })
}

/// Reads the fix of a failed call from the rows of its session before the time `until`.
pub(super) fn read_fix(
    snapshot: &Snapshot,
    place: PastRow,
    until: i64,
) -> Result<Option<KnownFix>, ToolError> {
    let first = place.event_index.saturating_sub(CALL_REACH);
    let last = place.event_index.saturating_add(FIX_REACH);
    let range = first..last;
    let events = snapshot.events_of(place.session, std::slice::from_ref(&range), CALL_COLUMNS);
    let mut linked = events.read_rows().map_err(store_error)?;
    linked.retain(|row| is_visible(row, until));
    let folder = snapshot.sessions()[place.session].origin.cwd.as_deref();
    let actions = pair_calls(&linked);
    let Some(failed) = position_of_failure(&actions, place.event_index) else { return Ok(None) };
    let lines = fix::parse_command_lines(&actions, folder);
    let Some(found) = fix::find_fixing_call(&actions, &lines, failed) else { return Ok(None) };
    let call_index = actions[failed].call.event_index;
    let worked = &actions[found.at];
    let (worked_index, outcome_index) =
        (worked.call.event_index, worked.outcome_event().event_index);

    // The texts show what changed.
    let begin = convert::unsigned_index(call_index).min(place.event_index);
    let end = convert::unsigned_index(outcome_index).max(place.event_index);
    let mut whole = rows::read_events(snapshot, place.session, begin, end + 1)?;
    whole.retain(|row| is_visible(row, until));
    let actions = pair_calls(&whole);
    let failed = position_of_failure(&actions, place.event_index);
    let at = actions.iter().position(|action| action.call.event_index == worked_index);
    let (Some(failed), Some(at)) = (failed, at) else { return Ok(None) };
    let fixing_call = FixingCall { at, matched: found.matched };
    Ok(KnownFix::describe(place, &actions, failed, fixing_call, folder))
}

/// Returns true if a row was written before the time `until`; one without a time counts.
fn is_visible(row: &EventRow, until: i64) -> bool {
    row.timestamp.is_none_or(|time| time < until)
}

/// Returns the position of the call whose outcome is the event at `event_index`.
fn position_of_failure(actions: &[Action<'_>], event_index: u32) -> Option<usize> {
    actions.iter().position(|action| {
        convert::unsigned_index(action.outcome_event().event_index) == event_index
    })
}

impl KnownFix {
    /// Describes the fix of the failed call at `failed`; `None` if the call that worked printed the
    /// same error, or if it has another target.
    fn describe(
        place: PastRow,
        actions: &[Action<'_>],
        failed: usize,
        fixing_call: FixingCall,
        folder: Option<&str>,
    ) -> Option<Self> {
        let failed_call = actions.get(failed)?;
        let worked_call = actions.get(fixing_call.at)?;
        let error = identify_action_error(failed_call)?;
        // A pipe hides the exit code: `cargo test | tail` works even if the tests fail.
        let after = identify_action_error(worked_call);
        if after
            .is_some_and(|after| after.line == error.line || has_new_pipe(failed_call, worked_call))
        {
            return None;
        }
        let fix = fix::describe_fix(actions, failed, fixing_call, folder)?;
        let between = actions.get(failed + 1..fixing_call.at)?;
        let changing = between.iter().filter(|action| is_changing_command(action));
        let changing: Vec<&str> = changing.filter_map(Action::command).collect();
        let omitted = changing.len().saturating_sub(MAX_BETWEEN);
        let show = |action: &Action<'_>| {
            action.command().map_or_else(|| action.describe_call(), |line| Some(show_line(line)))
        };
        Some(Self {
            session: place.session,
            time: failed_call.outcome_event().timestamp.unwrap_or(place.time),
            failed_id: convert::event_id(failed_call.outcome_event()),
            worked_id: fix.event_id,
            matched: fix.matched,
            calls_between: fix.calls_between,
            error_line: error.shown,
            failed_call: show(failed_call)?,
            worked_call: show(worked_call)?,
            between: changing.into_iter().skip(omitted).map(show_line).collect(),
            edits: fix.edits,
        })
    }

    /// Returns true if the fix says something that helps when the same error comes again: another
    /// command line that worked soon, or what was changed before the same one worked.
    pub fn is_useful(&self) -> bool {
        if self.calls_between > MAX_CALLS_BETWEEN {
            return false;
        }
        match self.matched {
            FixMatch::SimilarCommand => {
                self.worked_call != self.failed_call
                    && !is_other_subcommand(&self.failed_call, &self.worked_call)
            }
            FixMatch::SameCall => !self.between.is_empty() || !self.edits.is_empty(),
            FixMatch::SameTool => true,
            // The agent's own tools say what is wrong with a call.
            FixMatch::SameFile => false,
        }
    }

    /// Returns true if both fixes did the same: the same program worked instead, or the same
    /// command or an edit of the same file made the call work.
    pub fn is_same_way(&self, other: &Self) -> bool {
        let programs = parse_programs(&other.worked_call);
        let is_same_program =
            parse_programs(&self.worked_call).iter().any(|program| programs.contains(program));
        if self.matched != FixMatch::SameCall && other.matched != FixMatch::SameCall {
            return is_same_program || self.worked_call == other.worked_call;
        }
        let commands: Vec<String> =
            other.between.iter().flat_map(|line| parse_programs(line)).collect();
        let has_same_command = self
            .between
            .iter()
            .flat_map(|line| parse_programs(line))
            .any(|p| commands.contains(&p));
        let files: Vec<&String> = other.edits.iter().flat_map(|edit| &edit.files).collect();
        let has_same_file =
            self.edits.iter().flat_map(|edit| &edit.files).any(|file| files.contains(&file));
        is_same_program && (has_same_command || has_same_file)
    }
}

/// Returns true if both command lines run the same program with different subcommands, such as
/// `pnpm test` and `pnpm lint`: the second does something else.
fn is_other_subcommand(failed: &str, worked: &str) -> bool {
    let [failed, worked] = [failed, worked].map(parse_programs);
    if failed.iter().any(|program| worked.contains(program)) {
        return false;
    }
    let first_word = |program: &String| program.split(' ').next().map(str::to_owned);
    let names: Vec<Option<String>> = failed.iter().map(first_word).collect();
    worked.iter().any(|program| names.contains(&first_word(program)))
}

/// Returns the error in the result of a call.
fn identify_action_error(action: &Action<'_>) -> Option<ErrorIdentity> {
    let text = &action.outcome_event().text;
    identify_error(text, action.command(), action.tool_name(), Some(action.kind))
}

/// Returns true if the command that worked ends in a pipe, or ignores failures, and the failed one
/// does not.
fn has_new_pipe(failed: &Action<'_>, worked: &Action<'_>) -> bool {
    let hides = |action: &Action<'_>| {
        let line = action.command().unwrap_or_default();
        line.contains('|') || line.trim_end().ends_with("true") || line.contains("; echo")
    };
    hides(worked) && !hides(failed)
}

/// Returns true if a call ran a command that worked and did more than read.
fn is_changing_command(action: &Action<'_>) -> bool {
    let line = action.command().filter(|_| action.kind == ToolKind::Execute);
    action.has_succeeded() && line.is_some_and(|line| !is_reading_command(line))
}

/// Returns a command line in one line, shortened.
fn show_line(line: &str) -> String {
    shorten(&one_line(line), MAX_SHOWN_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fix(matched: FixMatch, failed: &str, worked: &str, between: &[&str]) -> KnownFix {
        KnownFix {
            session: 0,
            time: 0,
            failed_id: "a:1".to_owned(),
            worked_id: "a:9".to_owned(),
            matched,
            calls_between: between.len(),
            error_line: String::new(),
            failed_call: failed.to_owned(),
            worked_call: worked.to_owned(),
            between: between.iter().map(|line| (*line).to_owned()).collect(),
            edits: Vec::new(),
        }
    }

    #[test]
    fn only_a_fix_that_says_what_to_do_is_useful() {
        assert!(fix(FixMatch::SimilarCommand, "python x", "python3 x", &[]).is_useful());
        assert!(fix(FixMatch::SameCall, "npm test", "npm test", &["npm install"]).is_useful());
        assert!(!fix(FixMatch::SameCall, "npm test", "npm test", &[]).is_useful());
        assert!(!fix(FixMatch::SimilarCommand, "pnpm test", "pnpm lint", &[]).is_useful());
        assert!(!fix(FixMatch::SameFile, "a.rs", "a.rs", &["touch x"]).is_useful());
        let mut late = fix(FixMatch::SimilarCommand, "a", "b", &[]);
        late.calls_between = MAX_CALLS_BETWEEN + 1;
        assert!(!late.is_useful());
    }

    #[test]
    fn the_same_way_is_the_same_program_or_preparation() {
        let python = fix(FixMatch::SimilarCommand, "python x.py", "python3 x.py", &[]);
        assert!(python.is_same_way(&fix(
            FixMatch::SimilarCommand,
            "python x.py -v",
            "python3 x.py -v",
            &[]
        )));
        assert!(!python.is_same_way(&fix(
            FixMatch::SimilarCommand,
            "python x.py",
            "uv run x.py",
            &[]
        )));
        let install = fix(FixMatch::SameCall, "npm test", "npm test", &["npm install"]);
        assert!(install.is_same_way(&fix(
            FixMatch::SameCall,
            "npm test",
            "npm test",
            &["npm install --force"]
        )));
        assert!(!install.is_same_way(&fix(
            FixMatch::SameCall,
            "npm test",
            "npm test",
            &["rm -r a"]
        )));
    }
}
