//! The manifest: the list of live segments, which the catalog has. Replacing it is the commit.

use std::path::Path;

use schemas::SCHEMA_VERSION;
use schemas::table::{EVENTS, PROBLEMS};
use serde::{Deserialize, Serialize};

use super::catalog::{CATALOG_FILE, Catalog};
use super::disk::checked_file::open_error;
use super::disk::files;
use super::error::StoreError;

/// First bytes of a manifest, which its checksum follows: xxh3 over all bytes after [`CHECKSUM_END`].
const CHECKSUM_START: &str = r#"{"xxh3":""#;

/// Bytes between the checksum and the bytes that it covers.
const CHECKSUM_END: &str = r#"","#;

/// Number of hexadecimal digits of the checksum.
const CHECKSUM_DIGITS: usize = 16;

/// The list of segments at one generation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub schema_version: u32,
    /// Grows by one with every commit; 0 before the first.
    pub generation: u64,
    /// Number of the next segment. It grows; only a merge of older segments takes a lower number, for
    /// which there is no folder.
    pub next_segment: i64,
    /// When it was committed, microseconds since the epoch.
    pub updated_at: i64,
    pub segments: Vec<SegmentEntry>,
    /// Segments that were replaced or purged. Their files stay for readers of older manifests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retired: Vec<RetiredSegment>,
    /// What was lost with damaged segments and is not read again yet.
    #[serde(default, skip_serializing_if = "LostLogs::is_empty")]
    pub lost: LostLogs,
    /// Responses in segments up to this number are compared with those of all segments; see
    /// `responses`.
    #[serde(default)]
    pub compared_up_to: i64,
}

/// A segment that was replaced or purged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetiredSegment {
    pub number: i64,
    /// When it was retired, microseconds since the epoch.
    pub at: i64,
}

/// What was lost with damaged segments and is not read again yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostLogs {
    /// The logs with rows in these segments: paths as in the table `sources`, sorted.
    pub paths: Vec<String>,
    /// Numbers of the segments whose lists of logs were damaged as well.
    pub segments: Vec<i64>,
}

impl LostLogs {
    /// True if nothing is lost.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.segments.is_empty()
    }
}

impl Default for Manifest {
    fn default() -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            generation: 0,
            next_segment: 1,
            updated_at: 0,
            segments: Vec::new(),
            retired: Vec::new(),
            lost: LostLogs::default(),
            compared_up_to: 0,
        }
    }
}

/// The entry of one segment in the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentEntry {
    pub number: i64,
    /// Rows in `events`.
    pub events: u64,
    /// Time range of its events in microseconds since the epoch; absent if none has a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<(i64, i64)>,
    /// True if some of its events have no time.
    #[serde(default)]
    pub untimed: bool,
    /// The versions of the rules that masked the logs with rows in its table `sources`, sorted; 0 for
    /// none.
    pub rules: Vec<i64>,
    /// Size in bytes of the rows of its sessions and logs, which the catalog has.
    #[serde(default)]
    pub row_bytes: u64,
    pub files: Vec<FileEntry>,
}

/// The entry of one file of a segment in the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Name of the table, or one of the names next to [`SEGMENT_TABLES`]; see [`file_name`].
    pub table: String,
    pub bytes: u64,
    pub xxh3: String,
}

impl FileEntry {
    /// Compares the file at `path` with the length and the checksum.
    pub(super) fn verify_at(&self, path: &Path) -> Result<(), StoreError> {
        let (bytes, xxh3) = match files::checksum_file(path) {
            Err(StoreError::Io { source, .. }) => return Err(open_error(path, source)),
            result => result?,
        };
        if bytes != self.bytes || xxh3 != self.xxh3 {
            let reason = format!(
                "it has {bytes} bytes and checksum {xxh3} instead of {} bytes and checksum {}",
                self.bytes, self.xxh3
            );
            return Err(StoreError::damaged(path, reason));
        }
        Ok(())
    }
}

/// Returns the name of a table's file in a segment's directory.
pub(super) fn file_name(table: &str) -> String {
    match table {
        SKIP_INDEX => "skip.idx".to_owned(),
        CHECKSUMS => "checksums.bin".to_owned(),
        ROW_COPY => "rows.copy".to_owned(),
        _ => format!("{table}.parquet"),
    }
}

/// Name of the skip index among the tables of a segment.
pub(super) const SKIP_INDEX: &str = "skip";

/// Name of the checksums of the chunks of events and skip index; see `disk/checked_file.rs`.
pub(super) const CHECKSUMS: &str = "checksums";

/// Name of the copy of the segment's rows in the catalog, from which a lost catalog is made again.
pub(super) const ROW_COPY: &str = "row_copy";

/// Everything that a segment's directory may hold, by table; see [`file_name`].
pub(super) const SEGMENT_TABLES: [&str; 5] =
    [EVENTS.name, SKIP_INDEX, CHECKSUMS, PROBLEMS.name, ROW_COPY];

impl SegmentEntry {
    /// Returns the name of a segment's directory.
    pub(super) fn folder_name(number: i64) -> String {
        format!("{number:010}")
    }

    /// Returns the path of a segment's directory.
    pub fn folder_path(store: &Path, number: i64) -> std::path::PathBuf {
        store.join("segments").join(Self::folder_name(number))
    }

    /// Returns the entry of a table's file, if the segment has rows for it.
    pub fn file_entry(&self, table: &str) -> Option<&FileEntry> {
        self.files.iter().find(|file| file.table == table)
    }

    /// Returns the files of the tables that this version knows. A later one may add tables: no code
    /// here reads their files or knows their names, so they are neither checked nor removed.
    pub(super) fn known_files(&self) -> impl Iterator<Item = &FileEntry> {
        self.files.iter().filter(|file| SEGMENT_TABLES.contains(&file.table.as_str()))
    }

