//! Fetches a session of a lake, and checks everything about it.

use std::collections::HashMap;

use arrow::array::RecordBatch;
use schemas::session::SessionRow;
use schemas::{Provider, ToolError};
use serde_json::Value;

use super::listing::ListedSession;
use super::place::LakePlace;
use super::pull_report::PullContent;
use store::{PublishedSession, decode_events, is_events_key, order_events};

/// Largest count of tokens or events that a session may have. Sums over all sessions of a store fit
/// into 64 bits.
const MAX_COUNT: i64 = 1 << 40;

/// The times that a session may have: the years 1 to 9999, in microseconds.
const TIMES: std::ops::RangeInclusive<i64> = -62_135_596_800_000_000..=253_402_300_799_999_999;

/// A session as the lake has it.
pub(super) struct FetchedSession {
    pub(super) published: PublishedSession,
    /// All its events, in order.
    pub(super) events: Vec<RecordBatch>,
    /// Bytes of the objects that the lake has of it.
    pub(super) bytes: u64,
}

/// What is known of a session before its own objects are read.
#[derive(Default)]
pub(super) struct KnownParts {
    pub(super) row: Option<PublishedSession>,
    /// Events by the position of their object in the listing.
    pub(super) events: HashMap<usize, RecordBatch>,
}

/// A part of a session.
pub enum SessionPart<T> {
    /// An object that was read.
    Object(Vec<u8>),
    /// What a joined object has of it, after it was checked.
    Decoded(T),
}

/// Fetches what is not known of a session. The error in the result is the reason why it is not valid.
pub(super) fn fetch_session(
    place: &LakePlace,
    lake_id: &str,
    listed: &ListedSession,
    content: PullContent,
    known: &KnownParts,
) -> Result<Result<FetchedSession, String>, ToolError> {
    let Some(object) = listed.objects.first() else {
        return Ok(Err("it has no objects".to_owned()));
    };
    let mut bytes = object.bytes;
    let row = match &known.row {
        Some(row) => SessionPart::Decoded(row.clone()),
        None => match object.read(place)? {
            Ok(content) => SessionPart::Object(content),
            Err(reason) => return Ok(Err(reason)),
        },
    };
    if content == PullContent::Rows {
        let published = decode_row(row, lake_id, listed.provider);
        let without_events = |published| FetchedSession { published, events: Vec::new(), bytes };
        return Ok(published.map(without_events));
    }
    let mut events = Vec::new();
    for (at, object) in listed.objects.iter().enumerate().skip(1) {
        if !is_events_key(&object.key, listed.provider, lake_id) {
            // The store builds its own index.
            continue;
        }
        bytes += object.bytes;
        if let Some(part) = known.events.get(&at) {
            events.push(SessionPart::Decoded(part.clone()));
            continue;
        }
        match object.read(place)? {
            Ok(content) => events.push(SessionPart::Object(content)),
            Err(reason) => return Ok(Err(reason)),
        }
    }
    Ok(decode_session(row, events, lake_id, listed.provider)
        .map(|(published, events)| FetchedSession { published, events, bytes }))
}

/// Decodes a session.
///
/// # Errors
/// Returns the reason if its parts are not those of a session.
pub fn decode_session(
    row: SessionPart<PublishedSession>,
    events: Vec<SessionPart<RecordBatch>>,
    lake_id: &str,
    provider: Provider,
) -> Result<(PublishedSession, Vec<RecordBatch>), String> {
    let published = decode_row(row, lake_id, provider)?;
    let mut parts = Vec::new();
    for part in events {
        let part = match part {
            SessionPart::Object(bytes) => decode_events(bytes, lake_id, provider),
            SessionPart::Decoded(rows) => Ok(rows),
        };
        parts.push(part.map_err(|reason| format!("its events: {reason}"))?);
    }
    let events = order_events(parts, published.row.events)?;
    Ok((published, events))
}

/// Decodes the row of a session.
fn decode_row(
    part: SessionPart<PublishedSession>,
    lake_id: &str,
    provider: Provider,
) -> Result<PublishedSession, String> {
    let published = match part {
        SessionPart::Object(bytes) => {
            PublishedSession::decode(bytes).map_err(|reason| format!("its row: {reason}"))?
        }
        SessionPart::Decoded(published) => published,
    };
    check_row(&published.row, lake_id, provider)?;
    Ok(published)
}

/// Returns an error if a row is not of this session, or has counts or times that no session has.
pub(super) fn check_row(row: &SessionRow, lake_id: &str, provider: Provider) -> Result<(), String> {
    if row.session_id != lake_id || row.provider != provider {
        return Err("its row belongs to another session".to_owned());
    }
    let Ok(Value::Object(cells)) = serde_json::to_value(row) else {
        return Err("its row cannot be read".to_owned());
    };
    for (name, value) in cells {
        let Some(number) = value.as_i64() else { continue };
        let is_allowed = if name.ends_with("_at") {
            TIMES.contains(&number)
        } else {
            (0..=MAX_COUNT).contains(&number)
        };
        if !is_allowed {
            return Err(format!("its {name} is {number}"));
        }
    }
    Ok(())
}
