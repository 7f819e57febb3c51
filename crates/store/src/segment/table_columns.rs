//! Turns encoded rows of the small tables into Arrow columns.
//!
//! Rows wait for the end of their segment in the encoding of a row file. As structs, those of tens of
//! thousands of small logs would take several times as much memory, and be far from the caches by
//! then.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, BooleanBuilder, Int64Builder, RecordBatch, StringArray,
    TimestampMicrosecondBuilder,
};
use arrow::error::ArrowError;
use ingest::stream::batch::arrow_schema;
use schemas::table::{Column, ColumnType, Table};
use serde::Serialize;

use super::row_decoder::{RowDecoder, first_text};
use super::row_encoder::{RowError, append_row};

/// Bytes of a chunk of encoded rows. The allocator keeps memory of this size for the next segment.
const CHUNK_BYTES: usize = 64 << 10;

/// Bytes of text that are reserved for each cell of a column of texts.
const RESERVED_TEXT_BYTES: usize = 8;

/// Converts rows to a batch of `table`, which has a column for each field of the structs, in the same
/// order.
pub(crate) fn to_batch<T: Serialize>(table: &Table, rows: &[T]) -> Result<RecordBatch, ArrowError> {
    let mut encoded = EncodedRows::default();
    for row in rows {
        encoded.push(row).map_err(row_error)?;
    }
    let positions: Vec<usize> = (0..rows.len()).collect();
    encoded.to_batch(table, &positions, None)
}

/// Rows as bytes, in the order in which they were added.
#[derive(Default)]
pub(super) struct EncodedRows {
    /// The rows one after the other. A row is in one chunk, and a chunk that is full stays where it
    /// is: one vector of all rows would be copied whenever it grew.
    chunks: Vec<Vec<u8>>,
    places: Vec<RowPlace>,
    /// The row that is being encoded.
    row: Vec<u8>,
}

/// The place of a row in the chunks.
#[derive(Clone, Copy)]
struct RowPlace {
    chunk: u32,
    start: u32,
    length: u32,
}

/// A column whose values are not in the encoded rows.
#[derive(Clone, Copy)]
pub(super) struct SeparateColumn<'r> {
    pub(super) name: &'static str,
    /// The text of each row; empty if it has none.
    pub(super) texts: &'r EncodedRows,
}

impl EncodedRows {
    /// Adds a row in the encoding of a row file.
    pub(super) fn push<T: Serialize>(&mut self, row: &T) -> Result<(), RowError> {
        let mut bytes = std::mem::take(&mut self.row);
        bytes.clear();
        let pushed = append_row(row, &mut bytes).and_then(|()| self.push_bytes(&bytes));
        self.row = bytes;
        pushed
    }

    /// Adds a row of these bytes.
    pub(super) fn push_bytes(&mut self, row: &[u8]) -> Result<(), RowError> {
        let has_room =
            self.chunks.last().is_some_and(|chunk| chunk.capacity() - chunk.len() >= row.len());
        if !has_room {
            self.chunks.push(Vec::with_capacity(CHUNK_BYTES.max(row.len())));
        }
        let at = self.chunks.len() - 1;
        let chunk = &mut self.chunks[at];
        let place = [at, chunk.len(), row.len()].map(u32::try_from);
        let [Ok(at), Ok(start), Ok(length)] = place else {
            return Err(RowError("it is too long".to_owned()));
        };
        chunk.extend_from_slice(row);
        self.places.push(RowPlace { chunk: at, start, length });
        Ok(())
    }

    /// Returns the number of rows.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns the bytes of a row.
    pub(super) fn row(&self, at: usize) -> &[u8] {
        let RowPlace { chunk, start, length } = self.places[at];
        &self.chunks[chunk as usize][start as usize..][..length as usize]
    }

