//! Decodes objects of a lake. They were written by other machines, so nothing about them is taken for
//! granted: their size, their columns, their order, and that the Parquet reader survives them.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, PrimitiveArray, RecordBatch, StringArray,
    UInt32Array, new_null_array,
};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::{DataType, Int32Type, Int64Type, SchemaRef, TimestampMicrosecondType};
use bytes::Bytes;
use ingest::source::panics::catch_panic;
use ingest::stream::batch::arrow_schema;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::ParquetMetaData;
use schemas::table::{EVENTS, EventColumn, Table};
use schemas::{EventType, Provider};

use crate::export::MAX_PART_EVENTS;
use crate::segment::event_reader::{number_column, text_column};
use crate::thrift::{has_whole_footer, read_page_sizes};

/// Most bytes of an object of a lake.
pub const MAX_OBJECT_BYTES: u64 = 256 << 20;

/// Most bytes of the decoded columns of an object. Those that a push writes have texts of at most
/// `MAX_PART_BYTES`, and one more. Only one of this size is in memory at a time.
const MAX_DECODED_BYTES: u64 = 128 << 20;

/// Most bytes of the decoded columns of a joined object, which has the events of many sessions.
const MAX_JOINED_BYTES: u64 = 256 << 20;

/// Most rows decoded at a time.
const MAX_BATCH_ROWS: u64 = 1024;

/// Most bytes of the decoded events of a session.
const MAX_SESSION_BYTES: usize = 192 << 20;

/// The largest number that an event may have: bytes, milliseconds and tokens are below it, and sums
/// over many events fit into 64 bits.
const MAX_NUMBER: i64 = 1 << 42;

/// The first time that an event may have: the year 1, in microseconds since the epoch.
const EARLIEST_TIME: i64 = -62_135_596_800_000_000;

/// The last time that an event may have: the year 9999.
const LATEST_TIME: i64 = 253_402_300_799_999_999;

/// Returns the events in an object, with all columns of the table `events`.
///
/// # Errors
/// Returns the reason if the object is not what a session of this id and provider has.
pub fn decode_events(
    bytes: Vec<u8>,
    session_id: &str,
    provider: Provider,
) -> Result<RecordBatch, String> {
    let max_rows = i64::from(MAX_PART_EVENTS);
    check_events(&read_parquet(bytes, max_rows)?, session_id, provider)
}

/// Returns the rows of a joined object, in order.
///
/// # Errors
/// Returns the reason if the object does not have `count` rows.
pub fn decode_joined(bytes: Vec<u8>, count: usize) -> Result<Vec<RecordBatch>, String> {
    let max_rows = i64::try_from(count).unwrap_or(i64::MAX);
    let read = catch_panic(|| read_batches(bytes, max_rows, MAX_JOINED_BYTES));
    let (_, batches) = read.unwrap_or_else(|| Err("its data is broken".into()))?;
    let found: usize = batches.iter().map(RecordBatch::num_rows).sum();
    if found != count {
        return Err(format!("it has {found} rows, not {count}"));
    }
    Ok(batches)
}

/// Returns a range of the rows of a joined object, which must have it. The result keeps nothing of
/// the other rows.
///
/// # Errors
/// Returns the reason if the rows cannot be joined.
pub fn slice_joined(batches: &[RecordBatch], rows: Range<usize>) -> Result<RecordBatch, String> {
    let schema = batches.first().map(RecordBatch::schema).ok_or("it has no rows")?;
    let mut parts = Vec::new();
    let mut start = 0;
    for batch in batches {
        let end = start + batch.num_rows();
        let from = rows.start.clamp(start, end) - start;
        let until = rows.end.clamp(start, end) - start;
        if from < until {
            let wanted = UInt32Array::from_iter_values(from as u32..until as u32);
            parts.push(take_record_batch(batch, &wanted).map_err(|error| error.to_string())?);
        }
        start = end;
    }
    concat_batches(&schema, &parts).map_err(|error| error.to_string())
}

/// Returns rows of events with all columns of the table `events`.
///
/// # Errors
/// Returns the reason if they are not what a session of this id and provider has.
pub fn check_events(
    rows: &RecordBatch,
    session_id: &str,
    provider: Provider,
) -> Result<RecordBatch, String> {
    let batch = conform(rows, &EVENTS)?;
    require_value(&batch, EventColumn::SessionId, session_id)?;
    require_value(&batch, EventColumn::Provider, provider.as_str())?;
    let types = required_texts(&batch, EventColumn::EventType)?;
    if let Some(unknown) = types.iter().flatten().find(|name| name.parse::<EventType>().is_err()) {
        return Err(format!("'{}' is not a type of event", unknown.escape_debug()));
    }
    check_numbers(&batch)?;
    Ok(batch)
}

