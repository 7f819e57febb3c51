//! Runs `search_sessions`, which ranks sessions by a half-remembered question.

use std::collections::{BTreeMap, HashSet};

use schemas::envelope::{Severity, Warning, WarningCode};
use schemas::tool::checked_limit;
use schemas::tool::find::{FindArgs, FindData, SessionMatch};
use schemas::{ErrorCode, Timestamp, ToolError, limits};

use crate::base::json_length::json_length;
use crate::base::sanitize::{clean_text, one_line, truncate_for_json};
use crate::search::{FoundSession, SessionQuestion, SessionRank, SessionRequest, search_sessions};
use crate::store::Snapshot;
use crate::tools::reply::answer::{Reply, RowTotal};
use crate::tools::reply::budget::{Budget, echoed_name};
use crate::tools::reply::call::Call;
use crate::tools::reply::cursor::{self, PageEnd};
use crate::tools::reply::interface::Interface;
use crate::tools::reply::scope::{Coverage, SessionFilters};
use crate::tools::reply::session_filter::session_filter;
use crate::tools::reply::shared_state::SharedState;
use crate::tools::search::search_error;

/// Maximum size of a title in bytes of JSON. With it a page of ten sessions takes about 900 tokens.
const MAX_TITLE_BYTES: usize = 40;

/// Maximum size of a passage in bytes of JSON. Text that takes more than a byte a character is cut
/// earlier than the search cuts it.
const MAX_PASSAGE_BYTES: usize = 240;

/// Most bytes of an answer with up to [`limits::FIND_LIMIT`] sessions: 900 tokens.
const PAGE_BYTES: usize = 900 * limits::BYTES_PER_TOKEN;

/// Bytes that each further session may add.
const FURTHER_SESSION_BYTES: usize = 300;

/// Bytes of an answer without its sessions, words, scope, cursor and next step: counts, times and the
/// names of fields.
const ENVELOPE_BYTES: usize = 480;

/// The sizes of titles and passages in bytes of JSON that are tried until a page is small enough.
const SMALLER_SIZES: [TextSizes; 8] = [
    TextSizes { title: 40, passage: 120 },
    TextSizes { title: 40, passage: 80 },
    TextSizes { title: 32, passage: 56 },
    TextSizes { title: 32, passage: 48 },
    TextSizes { title: 32, passage: 40 },
    TextSizes { title: 24, passage: 32 },
    TextSizes { title: 24, passage: 24 },
    TextSizes { title: 16, passage: 16 },
];

/// The room that an answer keeps for the words of the question, each of which may be there twice.
const MAX_WORDS_BYTES: usize = 8_000;

/// Maximum sizes of the texts of a session in bytes of JSON.
#[derive(Debug, Clone, Copy)]
struct TextSizes {
    title: usize,
    passage: usize,
}

pub(super) fn run(
    shared: &SharedState,
    snapshot: &Snapshot,
    args: &FindArgs,
    call: &Call<'_>,
) -> Result<Reply<FindData>, ToolError> {
    let interface = shared.caller.interface;
    let limit = checked_limit("limit", args.limit, limits::FIND_LIMIT, limits::FIND_LIMIT_MAX)?;
    let question = SessionQuestion::parse(&args.query);
    if question.is_empty() {
        return Err(nothing_to_look_for(interface, &args.query));
    }
    let since = parse_time("since", args.since.as_deref(), call)?;
    let until = parse_time("until", args.until.as_deref(), call)?;
    if since.zip(until).is_some_and(|(since, until)| since.0 >= until.0) {
        let message = "since: it is not before until. Swap them, or leave one out";
        return Err(
            ToolError::new(ErrorCode::InvalidArgument, message).with_detail("field", "since")
        );
    }
    let bound = FindArgs { cursor: None, ..args.clone() };
    let after = args
        .cursor
        .as_deref()
        .map(|text| cursor::decode::<PageEnd<SessionRank>>(&bound, text))
        .transpose()?;
    let seen = after.as_ref().map_or(0, |after| after.seen);

    let request = SessionRequest {
        question: &question,
        sessions: filter_sessions(snapshot, args, since, until),
        limit,
        after: after.map(|after| after.at),
        until: None,
        deadline: call.search_deadline(),
    };
    let mut found = search_sessions(snapshot, &request, call.stop).map_err(search_error)?;

    let mut budget = Budget::new(limits::ANSWER_BYTES - MAX_WORDS_BYTES);
    let mut sessions = Vec::new();
    for session in &found.sessions {
        let converted = convert_session(snapshot, session, question.words().len(), call);
        if !budget.take(&converted) {
            break;
        }
        sessions.push(converted);
    }
    let is_cut = sessions.len() < found.sessions.len();
    if is_cut {
        let shown = &found.sessions[..sessions.len()];
        found.next = shown.last().map(|last| last.rank.clone());
    }

    let returned = sessions.len();
    let data = FindData {
        looked_for: echo_words(&question.words()),
        absent: echo_words(&found.absent),
        sessions,
    };
    let mut reply = Reply::new(data, returned);
    reply.before = seen;
    reply.total = Some(RowTotal::Exact(found.matched));
    reply.next_cursor =
        found.next.map(|at| cursor::encode(&bound, &PageEnd { at, seen: seen + returned }));
    if is_cut {
        let message = "The page was cut to the maximum size of an answer";
        reply.warnings.push(Warning::new(WarningCode::ResultsTruncated, Severity::Info, message));
    }
    let filters = SessionFilters {
        project: args.project.as_deref(),
        provider: args.provider,
        since,
        ..SessionFilters::default()
    };
    let mut scope = filters.describe_scope(snapshot, Coverage::OwnEvents);
    if let Some(until) = until {
        scope.push_str(&format!("; begun before {until}"));
    }
    reply.scope = Some(scope);
    let hint = describe_next_step(interface, snapshot, &reply.data, &filters);
    let around = ENVELOPE_BYTES
        + json_length(&reply.data.looked_for)
        + json_length(&reply.data.absent)
        + json_length(&reply.scope)
        + json_length(&reply.next_cursor)
        + json_length(&hint);
    let further = returned.saturating_sub(limits::FIND_LIMIT as usize);
    let page_bytes = PAGE_BYTES + further * FURTHER_SESSION_BYTES;
    fit_sessions(&mut reply.data.sessions, page_bytes.saturating_sub(around));
    reply.hint = Some(hint);
    Ok(reply)
}

