//! Identifies records by the ids that logs give them.

use std::collections::HashMap;

use crate::stream::{RecordAt, Stream};
use crate::text::names::is_uuid;

/// Returns the identity of a record with a uuid, or `None`: other ids are not trusted to be unique.
pub(crate) fn uuid_identity(id: Option<&str>) -> Option<u64> {
    let id = id.filter(|id| is_uuid(id))?;
    Some(hash_id(id))
}

/// Returns the identity of what has an id in its log; never 0.
pub(crate) fn hash_id(id: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64(id.as_bytes()) | 1
}

/// Begins a record that is identified by its id if that is a uuid, as [`begin_identified_record`].
pub(crate) fn begin_uuid_record(
    id: Option<&str>,
    raw: &[u8],
    at: RecordAt,
    time: Option<i64>,
    out: &mut Stream,
) {
    begin_identified_record((id, uuid_identity(id)), raw, at, time, out);
}

/// Begins a record with an id and the identity computed from it. A record is identified by its
/// bytes if its id is not unique, or if it has no id in a log whose other records have one.
pub(crate) fn begin_identified_record(
    (id, identity): (Option<&str>, Option<u64>),
    raw: &[u8],
    at: RecordAt,
    time: Option<i64>,
    out: &mut Stream,
) {
    match (id, identity) {
        (Some(_), None) => out.begin_record_by_content(at, raw, time),
        (None, None) => out.begin_record_lacking_id(at, raw, time),
        (_, identity) => out.begin_record(at, identity, time),
    }
}

/// Gives messages without ids an id by their content, which stays the same when their document is
/// written again without those before them. Equal messages are numbered.
#[derive(Default)]
pub(crate) struct ContentIds(HashMap<u64, u32>);

impl ContentIds {
    /// Returns the id of the next message with these bytes, or with those that it had before its secrets
    /// were replaced in the log.
    pub(crate) fn next(&mut self, raw: &[u8], out: &Stream) -> String {
        let hash = out.aliases.resolve(xxhash_rust::xxh3::xxh3_64(raw) | 1);
        let count = self.0.entry(hash).or_default();
        *count += 1;
        format!("{hash} {count}")
    }
}

/// Begins the record of what a document says about its session as a whole, such as its token counts.
/// Copies of a session have the same id in their documents.
pub(crate) fn begin_header_record(time: Option<i64>, out: &mut Stream) {
    let id = out.session.native_id.as_deref().unwrap_or_default();
    let identity = xxhash_rust::xxh3::xxh3_64(format!("header of {id}").as_bytes()) | 1;
    out.begin_record(RecordAt::default(), Some(identity), time);
}