/// Returns an error if a number is not one that an event of a log has.
fn check_numbers(batch: &RecordBatch) -> Result<(), String> {
    for (column, values) in EVENTS.columns.iter().zip(batch.columns()) {
        let (lowest, highest) = match column.name {
            "timestamp" => (EARLIEST_TIME, LATEST_TIME),
            "exit_code" => (i64::from(i32::MIN), i64::from(i32::MAX)),
            _ => (0, MAX_NUMBER),
        };
        let is_allowed = |number: i64| (lowest..=highest).contains(&number);
        let all = if let Some(numbers) = values.as_primitive_opt::<Int64Type>() {
            numbers.iter().flatten().all(is_allowed)
        } else if let Some(numbers) = values.as_primitive_opt::<Int32Type>() {
            numbers.iter().flatten().map(i64::from).all(is_allowed)
        } else if let Some(times) = values.as_primitive_opt::<TimestampMicrosecondType>() {
            times.iter().flatten().all(is_allowed)
        } else {
            true
        };
        if !all {
            return Err(format!("{} has values that no log has", column.name));
        }
    }
    Ok(())
}

/// Orders the parts of a session. They are joined only if their events alternate.
///
/// # Errors
/// Returns the reason if the events are not those from 0 to `events`, each once.
pub fn order_events(mut parts: Vec<RecordBatch>, events: i64) -> Result<Vec<RecordBatch>, String> {
    let size: usize = parts.iter().map(batch_bytes).sum();
    if size > MAX_SESSION_BYTES {
        return Err(format!("its events have more than {MAX_SESSION_BYTES} bytes"));
    }
    parts.retain(|part| part.num_rows() > 0);
    let mut sorted = Vec::with_capacity(parts.len());
    for part in parts {
        let first = event_indexes(&part)?.value(0);
        sorted.push((first, part));
    }
    sorted.sort_by_key(|(first, _)| *first);
    let parts: Vec<RecordBatch> = sorted.into_iter().map(|(_, part)| part).collect();
    let mut next = 0;
    let mut is_in_order = true;
    for part in &parts {
        for index in event_indexes(part)?.values() {
            is_in_order &= i64::from(*index) == next;
            next += 1;
        }
    }
    if is_in_order && next == events {
        return Ok(parts);
    }
    join_events(&parts, events).map(|joined| vec![joined])
}

fn event_indexes(batch: &RecordBatch) -> Result<&PrimitiveArray<Int32Type>, String> {
    number_column(batch, EventColumn::EventIndex).ok_or_else(|| "it has no event_index".to_owned())
}

/// Joins the parts of a session, and orders its events.
fn join_events(parts: &[RecordBatch], events: i64) -> Result<RecordBatch, String> {
    let joined = catch_panic(|| concat_batches(&arrow_schema(&EVENTS), parts))
        .ok_or("its parts cannot be joined")?
        .map_err(|error| error.to_string())?;
    let indexes = event_indexes(&joined)?;
    let mut order: Vec<u32> = (0..u32::try_from(joined.num_rows()).unwrap_or(u32::MAX)).collect();
    order.sort_by_key(|row| indexes.value(*row as usize));
    let is_complete = i64::try_from(order.len()) == Ok(events)
        && (0..).zip(&order).all(|(index, row)| indexes.value(*row as usize) == index);
    if !is_complete {
        return Err(format!("it does not have the events 0 to {}, each once", events - 1));
    }
    take_record_batch(&joined, &UInt32Array::from(order)).map_err(|error| error.to_string())
}

/// Returns the bytes of rows of events.
pub fn batch_bytes(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(slice_bytes).sum()
}

/// Returns the bytes of the rows of a column. Its buffers may have others, too.
fn slice_bytes(column: &ArrayRef) -> usize {
    let data = column.to_data();
    data.get_slice_memory_size().unwrap_or_else(|_| data.get_array_memory_size())
}

/// Reads a Parquet file with at most `max_rows` rows as one batch.
pub(super) fn read_parquet(bytes: Vec<u8>, max_rows: i64) -> Result<RecordBatch, String> {
    catch_panic(|| read_batch(bytes, max_rows)).unwrap_or_else(|| Err("its data is broken".into()))
}

fn read_batch(bytes: Vec<u8>, max_rows: i64) -> Result<RecordBatch, String> {
    let (schema, batches) = read_batches(bytes, max_rows, MAX_DECODED_BYTES)?;
    concat_batches(&schema, &batches).map_err(|error| error.to_string())
}

