//! Encodes a session of the store as objects of a lake.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{AsArray, Int32Array, RecordBatch, StringArray, new_null_array};
use arrow::error::ArrowError;
use ingest::redact::columns::map_texts;
use schemas::session::SessionRow;
use schemas::table::{EVENTS, EventColumn, Masking};

use super::keys::{events_key, index_key};
use crate::error::{StoreError, write_error};
use crate::export::{collect_parts, encode_parquet, file_stem};
use crate::identity::Identity;
use crate::index::IndexWriter;
use crate::reduce::{reduce_batch, reduce_session};
use crate::reduced_sessions::KeepLevel;
use crate::segment::indexed_columns::index_rows;
use crate::snapshot::Snapshot;
use base::home_paths::HomePaths;

/// What of a session leaves the machine.
pub struct LakeContent {
    level: KeepLevel,
    /// The home folders that are replaced; `None` if paths stay as they are.
    homes: Option<HomePaths>,
}

/// An object of a lake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LakeFile {
    pub key: String,
    pub bytes: Vec<u8>,
}

impl LakeContent {
    /// Returns the content of a level. Only [`KeepLevel::Full`] has paths of the folder `home`.
    pub fn new(level: KeepLevel, home: &Path) -> Self {
        let homes = if level == KeepLevel::Full { None } else { HomePaths::new(home) };
        Self { level, homes }
    }

    /// Returns the objects with the events of the session at position `at`, each followed by its
    /// skip index. They name the session `session_id`.
    pub fn encode_events(
        &self,
        snapshot: &Snapshot,
        at: usize,
        session_id: &str,
    ) -> Result<Vec<LakeFile>, StoreError> {
        let stem = file_stem(session_id);
        let mut files = Vec::new();
        for part in collect_parts(snapshot, at)? {
            let key = events_key(&part.key(&stem));
            let path = Path::new(&key);
            let reduced = reduce_batch(&part.batch, self.level, &|_| true)?;
            let batch = self
                .change_columns(&reduced, session_id)
                .map_err(|error| write_error(path, error))?;
            let bytes = encode_parquet(&batch).map_err(|error| write_error(path, error))?;
            let mut index = IndexWriter::new();
            index_rows(&mut index, &batch);
            let index = LakeFile { key: index_key(&key), bytes: index.finish().concat() };
            files.push(LakeFile { key, bytes });
            files.push(index);
        }
        Ok(files)
    }

    /// Returns the row of a session as it is published.
    pub fn publish_row(
        &self,
        row: &SessionRow,
        session_id: &str,
        parent_session_id: Option<String>,
        identity: &Identity,
    ) -> SessionRow {
        let mut row = reduce_session(row, self.level);
        row.session_id = session_id.to_owned();
        row.parent_session_id = parent_session_id;
        row.machine = Some(identity.machine.clone());
        row.user_name = Some(identity.user_name.clone());
        row.source_gone = false;
        row.row_start = 0;
        row.row_count = 0;
        row.live_from = 0;
        row.segment = 0;
        if let Some(homes) = &self.homes {
            // The folders of some agents are named after the working directory.
            let name = row.source_path.rsplit(['/', '\\']).next().unwrap_or_default();
            row.source_path = homes.replace(name).into_owned();
            row.drift = None;
            for text in [
                &mut row.title,
                &mut row.project,
                &mut row.cwd,
                &mut row.repository,
                &mut row.git_branch,
            ] {
                *text = text.take().map(|text| homes.replace(&text).into_owned());
            }
        }
        row
    }

    /// Returns rows with another session id, and without home folders.
    fn change_columns(
        &self,
        rows: &RecordBatch,
        session_id: &str,
    ) -> Result<RecordBatch, ArrowError> {
        let schema = rows.schema();
        let mut columns = Vec::with_capacity(rows.num_columns());
        for (field, column) in schema.fields().iter().zip(rows.columns()) {
            let name = field.name().as_str();
            columns.push(if name == EventColumn::SessionId.name() {
                Arc::new(StringArray::from(vec![session_id; rows.num_rows()]))
            } else if name == EventColumn::Files.name() && self.level == KeepLevel::Usage {
                new_null_array(field.data_type(), rows.num_rows())
            } else if let Some(homes) = &self.homes
                && is_masked(name)
            {
                map_texts(column, &mut |text| match homes.replace(text) {
                    Cow::Owned(replaced) => Some(replaced),
                    Cow::Borrowed(_) => None,
                })
            } else {
                Arc::clone(column)
            });
        }
        let sizes = schema.index_of(EventColumn::TextBytes.name())?;
        let texts = columns[schema.index_of(EventColumn::Text.name())?].as_string_opt::<i32>();
        if let Some(texts) = texts {
            let lengths = texts.iter().map(|text| text.map_or(0, str::len));
            let lengths = lengths.map(|length| i32::try_from(length).unwrap_or(i32::MAX));
            columns[sizes] = Arc::new(lengths.map(Some).collect::<Int32Array>());
        }
        RecordBatch::try_new(schema, columns)
    }
}

/// Returns whether a column of events holds text of logs.
fn is_masked(name: &str) -> bool {
    let column = EVENTS.columns.iter().find(|column| column.name == name);
    column.is_some_and(|column| matches!(column.masking, Masking::Masked | Masking::MaskedJson))
}
