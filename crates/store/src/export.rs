//! Exports events for other programs: as Parquet objects whose key and bytes follow from their
//! content alone, and as Arrow files.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{AsArray, Date32Array, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{
    DataType, Date32Type, Field, Int32Type, Schema, SchemaRef, TimestampMicrosecondType,
};
use arrow::error::ArrowError;
use arrow::ipc::writer::{FileWriter, StreamWriter};
use ingest::stream::batch::events_schema;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use schemas::session::SessionRow;
use schemas::table::{EVENTS, EventColumn, SESSIONS};
use schemas::{Provider, Timestamp};
use xxhash_rust::xxh3::xxh3_64;

use super::error::{StoreError, write_error};
use super::segment::event_reader::{number_column, value_at};
use super::segment::table_columns::to_batch;
use super::session_events::ALL_EVENTS;
use super::snapshot::Snapshot;

/// Most events of a session in one object; a longer session has several objects a day. They are
/// counted by event index, and its texts from the first event on, so that the parts of a session are
/// the same wherever it was ingested, in however many pieces.
pub(super) const MAX_PART_EVENTS: i32 = 1 << 16;

/// Bytes of text after which an object of a session ends before the next event. A reader decodes an
/// object as a whole.
const MAX_PART_BYTES: i64 = 32 << 20;

/// Most bytes of a session id that is used as a file name unchanged.
const MAX_ID_BYTES: usize = 120;

/// Most characters of a changed session id in a file name. The hash follows them.
const MAX_CHANGED_ID_CHARS: usize = 80;

/// First characters of the file names that pyarrow and Spark ignore.
const HIDDEN_STARTS: [char; 2] = ['.', '_'];

/// Length of a day in microseconds.
const DAY_US: i64 = 86_400_000_000;

/// Day and part. The rows of a session with the same key form one object.
type DayPart = (i32, i32);

/// Events of one session on one day, as a Parquet file.
pub struct LakeObject {
    /// Its path below the root of the lake:
    /// `p_provider=X/p_date=YYYY-MM-DD/<session_id>-<part>.parquet`.
    pub key: PathBuf,
    pub rows: usize,
    pub bytes: Vec<u8>,
}

/// Returns the objects with the events of the session at position `at`. Events without a time,
/// which some logs have at their head, get the day on which the session began. If that is unknown,
/// they get the first of all days, 1970-01-01: pandas cannot read a partition without a value.
pub fn encode_lake_objects(snapshot: &Snapshot, at: usize) -> Result<Vec<LakeObject>, StoreError> {
    let Some(session) = snapshot.sessions().get(at) else { return Ok(Vec::new()) };
    let stem = file_stem(&session.session_id);
    let mut objects = Vec::new();
    for part in collect_parts(snapshot, at)? {
        let key = PathBuf::from(part.key(&stem));
        let bytes = encode_parquet(&part.batch).map_err(|error| write_error(&key, error))?;
        objects.push(LakeObject { key, rows: part.batch.num_rows(), bytes });
    }
    Ok(objects)
}

impl Snapshot {
    /// Returns the rows of its sessions as an Arrow stream with the columns of `sessions`. `only` names
    /// those whose rows are wanted.
    ///
    /// # Errors
    /// Fails if a row cannot be read.
    pub fn encode_sessions(&self, only: Option<&[String]>) -> Result<Vec<u8>, StoreError> {
        let rows = self.read_rows()?.into_iter().map(|row| &**row);
        let rows: Vec<&SessionRow> =
            rows.filter(|row| only.is_none_or(|only| only.contains(&row.session_id))).collect();
        let encoded = to_batch(&SESSIONS, &rows).and_then(|batch| {
            let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
            writer.write(&batch)?;
            writer.into_inner()
        });
        encoded.map_err(|error| write_error(self.dir(), error))
    }
}

/// The events of one session on one day, or a part of them.
pub(super) struct SessionPart {
    provider: Provider,
    day: i32,
    part: i32,
    /// One batch, so that the bytes of an object do not depend on how the store holds the rows.
    pub(super) batch: RecordBatch,
}

impl SessionPart {
    /// Returns the path of its object below the root of the lake. `stem` is the session's name.
    pub(super) fn key(&self, stem: &str) -> String {
        let Self { provider, day, part, .. } = self;
        format!("p_provider={provider}/p_date={}/{stem}-{part}.parquet", format_date(*day))
    }
}

