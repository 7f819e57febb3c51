//! Converts a store without a catalog: its manifest was a file of its own, and each segment had the
//! rows of its sessions and logs in Parquet files. Events, problems and all other files stay as they
//! are.

use std::fs;
use std::path::Path;

use schemas::table::{SESSIONS, SOURCES};

use super::catalog::Catalog;
use super::catalog::records::SegmentRecords;
use super::catalog::recovery::encode_copy;
use super::disk::files;
use super::error::{StoreError, write_error};
use super::folder;
use super::manifest::{FileEntry, Manifest, OLD_MANIFEST, ROW_COPY, SegmentEntry, file_name};
use super::segment::segment_rows::RecordedRows;
use super::segment::small_files::read_table;

/// The files of a segment that the catalog replaces, with their names in the manifest.
const OLD_TABLES: [(&str, &str); 6] = [
    ("sessions", "sessions.parquet"),
    ("sources", "sources.parquet"),
    ("session_briefs", "sessions.briefs"),
    ("session_rows", "sessions.rows"),
    ("source_briefs", "sources.briefs"),
    ("source_rows", "sources.rows"),
];

/// Creates the catalog of the store in `dir` from its manifest and the rows of its segments. The caller
/// holds the write lock. A segment whose rows are damaged is set aside, so that its logs are read again.
pub(super) fn convert(dir: &Path) -> Result<(), StoreError> {
    let path = dir.join(OLD_MANIFEST);
    let bytes = files::read_file(&path).map_err(StoreError::io(&path))?;
    let mut manifest = Manifest::parse(&path, &bytes)?;
    manifest.generation += 1;
    // Only earlier versions read them.
    manifest.retired.clear();
    let mut rows_by_number = Vec::new();
    for mut entry in std::mem::take(&mut manifest.segments) {
        match convert_segment(dir, &mut entry) {
            Ok(rows) => {
                rows_by_number.push((entry.number, rows));
                manifest.segments.push(entry);
            }
            Err(StoreError::Damaged { path, reason }) => {
                tracing::warn!(path = %path.display(), reason, "a damaged segment is set aside");
                manifest.lost.segments.push(entry.number);
                folder::set_segment_aside(dir, entry.number)?;
            }
            Err(error) => return Err(error),
        }
    }
    Catalog::create(dir, &manifest.to_json(), &rows_by_number)
}

/// Returns the rows of a segment, and changes its entry to what it is with a catalog.
fn convert_segment(dir: &Path, entry: &mut SegmentEntry) -> Result<SegmentRecords, StoreError> {
    let folder = SegmentEntry::folder_path(dir, entry.number);
    let mut recorded = RecordedRows::default();
    for row in read_table(&folder, entry, SESSIONS.name)? {
        recorded.record_session(Box::new(row));
    }
    for row in read_table(&folder, entry, SOURCES.name)? {
        recorded.record_source(Box::new(row));
    }
    let path = folder.join(file_name(ROW_COPY));
    let rows = recorded.finish().map_err(|error| write_error(&path, error))?;
    entry.files.retain(|file| !OLD_TABLES.iter().any(|(table, _)| *table == file.table));
    entry.row_bytes = rows.row_bytes();
    let copy = encode_copy(entry, &[], &rows).map_err(StoreError::io(&path))?;
    files::replace_file(&path, &copy)?;
    let (bytes, xxh3) = (copy.len() as u64, files::checksum_bytes(&copy));
    entry.files.push(FileEntry { table: ROW_COPY.to_owned(), bytes, xxh3 });
    Ok(rows)
}

/// Removes what only the store without a catalog needed, the manifest last. What cannot be removed now
/// stays for the next run.
pub(super) fn remove_old_files(dir: &Path, manifest: &Manifest) {
    for entry in &manifest.segments {
        let folder = SegmentEntry::folder_path(dir, entry.number);
        for (_, name) in OLD_TABLES {
            let _ = fs::remove_file(folder.join(name));
        }
    }
    let _ = fs::remove_file(dir.join(OLD_MANIFEST));
}

#[cfg(test)]
mod tests {
    use arrow::array::RecordBatch;
    use schemas::session::{SessionRow, SourceRow, SourceStatus};

    use super::super::damage::Verify;
    use super::super::manifest::is_old_store;
    use super::super::open_store::Store;
    use super::super::parquet_file::ParquetFile;
    use super::super::segment::table_columns::to_batch;
    use super::*;

    fn session(id: &str) -> SessionRow {
        SessionRow { session_id: id.to_owned(), title: Some("Berths".into()), ..<_>::default() }
    }

