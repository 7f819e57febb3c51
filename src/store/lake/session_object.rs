//! The row of a session as an object of a lake, with who published it.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use arrow::error::ArrowError;
use ingest::stream::batch::arrow_schema;
use schemas::session::SessionRow;
use schemas::table::SESSIONS;

use super::decode::{conform, read_parquet};
use crate::store::error::{StoreError, write_error};
use crate::store::export::encode_parquet;
use crate::store::segment::segment_writer::to_batch;

/// The session of a lake, and where it is from.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedSession {
    pub row: SessionRow,
    /// Id of the machine that published it.
    pub publisher: String,
    /// Identity of its log; see [`ingest::plan::excluded::log_identity`].
    pub identity: String,
    /// Identity of the first record of its log, if there is one.
    pub first_record: Option<i64>,
}

impl PublishedSession {
    /// Returns the object: a Parquet file with one row.
    pub fn encode(&self) -> Result<Vec<u8>, StoreError> {
        let path = Path::new(&self.row.session_id);
        let rows = to_batch(&arrow_schema(&SESSIONS), std::slice::from_ref(&self.row))
            .map_err(|error| write_error(path, error))?;
        let batch = self.add_origin(&rows).map_err(|error| write_error(path, error))?;
        encode_parquet(&batch).map_err(|error| write_error(path, error))
    }

    /// Returns the public columns of the row, and the columns of its origin.
    fn add_origin(&self, rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let mut fields = Vec::new();
        let mut columns: Vec<ArrayRef> = Vec::new();
        for (at, column) in SESSIONS.columns.iter().enumerate() {
            if !column.is_internal {
                fields.push(rows.schema().field(at).clone());
                columns.push(Arc::clone(rows.column(at)));
            }
        }
        for (name, text) in [("publisher", &self.publisher), ("log_identity", &self.identity)] {
            fields.push(Field::new(name, DataType::Utf8, false));
            columns.push(Arc::new(StringArray::from(vec![text.as_str()])));
        }
        fields.push(Field::new("first_record", DataType::Int64, true));
        columns.push(Arc::new(Int64Array::from(vec![self.first_record])));
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
    }

    /// Decodes an object.
    ///
    /// # Errors
    /// Returns the reason if it is not a row of a session.
    pub fn decode(bytes: Vec<u8>) -> Result<Self, String> {
        let batch = read_parquet(bytes, 1)?;
        let text = |name: &str| {
            let column =
                batch.column_by_name(name).and_then(|column| column.as_string_opt::<i32>());
            let value = column.and_then(|column| column.iter().next().flatten());
            value.map(str::to_owned).ok_or_else(|| format!("it has no {name}"))
        };
        let publisher = text("publisher")?;
        let identity = text("log_identity")?;
        let first = batch.column_by_name("first_record");
        let first = first.and_then(|column| column.as_primitive_opt::<Int64Type>());
        let first_record = first.and_then(|column| column.iter().next().flatten());
        let rows: Vec<SessionRow> = serde_arrow::from_record_batch(&conform(&batch, &SESSIONS)?)
            .map_err(|error| error.to_string())?;
        let row = rows.into_iter().next().ok_or("it has no row")?;
        Ok(Self { row, publisher, identity, first_record })
    }
}

#[cfg(test)]
mod tests {
    use schemas::Provider;

    use super::*;

    fn published() -> PublishedSession {
        PublishedSession {
            row: SessionRow {
                session_id: "s1".into(),
                provider: Provider::Codex,
                title: Some("a title".into()),
                machine: Some("laptop".into()),
                user_name: Some("mira".into()),
                events: 3,
                ..SessionRow::default()
            },
            publisher: "a1".into(),
            identity: "f0".into(),
            first_record: Some(-7),
        }
    }

    #[test]
    fn a_row_comes_back_and_equal_rows_have_equal_bytes() {
        let bytes = published().encode().expect("encodes");
        assert_eq!(published().encode().expect("encodes"), bytes);
        assert_eq!(PublishedSession::decode(bytes), Ok(published()));
    }

    #[test]
    fn broken_objects_are_refused_without_a_panic() {
        let bytes = published().encode().expect("encodes");
        for cut in [0, 1, 4, bytes.len() / 2, bytes.len() - 1] {
            assert!(PublishedSession::decode(bytes[..cut].to_vec()).is_err(), "{cut}");
        }
        for at in (0..bytes.len()).step_by(7) {
            let mut broken = bytes.clone();
            broken[at] ^= 0xff;
            // It may be another row; checksums of the listing show that.
            let _ = PublishedSession::decode(broken);
        }
    }
}
