//! The file of the archive: its records, and the transactions that change them.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::Connection;
use schemas::Provider;
use serde::{Deserialize, Serialize};

use super::names::{ARCHIVE_FILE, KeepLogs};
use crate::disk::database::Database;
use crate::disk::record_tables::{create_table, delete_records, put_records};
use crate::error::StoreError;
use crate::lake::log_object::Repository;

/// Maximum number of frames of a file.
const MAX_FRAMES: i64 = 1 << 24;

/// Maximum id of the files that are looked for in a damaged archive, where an id may be any number.
const MAX_READ_ID: i64 = 1 << 20;

/// Number of bytes before the packed ones of a frame.
const FRAME_HEAD_BYTES: usize = 16;

/// The tables of the archive.
const STATE: &str = "state";
const FILES: &str = "files";
const FRAMES: &str = "frames";

/// Where the log of a session of another machine comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogOrigin {
    /// The SHA-256 of the object of the lake.
    pub object: String,
    /// The place of the file below the folder of its agent, with slashes.
    pub below: String,
    /// The working folder of the session, as the log names it.
    pub folder: Option<String>,
    /// The repository at the working folder.
    pub repository: Option<Repository>,
}

/// A file of which the archive has the content.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedFile {
    /// The path, without the extension of a compression.
    pub path: String,
    /// The session of the log, or of the log that the file is next to.
    pub session_id: String,
    pub provider: Provider,
    /// False for a file next to a log.
    pub is_log: bool,
    /// [`KeepLogs::Masked`] or [`KeepLogs::Exact`].
    pub keep: KeepLogs,
    /// Version of the rules that masked it; 0 if it is exact.
    pub rules: i64,
    /// When the file changed last, in microseconds since the epoch.
    pub modified_us: i64,
    /// When the log or a file next to it changed last before it was ingested, as its source says.
    pub source_modified_us: i64,
    /// Size of the log when it was ingested, as its source says.
    pub source_size: i64,
    /// Bytes of the log that were ingested.
    pub consumed: i64,
    /// Hashes of the first and of the last bytes of these.
    pub head_hash: i64,
    pub tail_hash: i64,
    /// Number of the frames.
    pub frames: i64,
    /// Where the last frame begins in the file, and where it ends.
    pub last_start: i64,
    pub end: i64,
    /// Size in bytes of all frames, and of the last one.
    pub packed_bytes: i64,
    pub last_packed_bytes: i64,
    /// Where it comes from; `None` for a file of this machine. `path` is then not that of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<LogOrigin>,
}

/// A compressed piece of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Position in the file.
    pub(crate) start: i64,
    /// Number of bytes in the file. Masked, it may have others.
    pub(crate) length: i64,
    pub(crate) packed: Vec<u8>,
}

impl Frame {
    fn encode(&self) -> Vec<u8> {
        [&self.start.to_le_bytes()[..], &self.length.to_le_bytes(), &self.packed].concat()
    }

    fn decode(mut bytes: Vec<u8>) -> Option<Self> {
        let (start, rest) = bytes.split_first_chunk()?;
        let start = i64::from_le_bytes(*start);
        let length = i64::from_le_bytes(*rest.first_chunk()?);
        bytes.drain(..FRAME_HEAD_BYTES);
        Some(Self { start, length, packed: bytes })
    }
}

/// What the archive has of all logs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ArchiveState {
    /// The generation of the store whose logs the archive has.
    pub(crate) generation: u64,
    pub(crate) keep: KeepLogs,
    pub(crate) rules: i64,
}

/// The file of the archive, open.
pub(crate) struct ArchiveFile(Database);

/// The frames of a file from one position on, and its record with them.
pub(crate) struct ArchiveChange {
    /// The id of the file in the archive; a new one has none.
    pub(crate) id: Option<i64>,
    pub(crate) file: ArchivedFile,
    /// The number of the frames that stay before the new ones.
    pub(crate) kept_frames: i64,
    pub(crate) frames: Vec<Frame>,
}

impl ArchiveFile {
    /// Opens the archive of the store in `dir` for reading. Returns `None` if there is none.
    pub(crate) fn open(dir: &Path) -> Result<Option<Self>, StoreError> {
        Ok(Database::open(dir, ARCHIVE_FILE)?.map(Self))
    }

    /// Opens the archive for the holder of the write lock. Creates it if there is none.
    pub(crate) fn open_for_writing(dir: &Path) -> Result<Self, StoreError> {
        if std::fs::symlink_metadata(dir.join(ARCHIVE_FILE)).is_err() {
            Self::create(dir, |_| Ok(()))?;
        }
        let database = Database::open_for_writing(dir, ARCHIVE_FILE)?;
        Ok(Self(database))
    }

