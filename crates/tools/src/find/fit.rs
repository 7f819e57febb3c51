//! Keeps a page of found sessions within its size.

use std::collections::BTreeMap;

use schemas::envelope::{Severity, Warning, WarningCode};
use schemas::limits;
use schemas::tool::find::{FindData, SessionMatch};

use crate::reply::answer::{Reply, redaction_warning};
use crate::reply::interface::Interface;
use base::json_length::json_length;
use base::sanitize::cut_for_json;

/// Most bytes of an answer with up to [`limits::FIND_LIMIT`] sessions: 900 tokens.
const PAGE_BYTES: usize = 900 * limits::BYTES_PER_TOKEN;

/// Bytes that each further session may add.
const FURTHER_SESSION_BYTES: usize = 300;

/// Bytes of an answer without its sessions, words, scope, cursor, next step and warnings: counts,
/// times, the sentence about the next page and the names of fields.
const ENVELOPE_BYTES: usize = 500;

/// The sizes of texts that are tried until a page is small enough: of the best session, of the two after
/// it, and of the others. The best session is usually the wanted one, and its passages often answer the
/// question: the others lose theirs before they say nothing, and leave their space to it.
const SMALLER_SIZES: [[TextSizes; 3]; 15] = [
    [SIZE_480, SIZE_240, SIZE_56],
    [SIZE_480, SIZE_160, SIZE_56],
    [SIZE_360, SIZE_120, SIZE_56],
    [SIZE_240, SIZE_120, SIZE_56],
    [SIZE_240, SIZE_120, SIZE_32],
    [SIZE_160, SIZE_80, SIZE_32],
    [SIZE_120, SIZE_56, SIZE_24],
    [SIZE_80, SIZE_32, SIZE_24],
    [SIZE_160, SIZE_80, SIZE_0],
    [SIZE_120, SIZE_56, SIZE_0],
    [SIZE_160, SIZE_0, SIZE_0],
    [SIZE_120, SIZE_0, SIZE_0],
    [SIZE_80, SIZE_0, SIZE_0],
    [SIZE_56, SIZE_0, SIZE_0],
    [SIZE_24, SIZE_0, SIZE_0],
];

/// Sessions of a page that is shortened that say what happened since.
const SESSIONS_WITH_SINCE: usize = 3;

const SIZE_480: TextSizes = TextSizes { title: 40, project: 48, passage: 480 };
const SIZE_360: TextSizes = TextSizes { title: 40, project: 48, passage: 360 };
const SIZE_240: TextSizes = TextSizes { title: 40, project: 48, passage: 240 };
const SIZE_160: TextSizes = TextSizes { title: 40, project: 48, passage: 160 };
const SIZE_120: TextSizes = TextSizes { title: 40, project: 48, passage: 120 };
const SIZE_80: TextSizes = TextSizes { title: 40, project: 32, passage: 80 };
const SIZE_56: TextSizes = TextSizes { title: 32, project: 32, passage: 56 };
const SIZE_32: TextSizes = TextSizes { title: 32, project: 24, passage: 32 };
const SIZE_24: TextSizes = TextSizes { title: 24, project: 16, passage: 24 };
const SIZE_0: TextSizes = TextSizes { title: 24, project: 16, passage: 0 };

/// Maximum sizes of the texts of a session in bytes of JSON. Without space for passages it has
/// none.
#[derive(Debug, Clone, Copy)]
struct TextSizes {
    title: usize,
    project: usize,
    passage: usize,
}

/// Returns the most bytes of an answer with a number of sessions. A user at a terminal or a pipe does not
/// pay for tokens.
const fn page_bytes(interface: Interface, sessions: usize) -> usize {
    match interface {
        Interface::Tools(_) => {
            let further = sessions.saturating_sub(limits::FIND_LIMIT as usize);
            PAGE_BYTES + further * FURTHER_SESSION_BYTES
        }
        Interface::Commands => limits::ANSWER_BYTES,
    }
}

/// Shortens the texts of a page until its answer has at most [`page_bytes`]. If that is not enough, the
/// last sessions move to the next page; at least one stays. `cursors` has the cursor after each session
/// of the page, and `warning_bytes` is the size of the warnings that the answer gets besides those of
/// the reply.
pub(super) fn fit_page(
    reply: &mut Reply<FindData>,
    interface: Interface,
    cursors: &[String],
    warning_bytes: usize,
) {
    let around = ENVELOPE_BYTES
        + json_length(&reply.data.looked_for)
        + json_length(&reply.data.absent)
        + json_length(&reply.scope)
        + json_length(&reply.hint)
        + warning_bytes;
    let bytes = page_bytes(interface, reply.returned).saturating_sub(around);
    let with_cursor = bytes.saturating_sub(json_length(&reply.next_cursor));
    if shorten_sessions(&mut reply.data.sessions, with_cursor) {
        return;
    }

    let warning = cut_warning();
    let longest_cursor = cursors.iter().map(json_length).max().unwrap_or(0);
    let bytes = bytes.saturating_sub(longest_cursor + json_length(&warning));
    while reply.data.sessions.len() > 1 && sessions_length(&reply.data.sessions) > bytes {
        reply.data.sessions.pop();
    }
    reply.returned = reply.data.sessions.len();
    reply.next_cursor = reply.returned.checked_sub(1).and_then(|last| cursors.get(last)).cloned();
    reply.warnings.push(warning);
}

fn cut_warning() -> Warning {
    let message = "The page was cut to the maximum size of an answer";
    Warning::new(WarningCode::ResultsTruncated, Severity::Info, message)
}

/// Shortens texts of sessions until they take at most `bytes`: first all texts, then it removes all
/// passages of a session but the newest, those of the last session first. Returns false if they take
/// more even so.
fn shorten_sessions(sessions: &mut Vec<SessionMatch>, bytes: usize) -> bool {
    if sessions_length(sessions) <= bytes {
        return true;
    }
    let whole = std::mem::take(sessions);
    for [best, next, others] in SMALLER_SIZES {
        *sessions = whole.clone();
        for (place, session) in sessions.iter_mut().enumerate() {
            let sizes = match place {
                0 => best,
                1 | 2 => next,
                _ => others,
            };
            shorten_texts(session, sizes);
            if place >= SESSIONS_WITH_SINCE {
                session.since = None;
            }
        }
        if sessions_length(sessions) <= bytes {
            return true;
        }
    }
    for at in (0..sessions.len()).rev() {
        let passages = &mut sessions[at].passages;
        if let Some(newest) = passages.pop_last() {
            *passages = BTreeMap::from([newest]);
        }
        if sessions_length(sessions) <= bytes {
            return true;
        }
    }
    false
}

fn shorten_texts(session: &mut SessionMatch, sizes: TextSizes) {
    session.title = session.title.as_deref().map(|title| cut_for_json(title, sizes.title));
    session.project = session.project.as_deref().map(|name| cut_for_json(name, sizes.project));
    if sizes.passage == 0 {
        session.passages.clear();
        session.since = None;
    }
    for passage in session.passages.values_mut() {
        *passage = cut_for_json(passage, sizes.passage);
    }
}

/// Returns the bytes that sessions take in an answer, with the warning about secrets masked in them.
fn sessions_length(sessions: &[SessionMatch]) -> usize {
    // Data that has no JSON fails when the answer is made.
    let json = serde_json::to_vec(sessions).unwrap_or_default();
    json.len() + redaction_warning(&json).map_or(0, |warning| json_length(&warning))
}