    /// Returns the positions of the rows in the order of their first field, a text. Of several rows
    /// with the same text, the last one is kept.
    pub(super) fn sorted_positions(&self) -> Result<Vec<usize>, RowError> {
        let mut keyed = Vec::with_capacity(self.len());
        for at in 0..self.len() {
            keyed.push((first_text(self.row(at))?, at));
        }
        keyed.sort_unstable();
        keyed.dedup_by(|later, earlier| {
            let is_same = later.0 == earlier.0;
            if is_same {
                earlier.1 = later.1;
            }
            is_same
        });
        Ok(keyed.into_iter().map(|(_, at)| at).collect())
    }

    /// Converts the rows at these positions to a batch of `table`.
    pub(super) fn to_batch(
        &self,
        table: &Table,
        positions: &[usize],
        separate: Option<SeparateColumn<'_>>,
    ) -> Result<RecordBatch, ArrowError> {
        let mut columns = Vec::with_capacity(table.columns.len());
        for column in table.columns {
            let separate = separate.filter(|separate| separate.name == column.name);
            columns.push(TableColumn::new(column, separate, positions.len())?);
        }
        for at in positions {
            append_cells(self.row(*at), *at, &mut columns).map_err(row_error)?;
        }
        let arrays = columns.into_iter().map(TableColumn::finish);
        RecordBatch::try_new(arrow_schema(table), arrays.collect::<Result<_, _>>()?)
    }
}

/// A column under construction.
struct TableColumn<'r> {
    is_nullable: bool,
    /// The texts of a column that is not in the rows.
    separate: Option<&'r EncodedRows>,
    cells: CellBuilder,
    /// Rows without a value that are not in `cells` yet. Most columns of most rows have none, and
    /// many at a time are appended in less time.
    pending_nulls: usize,
}

/// Collects the cells of a column.
enum CellBuilder {
    /// Texts as bytes, which are checked to be UTF-8 all at once.
    Text(BinaryBuilder),
    Number(Int64Builder),
    Time(TimestampMicrosecondBuilder),
    Flag(BooleanBuilder),
}

impl<'r> TableColumn<'r> {
    /// Returns a column with room for this many rows.
    fn new(
        column: &Column,
        separate: Option<SeparateColumn<'r>>,
        rows: usize,
    ) -> Result<Self, ArrowError> {
        let cells = match column.kind {
            ColumnType::Text => {
                let bytes = rows.saturating_mul(RESERVED_TEXT_BYTES);
                CellBuilder::Text(BinaryBuilder::with_capacity(rows, bytes))
            }
            ColumnType::BigInt => CellBuilder::Number(Int64Builder::with_capacity(rows)),
            ColumnType::Timestamp => {
                let builder = TimestampMicrosecondBuilder::with_capacity(rows);
                CellBuilder::Time(builder.with_timezone("UTC"))
            }
            ColumnType::Bool => CellBuilder::Flag(BooleanBuilder::with_capacity(rows)),
            ColumnType::Int | ColumnType::TextList | ColumnType::Date | ColumnType::Double => {
                let message = format!("no small table has a column like {}", column.name);
                return Err(ArrowError::SchemaError(message));
            }
        };
        let separate = separate.map(|separate| separate.texts);
        Ok(Self { is_nullable: column.is_nullable, separate, cells, pending_nulls: 0 })
    }

    /// Appends the next value of a row.
    fn append_value(&mut self, row: &mut RowDecoder<'_, '_>) -> Result<(), RowError> {
        self.append_pending_nulls();
        self.cells.append_value(row)
    }

    fn append_pending_nulls(&mut self) {
        if self.pending_nulls > 0 {
            self.cells.append_nulls(std::mem::take(&mut self.pending_nulls));
        }
    }

    fn finish(mut self) -> Result<ArrayRef, ArrowError> {
        self.append_pending_nulls();
        self.cells.finish()
    }
}

impl CellBuilder {
    fn append_nulls(&mut self, count: usize) {
        match self {
            Self::Text(builder) => builder.append_nulls(count),
            Self::Number(builder) => builder.append_nulls(count),
            Self::Time(builder) => builder.append_nulls(count),
            Self::Flag(builder) => builder.append_nulls(count),
        }
    }

