//! Loads the events of sessions into the store, through Spark.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema};
use ingest::stream::batch::events_schema;
use schemas::table::{EVENTS, EventColumn};
use schemas::{ErrorCode, ToolError};

use super::engine::{LakeCall, SparkEngine};
use super::pruning::object_path;
use super::relation::{Parameters, read_files, select};
use crate::lake::{LakeCatalog, LakeSession};
use store::{check_events, order_events};

/// Most bytes of objects whose rows are in memory at a time, unless one session has more.
const BYTES_AT_A_TIME: u64 = 32 << 20;

impl SparkEngine {
    /// Loads the events of the sessions at these positions that the store does not have yet. Returns
    /// the number of objects that were read.
    pub(super) fn load_events(
        &self,
        call: &LakeCall<'_>,
        sessions: &[usize],
    ) -> Result<usize, ToolError> {
        let catalog = self.catalog()?;
        let mut incomplete: HashSet<&str> =
            call.snapshot.incomplete_sessions().map(|row| row.session_id.as_str()).collect();
        let ids = sessions.iter().map(|at| call.snapshot.sessions()[*at].id());
        let missing: Vec<&str> = ids.filter(|id| incomplete.remove(id)).collect();

        let mut objects = 0;
        let mut rest = missing.as_slice();
        while !rest.is_empty() {
            let sizes =
                rest.iter().map(|id| catalog.sessions.get(*id).map_or(0, LakeSession::bytes));
            let (some, others) = rest.split_at(count_fitting(sizes, BYTES_AT_A_TIME));
            objects += self.load_some(call, &catalog, some)?;
            rest = others;
        }
        Ok(objects)
    }

    /// Loads the events of a few sessions with one query.
    fn load_some(
        &self,
        call: &LakeCall<'_>,
        catalog: &LakeCatalog,
        ids: &[&str],
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
        self.connection().run(&relation, call.stop, &mut |batch| {
            let batch = with_store_types(&batch).map_err(|error| unreadable(&error))?;
            for (id, rows) in split_sessions(&batch) {
                parts.entry(id.to_owned()).or_default().push(rows);
            }
            Ok(true)
        })?;

        let mut loaded = Vec::new();
        for id in ids {
            let Some(row) = call.snapshot.session(id) else { continue };
            let mut checked = Vec::new();
            for part in parts.remove(*id).unwrap_or_default() {
                let rows = check_events(&part, id, row.provider);
                checked.push(rows.map_err(|reason| invalid_session(id, &reason))?);
            }
            let events = order_events(checked, row.events);
            loaded.push(((*id).to_owned(), events.map_err(|reason| invalid_session(id, &reason))?));
        }
        self.add_to_store(call.store, &loaded)?;
        Ok(objects)
    }
}

/// Returns how many of the first sizes have at most `limit` bytes together: at least one, if there are
/// any.
pub(super) fn count_fitting(sizes: impl Iterator<Item = u64>, limit: u64) -> usize {
    let mut bytes = 0;
    let mut count = 0;
    for size in sizes {
        bytes += size;
        if count > 0 && bytes > limit {
            break;
        }
        count += 1;
    }
    count
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
        "Session {id} of the lake does not match its listing: {reason}. Run `sessions push` again \
        on its machine"
    );
    ToolError::new(ErrorCode::StoreDamaged, message)
}

pub(super) fn unreadable(reason: &str) -> ToolError {
    ToolError::new(
        ErrorCode::InternalError,
        format!("Spark sent rows of unexpected types: {reason}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_fit_as_the_limit_allows_and_one_at_least() {
        for (sizes, count) in [(&[][..], 0), (&[9], 1), (&[9, 1], 1), (&[2, 3, 1], 2), (&[1, 1], 2)]
        {
            assert_eq!(count_fitting(sizes.iter().copied(), 5), count, "{sizes:?}");
        }
    }
}
