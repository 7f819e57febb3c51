//! Runs `search_sessions`, which ranks sessions by a half-remembered question.

mod fit;

use std::collections::HashSet;

use schemas::tool::checked_limit;
use schemas::tool::find::{FindArgs, FindData, SessionMatch};
use schemas::{ErrorCode, Timestamp, ToolError, limits};

use self::fit::fit_page;
use crate::error::search_error;
use crate::reply::answer::{Reply, RowTotal};
use crate::reply::budget::echoed_name;
use crate::reply::call::Call;
use crate::reply::convert::clean_title;
use crate::reply::cursor::{self, PageEnd};
use crate::reply::interface::Interface;
use crate::reply::scope::{Coverage, SessionFilters};
use crate::reply::store_warnings::store_warnings;
use crate::reply::time_range::TimeRange;
use crate::reply::tools::Tools;
use crate::since::{MAX_SINCE_BYTES, RecalledSession, describe_since};
use base::json_length::json_length;
use base::sanitize::{clean_text, cut_for_json, one_line};
use search::{FoundSession, SessionQuestion, SessionRank, SessionRequest, search_sessions};
use store::Snapshot;

/// Maximum size of a title in bytes of JSON. With it a page of ten sessions takes about 900 tokens.
const MAX_TITLE_BYTES: usize = 40;

/// Maximum size of the name of a project in bytes of JSON.
const MAX_PROJECT_BYTES: usize = 48;

/// Maximum size of a passage in bytes of JSON. Text that takes more than a byte a character is cut
/// earlier than the search cuts it.
const MAX_PASSAGE_BYTES: usize = 640;

/// Most bytes of JSON of the words that a tool says it looked for.
const MAX_LOOKED_FOR_BYTES: usize = 160;

/// The number of best sessions for which a tool names the words that they lack.
const SESSIONS_WITH_LACKS: usize = 3;

/// Most bytes of JSON of the words that a session lacks.
const MAX_LACKED_BYTES: usize = 40;

/// Most bytes of the session id that the next step names.
const MAX_ID_BYTES: usize = 40;

/// Most bytes of JSON of the words that a tool says no session has.
const MAX_ABSENT_BYTES: usize = 100;

pub(super) fn run(
    tools: &Tools,
    snapshot: &Snapshot,
    args: &FindArgs,
    call: &Call<'_>,
) -> Result<Reply<FindData>, ToolError> {
    let interface = tools.caller.interface;
    let limit = checked_limit("limit", args.limit, limits::FIND_LIMIT, limits::FIND_LIMIT_MAX)?;
    let question = SessionQuestion::parse_naming(snapshot, &args.query);
    if question.is_empty() {
        return Err(nothing_to_look_for(interface, &args.query));
    }
    let range =
        TimeRange::parse(args.since.as_deref(), args.until.as_deref(), &call.zone, call.now)?;
    let filters = SessionFilters::new(args.project.as_deref(), args.provider, range);
    let bound = FindArgs { cursor: None, ..args.clone() };
    let after = args
        .cursor
        .as_deref()
        .map(|text| cursor::decode::<PageEnd<SessionRank>>(&bound, text))
        .transpose()?;
    let seen = after.as_ref().map_or(0, |after| after.seen);

    let request = SessionRequest {
        question: &question,
        sessions: filters.find_matching(snapshot).map(HashSet::from_iter),
        limit,
        after: after.map(|after| after.at),
        until: None,
        // At a terminal a passage has a line.
        continues_passages: !interface.is_terminal(),
        deadline: call.search_deadline(),
    };
    let found = search_sessions(snapshot, &request, call.stop).map_err(search_error)?;

    let words = question.words();
    let sessions = found.sessions.iter();
    let mut sessions: Vec<SessionMatch> =
        sessions.map(|session| convert_session(snapshot, session, words.len(), call)).collect();
    let with_lacks = match interface {
        Interface::Tools(_) => SESSIONS_WITH_LACKS,
        Interface::Commands => usize::MAX,
    };
    for (session, found) in sessions.iter_mut().zip(&found.sessions).take(with_lacks) {
        session.why.push_str(&describe_lacks(found));
    }
    let with_passages = if interface.is_terminal() {
        usize::MAX
    } else {
        limits::FIND_WITH_PASSAGES.saturating_sub(seen)
    };
    for session in sessions.iter_mut().skip(with_passages) {
        session.passages.clear();
    }
    let with_since = with_passages.min(limits::FIND_LIMIT as usize);
    let recalled: Vec<RecalledSession<'_>> =
        found.sessions.iter().take(with_since).map(recall_session).collect();
    let since = describe_since(snapshot, &recalled, None, &call.zone, MAX_SINCE_BYTES)?;
    for (session, since) in sessions.iter_mut().zip(since) {
        session.since = since;
    }
    let (most_looked_for, most_absent) = match interface {
        Interface::Tools(_) => (MAX_LOOKED_FOR_BYTES, MAX_ABSENT_BYTES),
        Interface::Commands => (usize::MAX, usize::MAX),
    };
    let data = FindData {
        looked_for: echo_words(&words, most_looked_for),
        absent: echo_words(&found.absent, most_absent),
        sessions,
    };

    let mut reply = Reply::new(data, found.sessions.len());
    reply.before = seen;
    reply.total = Some(RowTotal::Exact(found.matched));
    reply.scope = Some(filters.describe_scope(snapshot, Coverage::OwnEvents));
    let next_step = describe_next_step(interface, snapshot, &reply.data, &filters);
    let doubt = match found.sessions.first().filter(|_| args.cursor.is_none()) {
        Some(best) if found.is_uncertain => Some(explain_poor_match(best)),
        Some(_) if found.is_undecided => Some(explain_undecided(interface)),
        _ => None,
    };
    reply.hint = Some(doubt.into_iter().chain([next_step]).collect::<Vec<_>>().join(" "));
    let warnings = [store_warnings(snapshot), call.freshness_warnings()].concat();

    let encode_end = |at: SessionRank, returned: usize| {
        cursor::encode(&bound, &PageEnd { at, seen: seen + returned })
    };
    let ranks = found.sessions.iter().map(|session| session.rank.clone());
    let cursors: Vec<String> =
        ranks.zip(1..).map(|(rank, returned)| encode_end(rank, returned)).collect();
    reply.next_cursor = found.next.and(cursors.last().cloned());
    fit_page(&mut reply, interface, &cursors, json_length(&warnings));
    Ok(reply)
}

