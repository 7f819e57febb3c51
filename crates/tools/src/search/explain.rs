//! Explains an answer of `search_events`: which sessions it covers, which words occur nowhere, why
//! nothing matches, and the next step.

use schemas::envelope::{Severity, Warning, WarningCode};
use schemas::tool::search::{SearchArgs, SearchData};
use schemas::{Timestamp, ToolError};

use super::selection::SelectedSessions;
use crate::error::store_error;
use crate::reply::budget::echoed_name;
use crate::reply::interface::{Interface, given};
use crate::reply::scope::explain_unmatched_filter;
use search::{AbsentWord, Query, find_unmatched_filters};
use store::Snapshot;

/// Words before a colon that look like qualifiers but are arguments instead.
const ARGUMENT_WORDS: &[&str] = &["type", "event_type", "session", "session_id", "sort", "limit"];

/// Describes the sessions that were searched.
pub(super) fn describe_scope(
    snapshot: &Snapshot,
    args: &SearchArgs,
    selected: &SelectedSessions<'_>,
    since: Option<Timestamp>,
) -> String {
    let mut scope = selected.describe(snapshot);
    if excludes_current(args) {
        scope.push_str(" without the current one");
    }
    if let Some(since) = since {
        scope.push_str(&format!("; events since {since}"));
    }
    if let Some(until) = &args.until {
        scope.push_str(&format!("; events until {}", echoed_name(until)));
    }
    scope
}

pub(super) fn excludes_current(args: &SearchArgs) -> bool {
    args.exclude_current.unwrap_or(false)
}

/// True if the caller asked for an order of the matches.
pub(super) fn names_order(args: &SearchArgs, query: &Query) -> bool {
    args.sort.is_some() || query.qualifiers.iter().any(|qualifier| qualifier.starts_with("sort:"))
}

/// Names the words that no searched event has: `"Magento" occurs in no event.`
pub(super) fn describe_absent_words(absent: &[AbsentWord]) -> Option<String> {
    if absent.is_empty() {
        return None;
    }
    let sentences = absent.iter().map(|absent| {
        let place =
            if absent.is_in_store { "only outside the current filters" } else { "in no event" };
        format!("\"{}\" occurs {place}.", echoed_name(&absent.word))
    });
    Some(sentences.collect::<Vec<_>>().join(" "))
}

/// Returns the next step; for an empty result, the reason why it is empty.
pub(super) fn describe_next_step(
    interface: Interface,
    snapshot: &Snapshot,
    args: &SearchArgs,
    query: &Query,
    data: &SearchData,
    selected: &SelectedSessions<'_>,
) -> Result<String, ToolError> {
    if data.matches.is_empty() {
        let mut unmatched: Vec<String> = selected.explain_none(snapshot).into_iter().collect();
        for filter in find_unmatched_filters(snapshot, query).map_err(store_error)? {
            unmatched.push(explain_unmatched_filter(&filter));
        }
        if !unmatched.is_empty() {
            return Ok(unmatched.join(" "));
        }
        return Ok(explain_no_match(interface, snapshot, args, query, data, selected));
    }
    Ok(format!(
        "{} gives the full text, {} the session around it.",
        interface.format_call("get_event_details", &[("event_ids", "[...]")]),
        interface.format_call("get_session_details", &[("session_id", "")])
    ))
}

/// Returns the warning about a word that looks like a qualifier and was searched as text, although
/// something matches. If `is_ranked_instead` is true, no event may have the word: any name before a
/// colon may have been meant as a qualifier, unless a match has the word as it was written.
pub(super) fn unknown_qualifier_warning(
    data: &SearchData,
    is_ranked_instead: bool,
) -> Option<Warning> {
    if data.matches.is_empty() {
        return None;
    }
    let is_in_match = |term: &str| {
        let term = term.to_lowercase();
        data.matches.iter().any(|found| found.snippet.to_lowercase().contains(&term))
    };
    let mut terms = data.query.all_of.iter().chain(&data.query.any_of);
    let name = terms.find_map(|term| {
        let (name, value) = term.split_once(':')?;
        let may_be_meant =
            is_ranked_instead && is_like_qualifier(name, value) && !is_in_match(term);
        (ARGUMENT_WORDS.contains(&name) || may_be_meant).then_some(name)
    })?;
    let message = format!("'{name}:' is not a qualifier and was searched as text");
    Some(Warning::new(WarningCode::ParameterIgnored, Severity::Warning, message))
}

/// True if a word could be a qualifier with its value. Addresses (`http://`) and paths of code (`a::b`) are
/// not.
fn is_like_qualifier(name: &str, value: &str) -> bool {
    let is_name = name.len() > 1 && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    is_name && value.starts_with(|c: char| c.is_alphanumeric())
}

/// Returns the probable reason why nothing matches: how the query was read, or the filters.
fn explain_no_match(
    interface: Interface,
    snapshot: &Snapshot,
    args: &SearchArgs,
    query: &Query,
    data: &SearchData,
    selected: &SelectedSessions<'_>,
) -> String {
    let searched = format!("Nothing matches in {}.", selected.describe(snapshot));
    if query.clauses.len() > 1 && args.query.contains(" OR ") && args.query.contains('(') {
        return format!(
            "{searched} Parentheses are searched as text. OR joins only the two terms next to it: a OR b c means (a OR b) and c."
        );
    }
    let before_colon = data.query.all_of.iter().filter_map(|term| term.split_once(':'));
    for (name, _) in before_colon {
        if ARGUMENT_WORDS.contains(&name) {
            return format!(
                "{searched} '{name}:' is not a qualifier and was searched as text. Pass it as an argument instead."
            );
        }
    }

    let words = match (data.query.all_of.len() > 1, names_order(args, query)) {
        (false, _) => "",
        (true, false) => " All words must occur in one event: try fewer.",
        (true, true) => {
            " All words must occur in one event: try fewer, or sort by relevance, which does not require every word."
        }
    };
    match given_filters(args, data).as_slice() {
        [] => format!(
            "{searched}{words} Words match as substrings in any case; try a shorter or another word."
        ),
        filters => {
            format!("{searched}{words} Try without {}.", interface.argument_names(filters))
        }
    }
}

/// Returns the names of the filters that the call was given.
fn given_filters(args: &SearchArgs, data: &SearchData) -> Vec<&'static str> {
    given([
        ("event_type", args.event_type.is_some()),
        ("provider", args.provider.is_some()),
        ("project", args.project.is_some()),
        ("machine", args.machine.is_some()),
        ("user", args.user.is_some()),
        ("session_id", args.session_id.is_some()),
        ("since", args.since.is_some()),
        ("until", args.until.is_some()),
        ("exclude_current", excludes_current(args)),
        ("the qualifiers in the query", !data.query.qualifiers.is_empty()),
    ])
}
