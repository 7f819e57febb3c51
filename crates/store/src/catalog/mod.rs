//! The catalog: the manifest, and what is known of the sessions and logs of every segment, in one
//! SQLite file. Its transactions are the commits of a store (docs/store.md).
//!
//! ```text
//! manifest(id 0, json)       the list of segments; see `manifest.rs`
//! summaries(segment)         the summaries of the sessions of a segment, in the order of their ids
//! session_rows(segment, at)  the row of each of these sessions
//! sources(segment)           the rows of the logs of a segment, in the order of their paths
//! states(segment, at)        the decoder state of a log that has one
//! ```
//!
//! A record never changes: a segment has all of its records from its commit on, until its files are
//! removed. The summaries say which rows there are, and each record has a checksum; see
//! `disk/record_tables.rs`.

pub(crate) mod records;
pub(crate) mod recovery;

use std::collections::BTreeSet;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension};

use self::records::{RecordKind, SegmentRecords};
use crate::disk::database::Database;
use crate::disk::record_tables::{create_table, delete_records, put_records};
use crate::error::StoreError;

/// Name of the catalog in the store directory.
pub(crate) const CATALOG_FILE: &str = "catalog.db";

/// Names of the files that SQLite keeps next to it while it is open.
pub(crate) const CATALOG_SIDE_FILES: [&str; 3] =
    ["catalog.db-wal", "catalog.db-shm", "catalog.db-journal"];

/// Most sessions, and most logs, of a segment.
const MAX_SEGMENT_ROWS: i64 = 1 << 24;

/// Returns the place of a record: the segment, and the position in it.
fn record_id(segment: i64, at: usize) -> i64 {
    let at = i64::try_from(at).unwrap_or(MAX_SEGMENT_ROWS);
    segment.saturating_mul(MAX_SEGMENT_ROWS).saturating_add(at)
}

/// An open catalog.
pub(crate) struct Catalog(Database);

impl Catalog {
    /// Opens the catalog of the store in `dir` for reading. Returns `None` if there is none.
    pub(crate) fn open(dir: &Path) -> Result<Option<Self>, StoreError> {
        Ok(Database::open(dir, CATALOG_FILE)?.map(Self))
    }

    /// Opens the catalog of the store in `dir` for the holder of the write lock.
    pub(crate) fn open_for_writing(dir: &Path) -> Result<Self, StoreError> {
        Database::open_for_writing(dir, CATALOG_FILE).map(Self)
    }