    /// Returns the size of all its files in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

impl Manifest {
    /// Reads the manifest of the store in `dir`; `None` if there is no store.
    pub fn read(dir: &Path) -> Result<Option<Self>, StoreError> {
        let json = Self::read_json(dir)?;
        json.map(|json| Self::parse(&dir.join(CATALOG_FILE), json.as_bytes())).transpose()
    }

    /// Reads the manifest of the store in `dir` as JSON; `None` if there is no store. Equal texts are
    /// the same manifest, and comparing them takes a fraction of the time of parsing.
    pub(super) fn read_json(dir: &Path) -> Result<Option<String>, StoreError> {
        Catalog::open(dir)?.map(|catalog| catalog.read_manifest()).transpose()
    }

    /// Parses and checks the bytes of a manifest, which the file at `path` has.
    pub(super) fn parse(path: &Path, bytes: &[u8]) -> Result<Self, StoreError> {
        let dir = path.parent().unwrap_or(path);
        // A manifest of another version may have other fields, so only its version is read.
        let manifest = serde_json::from_slice::<Self>(bytes);
        let version = match &manifest {
            Ok(manifest) => Ok(manifest.schema_version),
            Err(_) => serde_json::from_slice(bytes).map(|one: ManifestVersion| one.schema_version),
        };
        let found = version.map_err(|error| StoreError::damaged(path, error))?;
        let supported = SCHEMA_VERSION;
        if found > supported {
            return Err(StoreError::Newer { path: dir.to_owned(), found, supported });
        }
        if found < supported {
            return Err(StoreError::Older { path: dir.to_owned(), found, supported });
        }

        // Checked after the version, because a later version may have another checksum.
        if !has_right_checksum(bytes) {
            return Err(StoreError::damaged(path, "its checksum differs"));
        }
        manifest.map_err(|error| StoreError::damaged(path, error))
    }

    /// Returns the manifest as JSON with a checksum.
    pub(super) fn to_json(&self) -> String {
        with_checksum(&serde_json::to_string(self).unwrap_or_default())
    }

    /// Retires these segments at the time of this manifest.
    pub(super) fn retire(&mut self, old: &[i64]) {
        let at = self.updated_at;
        self.segments.retain(|segment| !old.contains(&segment.number));
        self.retired.extend(old.iter().map(|number| RetiredSegment { number: *number, at }));
    }

    /// True if segment `number` is live, or was retired so recently that readers may still need it.
    pub(super) fn includes_segment(&self, number: i64) -> bool {
        self.segments.iter().any(|segment| segment.number == number)
            || self.retired.iter().any(|retired| retired.number == number)
    }

    /// Returns the number of events in all segments, including superseded ones.
    pub fn event_count(&self) -> u64 {
        self.segments.iter().map(|segment| segment.events).sum()
    }

    /// Returns the size of all segments in bytes.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(SegmentEntry::bytes).sum()
    }
}

/// The field that a manifest of every version has.
#[derive(Deserialize)]
struct ManifestVersion {
    schema_version: u32,
}

/// Puts the checksum in front of the other fields of a JSON object.
fn with_checksum(object: &str) -> String {
    let fields = object.get(1..).unwrap_or_default();
    let checksum = files::checksum_bytes(fields.as_bytes());
    [CHECKSUM_START, &checksum, CHECKSUM_END, fields].concat()
}

/// True if a manifest begins with the checksum of its other bytes.
fn has_right_checksum(bytes: &[u8]) -> bool {
    let rest = bytes.strip_prefix(CHECKSUM_START.as_bytes());
    let Some((checksum, rest)) = rest.and_then(|rest| rest.split_at_checked(CHECKSUM_DIGITS))
    else {
        return false;
    };
    let fields = rest.strip_prefix(CHECKSUM_END.as_bytes());
    fields.is_some_and(|fields| files::checksum_bytes(fields).as_bytes() == checksum)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn manifest() -> Manifest {
        let entry = SegmentEntry {
            number: 1,
            events: 3,
            times: Some((1, 2)),
            untimed: true,
            rules: vec![0, 7],
            row_bytes: 5,
            files: vec![FileEntry { table: "events".into(), bytes: 9, xxh3: "00".into() }],
        };
        Manifest { generation: 4, next_segment: 2, segments: vec![entry], ..Manifest::default() }
    }

    #[test]
    fn other_versions_are_refused_and_an_absent_store_is_none() {
        let dir = tempfile::tempdir().expect("tempdir");
        assert!(matches!(Manifest::read(dir.path()), Ok(None)));
        let newer = Manifest { schema_version: SCHEMA_VERSION + 1, ..Manifest::default() };
        Catalog::create(dir.path(), &newer.to_json(), &[]).expect("writes");
        assert!(
            matches!(Manifest::read(dir.path()), Err(StoreError::Newer { found, .. }) if found == SCHEMA_VERSION + 1)
        );
        Catalog::create(dir.path(), &manifest().to_json(), &[]).expect("writes");
        assert_eq!(Manifest::read(dir.path()).expect("reads"), Some(manifest()));
        fs::write(dir.path().join(CATALOG_FILE), "{").expect("writes");
        assert!(matches!(Manifest::read(dir.path()), Err(StoreError::Damaged { .. })));
    }

    #[test]
    fn no_changed_byte_goes_unnoticed() {
        let manifest = manifest();
        let written = manifest.to_json().into_bytes();
        for at in 0..written.len() {
            for bit in 0..8 {
                let mut damaged = written.clone();
                damaged[at] ^= 1 << bit;
                let read = Manifest::parse(Path::new("/store/catalog.db"), &damaged);
                assert!(read.is_err() || read.is_ok_and(|read| read == manifest));
            }
        }
    }
}