    fn source(id: &str) -> SourceRow {
        let row = SourceRow::unread(format!("/logs/{id}"), SourceStatus::Ok, 7, 9);
        SourceRow { session_id: Some(id.to_owned()), state: Some("state".into()), ..row }
    }

    /// Writes the files of an old table, and returns their entry.
    fn write_table(folder: &Path, table: &str, batch: &RecordBatch) -> FileEntry {
        let mut file = ParquetFile::new(Vec::new(), batch.schema()).expect("begins");
        file.write(batch).expect("writes");
        let bytes = file.finish().expect("ends");
        fs::write(folder.join(file_name(table)), &bytes).expect("writes");
        let xxh3 = files::checksum_bytes(&bytes);
        FileEntry { table: table.to_owned(), bytes: bytes.len() as u64, xxh3 }
    }

    /// Makes a store without a catalog that has a segment for each of these sessions.
    fn make_old_store(dir: &Path, ids: &[&str]) {
        let mut manifest = Manifest { generation: 4, ..Manifest::default() };
        for (number, id) in (1..).zip(ids) {
            let folder = SegmentEntry::folder_path(dir, number);
            files::create_private_dirs(&folder).expect("creates");
            let sessions = to_batch(&SESSIONS, &[session(id)]).expect("fits");
            let sources = to_batch(&SOURCES, &[source(id)]).expect("fits");
            fs::write(folder.join("sources.briefs"), "briefs").expect("writes");
            manifest.segments.push(SegmentEntry {
                number,
                events: 0,
                times: None,
                untimed: false,
                rules: None,
                row_bytes: 0,
                files: vec![
                    write_table(&folder, SESSIONS.name, &sessions),
                    write_table(&folder, SOURCES.name, &sources),
                ],
            });
            manifest.next_segment = number + 1;
        }
        fs::write(dir.join(OLD_MANIFEST), manifest.to_json()).expect("writes");
    }

    fn session_ids(store: &Store) -> Vec<String> {
        let snapshot = store.take_snapshot().expect("takes");
        snapshot.sessions().iter().map(|session| session.id().to_owned()).collect()
    }

    #[test]
    fn a_writer_converts_an_old_store_and_readers_wait_for_one() {
        let dir = tempfile::tempdir().expect("tempdir");
        make_old_store(dir.path(), &["a", "b"]);
        let store = Store::new(dir.path());
        assert!(matches!(store.take_snapshot(), Err(StoreError::Unconverted { .. })));

        let writer = store.open_writer(Verify::All).expect("converts");
        let known = writer.collect_known_logs().expect("reads");
        assert_eq!(known.sessions["a"].title.as_deref(), Some("Berths"));
        assert_eq!(known.sources["/logs/b"].size, 7);
        drop(writer);
        assert_eq!(session_ids(&store), ["a", "b"]);
        let snapshot = store.take_snapshot().expect("takes");
        let states: Vec<_> =
            snapshot.read_sources(true).expect("reads").into_iter().map(|row| row.state).collect();
        assert_eq!(states, [Some("state".to_owned()), Some("state".to_owned())]);

        assert!(!is_old_store(dir.path()));
        let segment = SegmentEntry::folder_path(dir.path(), 1);
        let names: Vec<_> = fs::read_dir(segment)
            .expect("lists")
            .map(|entry| entry.expect("one").file_name())
            .collect();
        assert_eq!(names, ["rows.copy"]);
    }

    #[test]
    fn a_conversion_that_was_killed_is_completed() {
        let dir = tempfile::tempdir().expect("tempdir");
        make_old_store(dir.path(), &["a"]);
        convert(dir.path()).expect("converts");
        assert!(is_old_store(dir.path()));
        let store = Store::new(dir.path());
        assert_eq!(session_ids(&store), ["a"]);
        drop(store.open_writer(Verify::Some).expect("opens"));
        assert!(!is_old_store(dir.path()));
    }

    #[test]
    fn a_damaged_segment_is_set_aside() {
        let dir = tempfile::tempdir().expect("tempdir");
        make_old_store(dir.path(), &["a", "b"]);
        let path = SegmentEntry::folder_path(dir.path(), 1).join("sources.parquet");
        let mut bytes = fs::read(&path).expect("reads");
        bytes[9] ^= 1;
        fs::write(&path, bytes).expect("writes");
        let store = Store::new(dir.path());
        let writer = store.open_writer(Verify::Some).expect("converts");
        assert_eq!(writer.current_manifest().lost.segments, [1]);
        drop(writer);
        assert_eq!(session_ids(&store), ["b"]);
        assert!(dir.path().join("damaged/0000000001/sources.parquet").exists());
    }
}