/// Shortens texts of sessions until their JSON has at most `bytes`: first titles and passages, then it
/// removes all passages of a session but the newest, those of the last session first.
fn fit_sessions(sessions: &mut [SessionMatch], bytes: usize) {
    for sizes in SMALLER_SIZES {
        if json_length(&sessions) <= bytes {
            return;
        }
        for session in sessions.iter_mut() {
            session.title = session.title.as_deref().map(|title| shorten(title, sizes.title));
            for passage in session.passages.values_mut() {
                *passage = shorten(passage, sizes.passage);
            }
        }
    }
    for at in (0..sessions.len()).rev() {
        if json_length(&sessions) <= bytes {
            return;
        }
        let passages = &mut sessions[at].passages;
        if let Some(newest) = passages.pop_last() {
            *passages = BTreeMap::from([newest]);
        }
    }
}

/// Returns words of the question in the form in which an answer repeats them.
fn echo_words(words: &[String]) -> Vec<String> {
    words.iter().map(|word| echoed_name(word)).collect()
}

fn parse_time(
    name: &str,
    value: Option<&str>,
    call: &Call<'_>,
) -> Result<Option<Timestamp>, ToolError> {
    value.map(|value| call.zone.parse_since(name, value, call.now)).transpose()
}

/// Returns the error for a question in which no word says what it is about.
fn nothing_to_look_for(interface: Interface, query: &str) -> ToolError {
    let message = format!(
        "query: '{}' has no word to look for. Name a thing, a file, an error or a date; {} lists sessions without a question",
        echoed_name(query),
        interface.tool_name("list_sessions")
    );
    ToolError::new(ErrorCode::InvalidQuery, message)
}

/// Returns the positions of the sessions that pass the filters; `None` if there are no filters.
fn filter_sessions(
    snapshot: &Snapshot,
    args: &FindArgs,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
) -> Option<HashSet<usize>> {
    if args.project.is_none() && args.provider.is_none() && since.or(until).is_none() {
        return None;
    }
    let passes = session_filter(args.project.as_deref(), args.provider, since.map(|since| since.0));
    let mut wanted = HashSet::new();
    for (position, row) in snapshot.sessions().iter().enumerate() {
        let is_begun =
            until.is_none_or(|until| row.started_at.is_some_and(|started| started < until.0));
        if is_begun && passes(row) {
            wanted.insert(position);
        }
    }
    Some(wanted)
}

/// Converts a session. `words` is the number of words of the question.
fn convert_session(
    snapshot: &Snapshot,
    found: &FoundSession,
    words: usize,
    call: &Call<'_>,
) -> SessionMatch {
    let row = &snapshot.sessions()[found.session];
    let title = row.title.as_deref().map(|title| {
        let title = one_line(&clean_text(title));
        shorten(&title, MAX_TITLE_BYTES)
    });
    let passages = found.passages.iter().map(|passage| {
        (passage.event_index, shorten(&clean_text(&passage.text), MAX_PASSAGE_BYTES))
    });
    SessionMatch {
        session_id: row.session_id.clone(),
        title,
        project: row.project.as_deref().map(clean_text),
        provider: row.provider,
        ended: row.ended_at.and_then(|end| call.zone.day(Timestamp(end))),
        events: found.matched_events,
        why: describe_match(found, words),
        passages: passages.collect(),
    }
}

/// Cuts a text to a number of bytes of JSON, with an ellipsis at the cut.
fn shorten(text: &str, bytes: usize) -> String {
    let (kept, omitted) = truncate_for_json(text, bytes);
    if omitted == 0 { kept.to_owned() } else { format!("{}…", kept.trim_end()) }
}

/// Says what of a session fits: `all words, title`, or `3 of 5 words, date`.
fn describe_match(found: &FoundSession, words: usize) -> String {
    let mut parts = Vec::new();
    match found.words.len() {
        0 => {}
        count if count == words => parts.push("all words".to_owned()),
        count => parts.push(format!("{count} of {words} words")),
    }
    if found.has_title_word {
        parts.push("title".to_owned());
    }
    if found.is_near_date {
        parts.push("date".to_owned());
    }
    parts.join(", ")
}

/// Returns the next step; for an empty answer, the reason why it is empty.
fn describe_next_step(
    interface: Interface,
    snapshot: &Snapshot,
    data: &FindData,
    filters: &SessionFilters<'_>,
) -> String {
    if data.sessions.is_empty() {
        return filters.explain_none(snapshot).unwrap_or_else(|| {
            format!(
                "No searched session has any of these words. Try others, without the filters, or parts of words with {}.",
                interface.tool_name("search_events")
            )
        });
    }
    format!(
        "{} shows one, {} a whole passage.",
        interface.format_call("get_session_details", &[("session_id", "")]),
        interface.format_call("get_event_details", &[("event_ids", "[session_id:event_index]")])
    )
}