/// Reads a Parquet file with at most `max_rows` rows and `max_bytes` bytes before compression.
fn read_batches(
    bytes: Vec<u8>,
    max_rows: i64,
    max_bytes: u64,
) -> Result<(SchemaRef, Vec<RecordBatch>), String> {
    if !has_whole_footer(&bytes) {
        return Err("its footer is broken".to_owned());
    }
    let bytes = Bytes::from(bytes);
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes.clone())
        .map_err(|error| error.to_string())?;
    let metadata = Arc::clone(builder.metadata());
    let rows = metadata.file_metadata().num_rows();
    if !(0..=max_rows).contains(&rows) {
        return Err(format!("it has {rows} rows, and at most {max_rows} are allowed"));
    }
    let largest_page = check_decoded_size(&bytes, &metadata, max_bytes)?;
    let schema = Arc::clone(builder.schema());
    // A text that the file has once may be in each row.
    let batch_rows = (max_bytes / largest_page.max(1)).clamp(1, MAX_BATCH_ROWS);
    let builder = builder.with_batch_size(batch_rows as usize);
    let reader = builder.build().map_err(|error| error.to_string())?;
    let mut batches = Vec::new();
    let mut found = 0;
    let mut size = 0;
    for batch in reader {
        let batch = batch.map_err(|error| error.to_string())?;
        found += batch.num_rows() as i64;
        if found > max_rows {
            return Err(format!("it has more than {max_rows} rows"));
        }
        size += batch.get_array_memory_size() as u64;
        if size > max_bytes {
            return Err(format!("its rows have more than {max_bytes} bytes"));
        }
        batches.push(batch);
    }
    Ok((schema, batches))
}

/// Returns the size of the largest page of a file before compression.
///
/// # Errors
/// Returns the reason if the pages decompress to too much.
fn check_decoded_size(
    bytes: &[u8],
    metadata: &ParquetMetaData,
    max_bytes: u64,
) -> Result<u64, String> {
    let mut decoded: u64 = 0;
    let mut largest = 0;
    for chunk in metadata.row_groups().iter().flat_map(|group| group.columns()) {
        let (start, length) = chunk.byte_range();
        let range = usize::try_from(start).ok().zip(usize::try_from(length).ok());
        let range = range.and_then(|(start, length)| Some(start..start.checked_add(length)?));
        let sizes = range.and_then(|range| read_page_sizes(bytes, range));
        let sizes = sizes.ok_or("its pages are broken")?;
        decoded = decoded.saturating_add(sizes.sum);
        largest = sizes.largest.max(largest);
    }
    if decoded > max_bytes {
        return Err(format!("it has {decoded} bytes of data, more than {max_bytes}"));
    }
    Ok(largest)
}

/// Returns rows with exactly the columns of a table. Columns that a later version may have are left
/// out. Optional columns that an earlier version may lack are null, and bookkeeping is 0.
pub(super) fn conform(batch: &RecordBatch, table: &Table) -> Result<RecordBatch, String> {
    let schema = arrow_schema(table);
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(table.columns.len());
    for (column, field) in table.columns.iter().zip(schema.fields()) {
        let rows = batch.num_rows();
        let found = batch.column_by_name(column.name).filter(|_| !column.is_internal);
        let values = match found {
            Some(values) if values.data_type() == field.data_type() => Arc::clone(values),
            Some(values) => {
                let kind = values.data_type();
                return Err(format!("{} has the type {kind}", column.name));
            }
            None if column.is_internal => empty_values(field.data_type(), rows),
            None if column.is_nullable => new_null_array(field.data_type(), rows),
            None => return Err(format!("it has no {}", column.name)),
        };
        if !column.is_nullable && values.null_count() > 0 {
            return Err(format!("{} is null in some rows", column.name));
        }
        columns.push(values);
    }
    RecordBatch::try_new(schema, columns).map_err(|error| error.to_string())
}

/// Returns the values of a column of bookkeeping.
fn empty_values(kind: &DataType, rows: usize) -> ArrayRef {
    if *kind == DataType::Boolean {
        return Arc::new(BooleanArray::from(vec![false; rows]));
    }
    Arc::new(Int64Array::from_value(0, rows))
}

fn required_texts(batch: &RecordBatch, column: EventColumn) -> Result<&StringArray, String> {
    text_column(batch, column).ok_or_else(|| format!("it has no {}", column.name()))
}

/// Returns an error unless a column has the same value in all rows.
fn require_value(batch: &RecordBatch, column: EventColumn, value: &str) -> Result<(), String> {
    let texts = required_texts(batch, column)?;
    match texts.iter().flatten().find(|text| *text != value) {
        Some(other) => {
            Err(format!("{} is '{}', not '{value}'", column.name(), other.escape_debug()))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_column_has_the_bytes_of_its_rows() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(1000); 1000]));
        let part = texts.slice(7, 1);
        assert!((1000..2000).contains(&slice_bytes(&part)), "{}", slice_bytes(&part));
        assert!(slice_bytes(&texts) >= 1_000_000);
    }
}