    /// Replaces a damaged archive by one with the files that can be read whole, and returns their
    /// number.
    pub(crate) fn rebuild(dir: &Path) -> Result<usize, StoreError> {
        let damaged = Self::open(dir).ok().flatten();
        let mut kept = 0;
        Self::create(dir, |connection| {
            if let Some(damaged) = damaged {
                kept = damaged.copy_whole_files(connection)?;
            }
            Ok(())
        })?;
        Ok(kept)
    }

    /// Creates or replaces the archive, with what `fill` writes into its tables.
    fn create(
        dir: &Path,
        fill: impl FnOnce(&Connection) -> rusqlite::Result<()>,
    ) -> Result<(), StoreError> {
        // What is deleted leaves its space to others, and at last to the system.
        Database::create(dir, ARCHIVE_FILE, "PRAGMA auto_vacuum = INCREMENTAL", |connection| {
            for table in [STATE, FILES, FRAMES] {
                create_table(connection, table)?;
            }
            fill(connection)
        })
    }

    /// Copies the files that can be read whole, and returns their number.
    fn copy_whole_files(&self, connection: &Connection) -> rusqlite::Result<usize> {
        let sql = "SELECT max(id) FROM files";
        let last = self.0.lock().query_row(sql, [], |row| row.get(0));
        let mut kept = 0;
        for id in 1..=last.unwrap_or(0).min(MAX_READ_ID) {
            let Ok(Some(record)) = self.0.read_record(FILES, id) else { continue };
            let Ok(mut file) = serde_json::from_slice::<ArchivedFile>(&record) else { continue };
            // Files next to it may be lost: a log that exists is read again together with them.
            file.source_modified_us = 0;
            let mut at = 0;
            let copied = self.for_each_frame(id, &file, |frame| {
                put_frames(connection, id, at, &[frame]).map_err(|error| self.0.error(error))?;
                at += 1;
                Ok::<_, StoreError>(())
            });
            if copied.is_ok() {
                put_records(connection, FILES, [(id, encode_json(&file))])?;
                kept += 1;
            } else {
                delete_frames(connection, id, 0)?;
            }
        }
        Ok(kept)
    }

    /// Returns the path of the archive.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns what the archive has of all logs; `None` if that is not known.
    pub(crate) fn read_state(&self) -> Result<Option<ArchiveState>, StoreError> {
        let record = self.0.read_record(STATE, 0)?;
        Ok(record.and_then(|record| serde_json::from_slice(&record).ok()))
    }

    /// Notes what the archive has of all logs.
    pub(crate) fn write_state(&self, state: &ArchiveState) -> Result<(), StoreError> {
        self.0.change(|connection| put_records(connection, STATE, [(0, encode_json(state))]))
    }

    /// Returns the generation of the store after which the logs of sessions that are not there were
    /// removed. `None` if that is not known.
    pub(crate) fn read_settled_generation(&self) -> Result<Option<u64>, StoreError> {
        let record = self.0.read_record(STATE, 1)?;
        Ok(record.and_then(|record| serde_json::from_slice(&record).ok()))
    }

    /// Notes the generation of the store after which these logs were removed.
    pub(crate) fn write_settled_generation(&self, generation: u64) -> Result<(), StoreError> {
        self.0.change(|connection| put_records(connection, STATE, [(1, encode_json(&generation))]))
    }

    /// Returns the files by their ids.
    pub(crate) fn read_files(&self) -> Result<BTreeMap<i64, ArchivedFile>, StoreError> {
        let mut files = BTreeMap::new();
        for (id, record) in self.0.read_records(FILES, 0..i64::MAX)? {
            files.insert(id, self.decode_file(&record)?);
        }
        Ok(files)
    }

    /// Returns a file and all its frames as they are at one moment, whatever the writer does meanwhile.
    /// `None` if the archive has no file with this id.
    pub(crate) fn read_file(
        &self,
        id: i64,
    ) -> Result<Option<(ArchivedFile, Vec<Frame>)>, StoreError> {
        let frames = frame_id(id, 0)..frame_id(id.saturating_add(1), 0);
        let wanted = [(FILES, id..id.saturating_add(1)), (FRAMES, frames)];
        let [mut file, frames] = self.0.read_together(wanted)?;
        let Some((_, record)) = file.pop() else { return Ok(None) };
        let file = self.decode_file(&record)?;
        let mut decoded = Vec::with_capacity(frames.len());
        let frames = frames.into_iter().map(|(_, record)| self.decode_frame(Some(record)));
        self.visit_frames(&file, frames, |frame| {
            decoded.push(frame);
            Ok::<_, StoreError>(())
        })?;
        Ok(Some((file, decoded)))
    }

