//! Joins a group of small objects of one day into a large one.

use std::collections::HashSet;

use arrow::array::RecordBatch;
use schemas::{Provider, ToolError};

use super::day_manifest::{JoinedKind, JoinedObject};
use super::entry::sha256;
use super::listing::ListedObject;
use super::place::LakePlace;
use store::{
    JoinedFiles, JoinedWriter, LakeFile, PublishedSession, StoreError, decode_events, joined_keys,
};
use tools::error::store_error;

/// Bytes of small objects that are joined into one object.
pub(super) const JOINED_BYTES: u64 = 32 << 20;

/// Most small objects of a joined object: one that changes makes the others be read one by one.
pub(super) const MAX_SOURCES: usize = 4096;

/// Version of the form of joined objects. Another one gives them other names.
const JOINED_VERSION: u32 = 1;

/// An object of a session that may be joined.
pub(super) struct JoinSource<'c> {
    pub(super) session: &'c str,
    pub(super) provider: Provider,
    pub(super) key: &'c str,
    pub(super) bytes: u64,
    pub(super) sha256: &'c str,
}

/// The content of a source.
pub(super) enum SourceContent {
    Events(RecordBatch),
    Row(Box<PublishedSession>),
}

impl SourceContent {
    pub(super) fn row_count(&self) -> usize {
        match self {
            Self::Events(events) => events.num_rows(),
            Self::Row(_) => 1,
        }
    }
}

impl JoinSource<'_> {
    /// Reads the object. The error in the result is the reason why it is not what the listing says, or
    /// not valid.
    pub(super) fn fetch(
        &self,
        kind: JoinedKind,
        place: &LakePlace,
    ) -> Result<Result<SourceContent, String>, ToolError> {
        let Self { session, provider, key, bytes, sha256 } = *self;
        let object = ListedObject { key: key.to_owned(), bytes, sha256: sha256.to_owned() };
        let content = object.read(place)?;
        Ok(content.and_then(|content| decode_source(kind, content, session, provider)))
    }
}

/// Decodes the object of a session.
fn decode_source(
    kind: JoinedKind,
    content: Vec<u8>,
    session: &str,
    provider: Provider,
) -> Result<SourceContent, String> {
    match kind {
        JoinedKind::Events => {
            let events = decode_events(content, session, provider);
            events.map(SourceContent::Events).map_err(|reason| format!("its events: {reason}"))
        }
        JoinedKind::Rows => {
            let row = PublishedSession::decode(content);
            let row = row.map_err(|reason| format!("its row: {reason}"))?;
            if row.row.session_id != session {
                return Err("its row belongs to another session".to_owned());
            }
            Ok(SourceContent::Row(Box::new(row)))
        }
    }
}

/// Writes a joined object, source by source.
pub(super) struct GroupWriter {
    events: JoinedWriter,
    rows: Vec<PublishedSession>,
}

impl GroupWriter {
    pub(super) fn new() -> Result<Self, ToolError> {
        Ok(Self { events: JoinedWriter::new().map_err(store_error)?, rows: Vec::new() })
    }

    /// Adds a source. All sources of an object are of one kind.
    pub(super) fn push(&mut self, content: SourceContent) -> Result<(), ToolError> {
        match content {
            SourceContent::Events(events) => self.events.push(&events).map_err(store_error),
            SourceContent::Row(row) => {
                self.rows.push(*row);
                Ok(())
            }
        }
    }

    /// Returns the object, and the index of events.
    pub(super) fn finish(
        self,
        kind: JoinedKind,
        keys: [String; 2],
    ) -> Result<Vec<LakeFile>, ToolError> {
        self.encode(kind, keys).map_err(store_error)
    }

    fn encode(
        self,
        kind: JoinedKind,
        [key, index_key]: [String; 2],
    ) -> Result<Vec<LakeFile>, StoreError> {
        match kind {
            JoinedKind::Events => {
                let JoinedFiles { events, index } = self.events.finish()?;
                Ok(vec![LakeFile { key, bytes: events }, LakeFile { key: index_key, bytes: index }])
            }
            JoinedKind::Rows => {
                Ok(vec![LakeFile { key, bytes: PublishedSession::encode_all(&self.rows)? }])
            }
        }
    }
}

/// Splits the objects of a day into groups that are joined. One object alone is not.
pub(super) fn split_groups<'s, 'c>(
    sources: &'s [&'s JoinSource<'c>],
) -> Vec<&'s [&'s JoinSource<'c>]> {
    let mut groups = Vec::new();
    let mut start = 0;
    let mut bytes = 0;
    for (at, source) in sources.iter().enumerate() {
        bytes += source.bytes;
        if bytes >= JOINED_BYTES || at + 1 - start == MAX_SOURCES || at + 1 == sources.len() {
            groups.push(&sources[start..=at]);
            start = at + 1;
            bytes = 0;
        }
    }
    groups.retain(|group| group.len() > 1);
    groups
}

/// Returns the keys of the joined object of a group and of its index. They follow from the content of
/// the group.
pub(super) fn name_group(kind: JoinedKind, date: &str, group: &[&JoinSource<'_>]) -> [String; 2] {
    let mut text = match kind {
        JoinedKind::Events => format!("{JOINED_VERSION}\n"),
        JoinedKind::Rows => format!("rows {JOINED_VERSION}\n"),
    };
    for source in group {
        text.push_str(source.key);
        text.push(' ');
        text.push_str(source.sha256);
        text.push('\n');
    }
    let mut hash = sha256(text.as_bytes());
    hash.truncate(32);
    joined_keys(date, &hash)
}

/// Returns whether a joined object stays as it is when more objects come. `sources` are those of its
/// day.
pub(super) fn is_large(object: &JoinedObject, sources: &[JoinSource<'_>]) -> bool {
    let wanted: HashSet<&str> = object.sources.iter().map(|source| source.key.as_str()).collect();
    let sources = sources.iter().filter(|source| wanted.contains(source.key));
    let bytes: u64 = sources.map(|source| source.bytes).sum();
    bytes >= JOINED_BYTES / 2 || wanted.len() >= MAX_SOURCES / 2
}