    /// Creates or replaces the catalog of the store in `dir` in one step. The caller holds the write
    /// lock.
    pub(crate) fn create(
        dir: &Path,
        manifest: &str,
        segments: &[(i64, SegmentRecords)],
    ) -> Result<(), StoreError> {
        Database::create(dir, CATALOG_FILE, "", |transaction| fill(transaction, manifest, segments))
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Removes what was deleted from the log of transactions, too. Waits for readers that still need it.
    pub(crate) fn erase_deleted(&self) -> Result<(), StoreError> {
        self.0.erase_deleted()
    }

    /// Returns the manifest as JSON.
    pub(crate) fn read_manifest(&self) -> Result<String, StoreError> {
        let connection = self.0.lock();
        let found = connection
            .query_row("SELECT json FROM manifest WHERE id = 0", [], |row| row.get(0))
            .optional();
        let found = found.map_err(|error| self.0.error(error))?;
        found.ok_or_else(|| StoreError::damaged(self.0.path(), "it has no list of segments"))
    }

    /// Returns a record of a segment, which has one of this kind at this position.
    pub(crate) fn read(
        &self,
        kind: RecordKind,
        segment: i64,
        at: usize,
    ) -> Result<Vec<u8>, StoreError> {
        let found = self.0.read_record(kind.table(), record_id(segment, at))?;
        found.ok_or_else(|| self.is_missing(kind))
    }

    /// Returns the first `count` records of a kind of a segment, which has as many.
    pub(crate) fn read_all(
        &self,
        kind: RecordKind,
        segment: i64,
        count: usize,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        let ids = record_id(segment, 0)..record_id(segment, count);
        let found = self.0.read_records(kind.table(), ids.clone())?;
        if !found.iter().map(|(id, _)| *id).eq(ids) {
            return Err(self.is_missing(kind));
        }
        Ok(found.into_iter().map(|(_, record)| record).collect())
    }

    fn is_missing(&self, kind: RecordKind) -> StoreError {
        StoreError::damaged(self.path(), format!("a record of {} is missing", kind.table()))
    }

    /// Commits: replaces the manifest, adds the records of new segments, and removes those of segments
    /// that are not kept, all in one step. They are on disk when this returns.
    pub(crate) fn commit(
        &self,
        manifest: &str,
        new: &[(i64, &SegmentRecords)],
        is_kept: &dyn Fn(i64) -> bool,
    ) -> Result<(), StoreError> {
        self.0.change(|transaction| {
            for number in segment_numbers(transaction)?.into_iter().filter(|at| !is_kept(*at)) {
                delete_segment(transaction, number)?;
            }
            for (number, rows) in new {
                // A number is used again only if its segment was not committed.
                delete_segment(transaction, *number)?;
                insert_segment(transaction, *number, rows)?;
            }
            let replaced =
                transaction.execute("UPDATE manifest SET json = ?1 WHERE id = 0", [manifest])?;
            if replaced == 1 {
                Ok(())
            } else {
                Err(rusqlite::Error::StatementChangedRows(replaced))
            }
        })
    }

    /// Checks the structure of the file, and every record of it against its checksum.
    pub(crate) fn verify(&self) -> Result<(), StoreError> {
        self.0.verify_records(RecordKind::ALL.map(RecordKind::table))
    }
}

/// Writes the tables of a new catalog.
fn fill(
    connection: &Connection,
    manifest: &str,
    segments: &[(i64, SegmentRecords)],
) -> rusqlite::Result<()> {
    connection.execute("CREATE TABLE manifest(id INTEGER PRIMARY KEY, json TEXT NOT NULL)", [])?;
    connection.execute("INSERT INTO manifest VALUES(0, ?1)", [manifest])?;
    for kind in RecordKind::ALL {
        create_table(connection, kind.table())?;
    }
    for (number, rows) in segments {
        insert_segment(connection, *number, rows)?;
    }
    Ok(())
}

/// Returns the numbers of the segments that have records.
fn segment_numbers(connection: &Connection) -> rusqlite::Result<BTreeSet<i64>> {
    let mut query = connection.prepare("SELECT id FROM summaries")?;
    let ids = query.query_map([], |row| row.get::<_, i64>(0))?;
    ids.map(|id| id.map(|id| id / MAX_SEGMENT_ROWS)).collect()
}

fn delete_segment(connection: &Connection, number: i64) -> rusqlite::Result<()> {
    for kind in RecordKind::ALL {
        let ids = record_id(number, 0)..record_id(number + 1, 0);
        delete_records(connection, kind.table(), ids)?;
    }
    Ok(())
}

fn insert_segment(
    connection: &Connection,
    number: i64,
    rows: &SegmentRecords,
) -> rusqlite::Result<()> {
    for kind in RecordKind::ALL {
        let records = rows.records().filter(|(other, ..)| *other == kind);
        let records = records.map(|(_, at, record)| (record_id(number, at), record));
        put_records(connection, kind.table(), records)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::disk::database::journal_mode;

    /// The rows of a segment with two sessions and the state of a log, which have this word.
    fn rows(word: &str) -> SegmentRecords {
        SegmentRecords {
            summaries: format!("summaries {word}").into_bytes(),
            session_rows: (0..2).map(|at| format!("row {at} {word}").into_bytes()).collect(),
            sources: Vec::new(),
            states: [(3, word.repeat(3000).into_bytes())].into(),
        }
    }

    fn read_everything(dir: &Path) -> Result<Vec<Vec<u8>>, StoreError> {
        let Some(catalog) = Catalog::open(dir)? else { return Ok(Vec::new()) };
        let mut found = vec![catalog.read_manifest()?.into_bytes()];
        for segment in [1, 2] {
            found.push(catalog.read(RecordKind::Summaries, segment, 0)?);
            found.push(catalog.read(RecordKind::Sources, segment, 0)?);
            found.extend(catalog.read_all(RecordKind::SessionRow, segment, 2)?);
            found.push(catalog.read(RecordKind::SessionRow, segment, 1)?);
            found.push(catalog.read(RecordKind::State, segment, 3)?);
        }
        Ok(found)
    }

    #[test]
    fn a_commit_is_read_as_a_whole_and_a_deleted_segment_leaves_no_byte() {
        let dir = tempfile::tempdir().expect("tempdir");
        assert!(Catalog::open(dir.path()).expect("looks").is_none());
        Catalog::create(dir.path(), "manifest 0", &[]).expect("creates");
        let writer = Catalog::open_for_writing(dir.path()).expect("opens");
        let reader = Catalog::open(dir.path()).expect("opens").expect("is there");
        let (kept, deleted) = (rows("kept"), rows("deleted"));
        writer.commit("manifest 1", &[(1, &kept), (2, &deleted)], &|_| true).expect("commits");
        assert_eq!(reader.read_manifest().expect("reads"), "manifest 1");
        assert_eq!(reader.read(RecordKind::SessionRow, 2, 1).expect("reads"), b"row 1 deleted");
        assert!(reader.read(RecordKind::SessionRow, 2, 2).is_err(), "there is none");
        assert!(reader.read_all(RecordKind::SessionRow, 2, 3).is_err());
        writer.verify().expect("is whole");

        writer.commit("manifest 2", &[], &|number| number == 1).expect("commits");
        assert!(reader.read(RecordKind::Summaries, 2, 0).is_err());
        assert_eq!(reader.read(RecordKind::Summaries, 1, 0).expect("reads"), b"summaries kept");
        writer.erase_deleted().expect("erases");
        for name in [CATALOG_FILE, CATALOG_SIDE_FILES[0]] {
            let bytes = fs::read(dir.path().join(name)).expect("reads");
            let has = |word: &[u8]| bytes.windows(word.len()).any(|part| part == word);
            assert!(!has(b"deleted") && (name != CATALOG_FILE || has(b"kept")), "{name}");
        }
    }

    #[test]
    fn a_catalog_in_a_network_folder_has_no_log_of_transactions() {
        let dir = tempfile::tempdir().expect("tempdir");
        Catalog::create(dir.path(), "manifest 0", &[]).expect("creates");
        let writer = Catalog::open_for_writing(dir.path()).expect("opens");
        let pragma = format!("PRAGMA journal_mode = {}", journal_mode(true));
        let mode = writer.0.lock().query_row(&pragma, [], |row| row.get::<_, String>(0));
        assert_eq!(mode.expect("changes"), "delete");
        let reader = Catalog::open(dir.path()).expect("opens").expect("is there");
        writer.commit("manifest 1", &[(1, &rows("word"))], &|_| true).expect("commits");
        assert_eq!(reader.read_manifest().expect("reads"), "manifest 1");
        writer.erase_deleted().expect("has nothing to erase");
        assert!(!dir.path().join(CATALOG_SIDE_FILES[0]).exists());
    }

    #[test]
    fn no_changed_byte_gives_another_record() {
        let dir = tempfile::tempdir().expect("tempdir");
        let segments = [(1, rows("first")), (2, rows("second"))];
        // Manifests have a checksum of their own.
        Catalog::create(dir.path(), "", &segments).expect("creates");
        let right = read_everything(dir.path()).expect("reads");
        let path = dir.path().join(CATALOG_FILE);
        let written = fs::read(&path).expect("reads");
        let mut noticed = 0;
        for at in (0..written.len()).step_by(61) {
            let mut damaged = written.clone();
            damaged[at] ^= 1 << (at % 8);
            fs::write(&path, &damaged).expect("writes");
            match read_everything(dir.path()) {
                Ok(found) => assert_eq!(found[1..], right[1..], "byte {at}"),
                Err(_) => noticed += 1,
            }
        }
        assert!(noticed > 10, "{noticed}");
    }

    #[cfg(unix)]
    #[test]
    fn only_its_owner_can_read_it_and_a_link_is_not_followed() {
        use std::os::unix::fs::{MetadataExt as _, symlink};
        let dir = tempfile::tempdir().expect("tempdir");
        Catalog::create(dir.path(), "", &[]).expect("creates");
        let writer = Catalog::open_for_writing(dir.path()).expect("opens");
        writer.commit("", &[(1, &rows("word"))], &|_| true).expect("commits");
        for entry in fs::read_dir(dir.path()).expect("lists") {
            let entry = entry.expect("an entry");
            assert_eq!(entry.metadata().expect("found").mode() & 0o777, 0o600, "{entry:?}");
        }
        drop(writer);
        let path = dir.path().join(CATALOG_FILE);
        let moved = dir.path().join("moved");
        fs::rename(&path, &moved).expect("moves");
        symlink(&moved, &path).expect("links");
        assert!(matches!(Catalog::open(dir.path()), Err(StoreError::Io { .. })));
        assert!(Catalog::open_for_writing(dir.path()).is_err());
    }
}
