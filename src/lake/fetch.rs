//! Fetches a session of a lake, and checks everything about it.

use arrow::array::RecordBatch;
use ingest::stream::batch::arrow_schema;
use schemas::session::SessionRow;
use schemas::table::EVENTS;
use schemas::{Provider, ToolError};
use serde_json::Value;

use super::listing::ListedSession;
use super::place::LakePlace;
use crate::store::{PublishedSession, decode_events, is_events_key, join_events};

/// Largest count of tokens or events that a session may have. Sums over all sessions of a store fit
/// into 64 bits.
const MAX_COUNT: i64 = 1 << 40;

/// The times that a session may have: the years 1 to 9999, in microseconds.
const TIMES: std::ops::RangeInclusive<i64> = -62_135_596_800_000_000..=253_402_300_799_999_999;

/// A session as the lake has it.
pub(super) struct FetchedSession {
    pub(super) published: PublishedSession,
    /// All its events, in order.
    pub(super) events: RecordBatch,
    /// Bytes of the objects that were read.
    pub(super) bytes: u64,
}

/// Fetches a session. The error in the result is the reason why it is not valid.
pub(super) fn fetch_session(
    place: &LakePlace,
    lake_id: &str,
    listed: &ListedSession,
) -> Result<Result<FetchedSession, String>, ToolError> {
    let mut objects = Vec::new();
    let mut bytes = 0;
    for object in &listed.objects {
        let is_row = objects.is_empty();
        if !is_row && !is_events_key(&object.key, listed.provider, lake_id) {
            // The store builds its own index.
            continue;
        }
        match object.read(place)? {
            Ok(content) => {
                bytes += content.len() as u64;
                objects.push(content);
            }
            Err(reason) => return Ok(Err(reason)),
        }
    }
    Ok(decode_session(objects, lake_id, listed.provider)
        .map(|(published, events)| FetchedSession { published, events, bytes }))
}

/// Fetches the row of a session, without its events. The error in the result is the reason why it is
/// not valid.
pub(super) fn fetch_row(
    place: &LakePlace,
    lake_id: &str,
    listed: &ListedSession,
) -> Result<Result<FetchedSession, String>, ToolError> {
    let Some(object) = listed.objects.first() else {
        return Ok(Err("it has no objects".to_owned()));
    };
    let content = match object.read(place)? {
        Ok(content) => content,
        Err(reason) => return Ok(Err(reason)),
    };
    let bytes = content.len() as u64;
    let events = RecordBatch::new_empty(arrow_schema(&EVENTS));
    Ok(decode_row(content, lake_id, listed.provider).map(|published| FetchedSession {
        published,
        events,
        bytes,
    }))
}

/// Decodes the objects of a session: its row, then its events.
///
/// # Errors
/// Returns the reason if they are not those of a session.
pub fn decode_session(
    objects: Vec<Vec<u8>>,
    lake_id: &str,
    provider: Provider,
) -> Result<(PublishedSession, RecordBatch), String> {
    let mut objects = objects.into_iter();
    let row = objects.next().ok_or("it has no objects")?;
    let published = decode_row(row, lake_id, provider)?;
    let mut parts = Vec::new();
    for object in objects {
        let part = decode_events(object, lake_id, provider);
        parts.push(part.map_err(|reason| format!("its events: {reason}"))?);
    }
    let events = join_events(&parts, published.row.events)?;
    Ok((published, events))
}

/// Decodes the object with the row of a session.
fn decode_row(
    object: Vec<u8>,
    lake_id: &str,
    provider: Provider,
) -> Result<PublishedSession, String> {
    let published =
        PublishedSession::decode(object).map_err(|reason| format!("its row: {reason}"))?;
    check_row(&published.row, lake_id, provider)?;
    Ok(published)
}

/// Returns an error if a row is not of this session, or has counts or times that no session has.
fn check_row(row: &SessionRow, lake_id: &str, provider: Provider) -> Result<(), String> {
    if row.session_id != lake_id || row.provider != provider {
        return Err("its row is of another session".to_owned());
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