/// Returns words of the question in the form in which an answer repeats them. They take at most `bytes`
/// bytes of JSON; the last entry says how many are left out.
fn echo_words(words: &[String], bytes: usize) -> Vec<String> {
    let mut echoed = Vec::new();
    let mut room = bytes;
    for (at, word) in words.iter().enumerate() {
        let word = echoed_name(word);
        // One byte for the comma.
        let Some(rest) = room.checked_sub(json_length(&word) + 1) else {
            echoed.push(format!("… {} more", words.len() - at));
            break;
        };
        room = rest;
        echoed.push(word);
    }
    echoed
}

/// Returns the error for a question in which no word says what it is about.
fn nothing_to_look_for(interface: Interface, query: &str) -> ToolError {
    let message = format!(
        "query: '{}' has no word to search for. Name a thing, a file, an error or a date; {} lists \
        sessions without a question",
        echoed_name(query),
        interface.tool_name("list_sessions")
    );
    ToolError::new(ErrorCode::InvalidQuery, message)
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
        let title = one_line(&clean_title(title));
        cut_for_json(&title, MAX_TITLE_BYTES)
    });
    let passages = found.passages.iter().map(|passage| {
        (passage.event_index, cut_for_json(&clean_text(&passage.text), MAX_PASSAGE_BYTES))
    });
    SessionMatch {
        session_id: row.session_id.clone(),
        title,
        project: row
            .origin
            .project
            .as_deref()
            .map(|name| cut_for_json(&clean_text(name), MAX_PROJECT_BYTES)),
        provider: row.provider,
        ended: row.ended_at.and_then(|end| call.zone.day(Timestamp(end))),
        events: found.matched_events,
        why: describe_match(found, words),
        passages: passages.collect(),
        since: None,
    }
}

/// Returns the passages of a session, to find out what happened since.
fn recall_session(found: &FoundSession) -> RecalledSession<'_> {
    let passages = found.passages.iter();
    RecalledSession {
        session: found.session,
        passages: passages.map(|passage| (passage.event_index, passage.text.as_str())).collect(),
    }
}

/// Says what of a session fits: `all words, title`, or `3 of 5 words, date`.
fn describe_match(found: &FoundSession, words: usize) -> String {
    let mut parts = Vec::new();
    if found.named.id {
        parts.push("its id".to_owned());
    }
    match found.words.len() {
        0 => {}
        count if count == words => parts.push("all words".to_owned()),
        count => parts.push(format!("{count} of {words} words")),
    }
    if found.has_title_word {
        parts.push("title".to_owned());
    }
    let named = found.named;
    let kinds = [(named.project, "project"), (named.agent, "agent"), (named.date, "date")];
    parts
        .extend(kinds.iter().filter(|(is_named, _)| *is_named).map(|(_, kind)| (*kind).to_owned()));
    parts.join(", ")
}

/// Names the words that a session lacks: `; lacks gate, hinge`.
fn describe_lacks(found: &FoundSession) -> String {
    if found.words.is_empty() || found.lacks.is_empty() {
        return String::new();
    }
    format!("; lacks {}", echo_words(&found.lacks, MAX_LACKED_BYTES).join(", "))
}

/// Says that probably no session is about the question, and why.
fn explain_poor_match(best: &FoundSession) -> String {
    let lacks = echo_words(&best.lacks, MAX_LACKED_BYTES).join(", ");
    format!(
        "Uncertain: the best session lacks {lacks}. Search matches words, not meaning: try names, in the sessions' language."
    )
}

/// Says that no session stands out, and what helps.
fn explain_undecided(interface: Interface) -> String {
    format!(
        "No session stands out: name a project, file, command or error, or browse by project and \
        time with {}.",
        interface.tool_name("list_sessions")
    )
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
                "No session matches. Try other words, fewer filters, or parts of words with {}.",
                interface.tool_name("search_events")
            )
        });
    }
    let best = data.sessions.first().map(|session| snapshot.short_id(&session.session_id));
    let best = best.filter(|id| id.len() <= MAX_ID_BYTES);
    let best = best.as_deref().unwrap_or("");
    format!(
        "{} shows what that session says about it, {} its prompts and answers.",
        interface.format_call(
            "search_events",
            &[("query", "<the question>"), ("session_id", best), ("sort", "relevance")]
        ),
        interface
            .format_call("get_session_details", &[("session_id", best), ("detail_level", "turns")])
    )
}