/// Returns the events of the session at position `at` by day and part.
pub(super) fn collect_parts(
    snapshot: &Snapshot,
    at: usize,
) -> Result<Vec<SessionPart>, StoreError> {
    let Some(session) = snapshot.sessions().get(at) else { return Ok(Vec::new()) };
    let schema = export_schema();
    let began = session.started_at.and_then(day_since_epoch).unwrap_or(0);
    let mut parts: BTreeMap<DayPart, Vec<RecordBatch>> = BTreeMap::new();
    let mut part_bytes = PartBytes::default();
    read_public_batches(snapshot, at, &schema, |batch| {
        let keys = day_parts(&batch, began, &mut part_bytes);
        let mut start = 0;
        for run in keys.chunk_by(|a, b| a == b) {
            if let Some(key) = run.first() {
                parts.entry(*key).or_default().push(batch.slice(start, run.len()));
            }
            start += run.len();
        }
        Ok(())
    })?;

    let mut joined = Vec::with_capacity(parts.len());
    for ((day, part), batches) in parts {
        let batch = concat_batches(&schema, &batches)
            .map_err(|error| write_error(Path::new(&session.session_id), error))?;
        joined.push(SessionPart { provider: session.provider, day, part, batch });
    }
    Ok(joined)
}

/// Writes the events of the sessions at these positions, session by session, as one Arrow IPC file.
/// Returns the number of events. `path` is for messages.
pub fn write_arrow(
    snapshot: &Snapshot,
    sessions: &[usize],
    file: &mut File,
    path: &Path,
) -> Result<u64, StoreError> {
    let schema = export_schema();
    let mut writer =
        FileWriter::try_new_buffered(file, &schema).map_err(|error| write_error(path, error))?;
    let mut rows = 0;
    for at in sessions {
        read_public_batches(snapshot, *at, &schema, |batch| {
            rows += batch.num_rows() as u64;
            writer.write(&batch).map_err(|error| write_error(path, error))
        })?;
    }
    writer.finish().map_err(|error| write_error(path, error))?;
    Ok(rows)
}

/// Returns a session id as a part of a file name. Characters that file systems may refuse are
/// replaced, and a hash keeps such names distinct. The name never begins with a dot or `_`, because
/// pyarrow and Spark ignore such files.
pub fn file_stem(session_id: &str) -> String {
    let is_fit = (1..=MAX_ID_BYTES).contains(&session_id.len())
        && !session_id.starts_with(HIDDEN_STARTS)
        && session_id.chars().all(is_safe_in_name);
    if is_fit {
        return session_id.to_owned();
    }
    let safe: String =
        session_id.chars().map(|c| if is_safe_in_name(c) { c } else { '_' }).collect();
    let visible = safe.trim_start_matches(HIDDEN_STARTS);
    let head: String = visible.chars().take(MAX_CHANGED_ID_CHARS).collect();
    format!("{head}-{:016x}", xxh3_64(session_id.as_bytes()))
}

/// Returns true if all file systems allow `c` in a file name.
fn is_safe_in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~')
}

/// Returns the columns of `events` that are not bookkeeping of the store.
fn public_columns() -> impl Iterator<Item = EventColumn> {
    let columns = EventColumn::ALL.iter().zip(EVENTS.columns);
    columns.filter(|(_, described)| !described.is_internal).map(|(column, _)| *column)
}

/// Returns rows with all columns of `events` as they are exported.
pub(super) fn export_rows(events: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = events.schema();
    let positions = public_columns().map(|column| schema.index_of(column.name()));
    let positions: Vec<usize> = positions.collect::<Result<_, _>>()?;
    add_date_column(&events.project(&positions)?, &export_schema())
}

/// Returns the schema of exported rows: the public columns of `events`, and the day.
pub(super) fn export_schema() -> SchemaRef {
    let events = events_schema();
    let known = public_columns().filter_map(|column| events.column_with_name(column.name()));
    let mut fields: Vec<Arc<Field>> = known.map(|(_, field)| Arc::new(field.clone())).collect();
    fields.push(Arc::new(Field::new("event_date", DataType::Date32, true)));
    Arc::new(Schema::new(fields))
}

/// Calls `take` with the rows of a session, in order, as batches of [`export_schema`].
fn read_public_batches(
    snapshot: &Snapshot,
    session: usize,
    schema: &SchemaRef,
    mut take: impl FnMut(RecordBatch) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let columns: Vec<_> = public_columns().collect();
    let mut events = snapshot.events_of(session, ALL_EVENTS, &columns);
    while let Some(batch) = events.next_batch()? {
        take(add_date_column(&batch, schema).map_err(|error| events.damaged_batch(error))?)?;
    }
    Ok(())
}

/// Returns a batch with an added column for the day of each event, in UTC.
fn add_date_column(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let times = number_column::<TimestampMicrosecondType>(batch, EventColumn::Timestamp);
    let dates: Date32Array =
        (0..batch.num_rows()).map(|row| day_since_epoch(value_at(times, row)?)).collect();
    let mut columns = batch.columns().to_vec();
    columns.push(Arc::new(dates));
    RecordBatch::try_new(Arc::clone(schema), columns)
}

