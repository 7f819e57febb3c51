//! Loads the events of sessions into the store, through Spark.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema};
use ingest::stream::batch::events_schema;
use schemas::table::{EVENTS, EventColumn};
use schemas::{ErrorCode, ToolError};

use super::engine::SparkEngine;
use super::pruning::object_path;
use super::relation::{Parameters, read_files, select};
use crate::lake::LakeCatalog;
use crate::store::{Snapshot, Store, check_events, join_events};

/// Most bytes of objects whose rows are in memory at a time, unless one session has more.
const BYTES_AT_A_TIME: u64 = 32 << 20;

impl SparkEngine {
    /// Loads the events of the sessions at these positions that the store does not have yet. Returns
    /// the number of objects that were read.
    pub(super) fn load_events(
        &self,
        store: &Store,
        snapshot: &Snapshot,
        sessions: &[usize],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<usize, ToolError> {
        let catalog = self.catalog()?;
        let incomplete: HashSet<&str> =
            snapshot.incomplete_sessions().map(|row| row.session_id.as_str()).collect();
        let mut missing: Vec<&str> = Vec::new();
        for at in sessions {
            let id = snapshot.sessions()[*at].session_id.as_str();
            if incomplete.contains(id) && !missing.contains(&id) {
                missing.push(id);
            }
        }
        let mut objects = 0;
        let mut rest = missing.as_slice();
        while !rest.is_empty() {
            let mut bytes = 0;
            let mut count = 0;
            while let Some(id) = rest.get(count) {
                bytes += catalog.sessions.get(*id).map_or(0, |session| session.bytes());
                if count > 0 && bytes > BYTES_AT_A_TIME {
                    break;
                }
                count += 1;
            }
            let (some, others) = rest.split_at(count);
            objects += self.load_some(store, snapshot, &catalog, some, stop)?;
            rest = others;
        }
        Ok(objects)
    }

    /// Loads the events of a few sessions with one query.
    fn load_some(
        &self,
        store: &Store,
        snapshot: &Snapshot,
        catalog: &LakeCatalog,
        ids: &[&str],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<usize, ToolError> {
        let mut paths = Vec::new();
        for id in ids {
            let objects = catalog.sessions.get(*id).map_or(&[][..], |session| &session.objects);
            paths.extend(objects.iter().map(|object| object_path(self.folder(), &object.key)));
        }
        if paths.is_empty() {
            return Ok(0);
        }
        let objects = paths.len();
        let relation = select(
            "SELECT * FROM events",
            Parameters::default(),
            vec![("events", read_files(paths, &EVENTS))],
        );
        let mut parts: HashMap<String, Vec<RecordBatch>> = HashMap::new();
        self.connection().run(&relation, stop, &mut |batch| {
            let batch = with_store_types(&batch).map_err(|error| unreadable(&error))?;
            for (id, rows) in split_sessions(&batch) {
                parts.entry(id.to_owned()).or_default().push(rows);
            }
            Ok(true)
        })?;

        let mut loaded = Vec::new();
        for id in ids {
            let Some(row) = snapshot.session(id) else { continue };
            let mut checked = Vec::new();
            for part in parts.remove(*id).unwrap_or_default() {
                let rows = check_events(&part, id, row.provider);
                checked.push(rows.map_err(|reason| invalid_session(id, &reason))?);
            }
            let events = join_events(&checked, row.events);
            loaded.push(((*id).to_owned(), events.map_err(|reason| invalid_session(id, &reason))?));
        }
        self.add_to_store(store, &loaded)?;
        Ok(objects)
    }
}

/// Splits rows into runs of one session.
pub(super) fn split_sessions(batch: &RecordBatch) -> Vec<(&str, RecordBatch)> {
    let ids = batch.column_by_name(EventColumn::SessionId.name());
    let Some(ids) = ids.and_then(|column| column.as_string_opt::<i32>()) else {
        return Vec::new();
    };
    let mut runs = Vec::new();
    let mut start = 0;
    while start < batch.num_rows() {
        let id = ids.value(start);
        let same = (start..batch.num_rows()).take_while(|row| ids.value(*row) == id).count();
        runs.push((id, batch.slice(start, same)));
        start += same;
    }
    runs
}

/// Returns rows of Spark with the types that the store has for their columns.
pub(super) fn with_store_types(batch: &RecordBatch) -> Result<RecordBatch, String> {
    let known = events_schema();
    let mut fields = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        let wanted =
            known.field_with_name(field.name()).map_or(field.data_type(), Field::data_type);
        columns.push(with_type(column, wanted).map_err(|error| error.to_string())?);
        fields.push(Field::new(field.name(), wanted.clone(), true));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(|error| error.to_string())
}

fn with_type(column: &ArrayRef, wanted: &DataType) -> Result<ArrayRef, arrow::error::ArrowError> {
    if column.data_type() == wanted { Ok(Arc::clone(column)) } else { cast(column, wanted) }
}

fn invalid_session(id: &str, reason: &str) -> ToolError {
    let message = format!(
        "Session {id} of the lake is not what its listing says: {reason}. Have its machine run sessions push again"
    );
    ToolError::new(ErrorCode::StoreDamaged, message)
}

pub(super) fn unreadable(reason: &str) -> ToolError {
    ToolError::new(ErrorCode::InternalError, format!("Spark sent rows of other types: {reason}"))
}