    /// Appends the next value of a row.
    fn append_value(&mut self, row: &mut RowDecoder<'_, '_>) -> Result<(), RowError> {
        match self {
            Self::Text(builder) => builder.append_value(row.take_text_bytes()?),
            Self::Number(builder) => builder.append_value(row.take_integer()?),
            Self::Time(builder) => builder.append_value(row.take_integer()?),
            Self::Flag(builder) => builder.append_value(row.take_flag()?),
        }
        Ok(())
    }

    fn finish(self) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Text(mut builder) => Arc::new(StringArray::try_from_binary(builder.finish())?),
            Self::Number(mut builder) => Arc::new(builder.finish()),
            Self::Time(mut builder) => Arc::new(builder.finish()),
            Self::Flag(mut builder) => Arc::new(builder.finish()),
        })
    }
}

/// Appends the cells of the row at a position to their columns.
fn append_cells(
    mut bytes: &[u8],
    at: usize,
    columns: &mut [TableColumn<'_>],
) -> Result<(), RowError> {
    let mut row = RowDecoder::new(&mut bytes);
    for column in columns {
        // The value of an option comes after a flag.
        let is_present = !column.is_nullable || row.take_flag()?;
        if is_present {
            column.append_value(&mut row)?;
        } else if let Some(texts) = column.separate
            && let text = texts.row(at)
            && !text.is_empty()
        {
            column.append_value(&mut RowDecoder::new(&mut &*text))?;
        } else {
            column.pending_nulls += 1;
        }
    }
    if bytes.is_empty() {
        Ok(())
    } else {
        Err(RowError("it has more cells than columns".to_owned()))
    }
}

fn row_error(error: RowError) -> ArrowError {
    ArrowError::from_external_error(error.into())
}

#[cfg(test)]
mod tests {
    use schemas::Provider;
    use schemas::problem::ProblemKind;
    use schemas::session::{ProblemRow, SessionRow, SourceRow, SourceStatus};
    use schemas::table::{PROBLEMS, SESSIONS, SOURCES};
    use serde::de::DeserializeOwned;

    use super::*;

    fn check<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(
        table: &Table,
        rows: &[T],
    ) {
        let batch = to_batch(table, rows).expect("fits");
        let back: Vec<T> = serde_arrow::from_record_batch(&batch).expect("reads");
        assert_eq!(back, rows);
    }

    #[test]
    fn the_rows_fit_the_tables() {
        let source = SourceRow::unread("/x".into(), SourceStatus::UnknownFormat, 1, 0);
        let known = SourceRow { provider: Some(Provider::Codex), head_hash: -7, ..source.clone() };
        check(&SOURCES, &[source, known]);
        let session =
            SessionRow { session_id: "s".into(), started_at: Some(5), ..SessionRow::default() };
        let gone = SessionRow { source_gone: true, title: Some("t".into()), ..session.clone() };
        check(&SESSIONS, &[session, gone]);
        let kind = ProblemKind::BadJson.as_str().to_owned();
        let (path, message) = ("/x".to_owned(), "m".to_owned());
        check(&PROBLEMS, &[ProblemRow { path, line: 1, byte: 2, kind, message, segment: 3 }]);
        check::<SessionRow>(&SESSIONS, &[]);
    }

    #[test]
    fn rows_are_found_whatever_their_length() {
        let lengths = [0, 10, CHUNK_BYTES - 1, CHUNK_BYTES, 3 * CHUNK_BYTES, 1, CHUNK_BYTES / 2, 7];
        let mut rows = EncodedRows::default();
        for length in lengths {
            rows.push_bytes(&vec![length as u8; length]).expect("fits");
        }
        assert_eq!(rows.len(), lengths.len());
        for (at, length) in lengths.into_iter().enumerate() {
            assert_eq!(rows.row(at), vec![length as u8; length]);
        }
    }

    #[test]
    fn rows_of_another_table_are_refused() {
        let source = SourceRow::unread("/x".into(), SourceStatus::Ok, 1, 0);
        to_batch(&SESSIONS, std::slice::from_ref(&source)).expect_err("other columns");
        to_batch(&PROBLEMS, &[source]).expect_err("more columns");
    }
}