/// Counts the bytes of the texts of a session, event by event.
#[derive(Default)]
struct PartBytes {
    /// Bytes of the present part.
    bytes: i64,
    /// Number of parts that ended because of their size.
    ended: i32,
}

impl PartBytes {
    /// Counts a text, and returns the number of parts that ended before it.
    fn add(&mut self, bytes: i64) -> i32 {
        if self.bytes > 0 && self.bytes + bytes > MAX_PART_BYTES {
            self.bytes = 0;
            self.ended += 1;
        }
        self.bytes += bytes;
        self.ended
    }
}

/// Returns the day and the part of each row. Rows without a time get the day `began`.
fn day_parts(batch: &RecordBatch, began: i32, part_bytes: &mut PartBytes) -> Vec<DayPart> {
    let dates = batch.column_by_name("event_date");
    let dates = dates.and_then(|column| column.as_primitive_opt::<Date32Type>());
    let indexes = number_column::<Int32Type>(batch, EventColumn::EventIndex);
    let sizes = number_column::<Int32Type>(batch, EventColumn::TextBytes);
    let mut keys = Vec::with_capacity(batch.num_rows());
    for row in 0..batch.num_rows() {
        let day = value_at(dates, row);
        let ended = part_bytes.add(sizes.map_or(0, |sizes| i64::from(sizes.value(row))));
        let part = indexes.map_or(0, |indexes| indexes.value(row) / MAX_PART_EVENTS);
        keys.push((day.unwrap_or(began), part + ended));
    }
    keys
}

/// Returns the day of a time, in UTC, counted from 1970.
fn day_since_epoch(micros: i64) -> Option<i32> {
    i32::try_from(micros.div_euclid(DAY_US)).ok()
}

/// Formats a day as 2026-10-14.
fn format_date(day: i32) -> String {
    let text = Timestamp(i64::from(day) * DAY_US).to_string();
    text.split('T').next().unwrap_or(&text).to_owned()
}

/// Returns the properties of exported Parquet files.
pub(super) fn parquet_properties() -> WriterProperties {
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3).unwrap_or_default()))
        // Omits our version, which says nothing about the content.
        .set_created_by("sessions".to_owned())
        .build()
}

/// Returns a Parquet file with the rows of `batch`.
pub(super) fn encode_parquet(batch: &RecordBatch) -> Result<Vec<u8>, ParquetError> {
    let properties = Some(parquet_properties());
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), properties)?;
    writer.write(batch)?;
    writer.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ingest::stream::batch::{EventBatch, EventCells};

    fn batch(times: &[Option<i64>]) -> RecordBatch {
        let mut events = EventBatch::default();
        for (event_index, timestamp) in (0..).zip(times) {
            let timestamp = *timestamp;
            events.push(&EventCells { event_index, timestamp, ..EventCells::default() });
        }
        let all = events.finish(&events_schema(), 1);
        let public: Vec<_> = public_columns()
            .filter_map(|column| all.schema().index_of(column.name()).ok())
            .collect();
        add_date_column(&all.project(&public).expect("projects"), &export_schema()).expect("fits")
    }

    #[test]
    fn days_are_utc_and_events_without_a_time_lie_with_the_beginning() {
        let batch = batch(&[Some(0), Some(DAY_US - 1), Some(DAY_US), Some(-1), None]);
        let days: Vec<_> = day_parts(&batch, 2, &mut PartBytes::default())
            .into_iter()
            .map(|(day, _)| format_date(day))
            .collect();
        let want = ["1970-01-01", "1970-01-01", "1970-01-02", "1969-12-31", "1970-01-03"];
        assert_eq!(days, want);
    }

    #[test]
    fn bytes_do_not_show_how_the_rows_were_cut() {
        let whole = batch(&[Some(5), Some(6), Some(7)]);
        let parts = [whole.slice(0, 1), whole.slice(1, 2)];
        let joined = concat_batches(&export_schema(), &parts).expect("joins");
        assert_eq!(
            encode_parquet(&whole).expect("encodes"),
            encode_parquet(&joined).expect("encodes")
        );
    }

    #[test]
    fn names_are_safe_and_stay_apart() {
        assert_eq!(file_stem("agent-a1~2"), "agent-a1~2");
        let long = "x".repeat(500);
        let odd = ["../x", "..", "_x", "", "a/b", "a\\b", "a b", long.as_str()];
        let mut names: Vec<_> = odd.iter().map(|id| file_stem(id)).collect();
        for name in &names {
            assert!(!name.contains(['/', '\\', ' ']) && !name.starts_with(['.', '_']), "{name}");
            assert!(name.len() <= 120, "{name}");
        }
        names.sort();
        names.dedup();
        assert_eq!(names.len(), odd.len());
    }
}