    fn decode_file(&self, record: &[u8]) -> Result<ArchivedFile, StoreError> {
        serde_json::from_slice(record).map_err(|error| StoreError::damaged(self.path(), error))
    }

    /// Calls `visit` with each frame of a file, in order. An error of `visit` ends it. For the writer, or
    /// an archive that none changes.
    pub(crate) fn for_each_frame<E: From<StoreError>>(
        &self,
        id: i64,
        file: &ArchivedFile,
        visit: impl FnMut(Frame) -> Result<(), E>,
    ) -> Result<(), E> {
        let frames = (0..file.frames).map(|at| self.read_frame(id, at));
        self.visit_frames(file, frames, visit)
    }

    /// Calls `visit` with the frames of a file, of which each begins where the one before it ends.
    fn visit_frames<E: From<StoreError>>(
        &self,
        file: &ArchivedFile,
        frames: impl Iterator<Item = Result<Frame, StoreError>>,
        mut visit: impl FnMut(Frame) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut end = 0;
        for frame in frames {
            let frame = frame?;
            if frame.start != end {
                return Err(self.damaged("the pieces of a log do not follow each other").into());
            }
            end = frame.start + frame.length;
            visit(frame)?;
        }
        if end == file.end { Ok(()) } else { Err(self.damaged("a log ends before its end").into()) }
    }

    /// Returns one frame of a file, which has more than `at`.
    pub(crate) fn read_frame(&self, id: i64, at: i64) -> Result<Frame, StoreError> {
        self.decode_frame(self.0.read_record(FRAMES, frame_id(id, at))?)
    }

    fn decode_frame(&self, record: Option<Vec<u8>>) -> Result<Frame, StoreError> {
        let frame = record.and_then(Frame::decode);
        frame.ok_or_else(|| self.damaged("a piece of a log is missing"))
    }

    /// Makes the changes in one step.
    pub(crate) fn apply(&self, changes: &[ArchiveChange]) -> Result<(), StoreError> {
        self.0.change(|connection| {
            for change in changes {
                let id = match change.id {
                    Some(id) => id,
                    None => connection.query_row(
                        "SELECT coalesce(max(id), 0) + 1 FROM files",
                        [],
                        |row| row.get(0),
                    )?,
                };
                delete_frames(connection, id, change.kept_frames)?;
                put_frames(connection, id, change.kept_frames, &change.frames)?;
                put_records(connection, FILES, [(id, encode_json(&change.file))])?;
            }
            Ok(())
        })
    }

    /// Removes files.
    pub(crate) fn remove(&self, ids: &[i64]) -> Result<(), StoreError> {
        self.0.change(|connection| {
            for id in ids {
                delete_frames(connection, *id, 0)?;
                delete_records(connection, FILES, *id..id.saturating_add(1))?;
            }
            Ok(())
        })
    }

    /// Removes what was deleted from the log of transactions and the end of the file, too.
    pub(crate) fn erase_deleted(&self) -> Result<(), StoreError> {
        let vacuumed = self.0.lock().execute_batch("PRAGMA incremental_vacuum");
        vacuumed.map_err(|error| self.0.error(error))?;
        self.0.erase_deleted()
    }

    /// Checks the file and every record.
    pub(crate) fn verify(&self) -> Result<(), StoreError> {
        self.0.check_structure()?;
        for (id, file) in self.read_files()? {
            self.for_each_frame(id, &file, |_| Ok::<_, StoreError>(()))?;
        }
        Ok(())
    }

    fn damaged(&self, reason: &str) -> StoreError {
        StoreError::damaged(self.path(), reason)
    }
}

fn frame_id(file: i64, at: i64) -> i64 {
    file.saturating_mul(MAX_FRAMES).saturating_add(at)
}

fn delete_frames(connection: &Connection, file: i64, from: i64) -> rusqlite::Result<()> {
    delete_records(connection, FRAMES, frame_id(file, from)..frame_id(file + 1, 0))
}

fn put_frames(
    connection: &Connection,
    file: i64,
    from: i64,
    frames: &[Frame],
) -> rusqlite::Result<()> {
    let records = (from..).zip(frames).map(|(at, frame)| (frame_id(file, at), frame.encode()));
    put_records(connection, FRAMES, records)
}

fn encode_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}
