//! The rows of sessions as objects of a lake, with who published them.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use arrow::error::ArrowError;
use schemas::session::SessionRow;
use schemas::table::SESSIONS;

use super::decode::{conform, read_parquet};
use crate::error::{StoreError, write_error};
use crate::export::encode_parquet;
use crate::segment::table_columns::to_batch;

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
    ///
    /// # Errors
    /// Fails if the row cannot be encoded.
    pub fn encode(&self) -> Result<Vec<u8>, StoreError> {
        Self::encode_all(std::slice::from_ref(self))
    }

    /// Returns a Parquet file with the rows of many sessions.
    ///
    /// # Errors
    /// Fails if the rows cannot be encoded.
    pub fn encode_all(sessions: &[Self]) -> Result<Vec<u8>, StoreError> {
        let path = Path::new(sessions.first().map_or("", |session| &session.row.session_id));
        let rows: Vec<&SessionRow> = sessions.iter().map(|session| &session.row).collect();
        let rows = to_batch(&SESSIONS, &rows).map_err(|error| write_error(path, error))?;
        let batch = add_origins(&rows, sessions).map_err(|error| write_error(path, error))?;
        encode_parquet(&batch).map_err(|error| write_error(path, error))
    }

    /// Decodes an object.
    ///
    /// # Errors
    /// Returns the reason if it is not a row of a session.
    pub fn decode(bytes: Vec<u8>) -> Result<Self, String> {
        let rows = Self::decode_all(bytes, 1)?;
        rows.into_iter().next().ok_or_else(|| "it has no row".to_owned())
    }

    /// Decodes an object with the rows of many sessions.
    ///
    /// # Errors
    /// Returns the reason if it does not have `count` rows of sessions.
    pub fn decode_all(bytes: Vec<u8>, count: usize) -> Result<Vec<Self>, String> {
        let batch = read_parquet(bytes, i64::try_from(count).unwrap_or(i64::MAX))?;
        let publishers = read_texts(&batch, "publisher")?;
        let identities = read_texts(&batch, "log_identity")?;
        let first = batch.column_by_name("first_record");
        let first = first.and_then(|column| column.as_primitive_opt::<Int64Type>());
        let rows: Vec<SessionRow> = serde_arrow::from_record_batch(&conform(&batch, &SESSIONS)?)
            .map_err(|error| error.to_string())?;
        if rows.len() != count {
            return Err(format!("it has {} rows, not {count}", rows.len()));
        }
        let mut sessions = Vec::with_capacity(count);
        for (at, row) in rows.into_iter().enumerate() {
            let first_record =
                first.filter(|first| first.is_valid(at)).map(|first| first.value(at));
            let publisher = publishers[at].clone();
            sessions.push(Self { row, publisher, identity: identities[at].clone(), first_record });
        }
        Ok(sessions)
    }
}

/// Returns the public columns of rows, and the columns of their origins.
fn add_origins(
    rows: &RecordBatch,
    sessions: &[PublishedSession],
) -> Result<RecordBatch, ArrowError> {
    let mut fields = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for (at, column) in SESSIONS.columns.iter().enumerate() {
        if !column.is_internal {
            fields.push(rows.schema().field(at).clone());
            columns.push(Arc::clone(rows.column(at)));
        }
    }
    let publishers = sessions.iter().map(|session| Some(session.publisher.as_str()));
    let identities = sessions.iter().map(|session| Some(session.identity.as_str()));
    fields.push(Field::new("publisher", DataType::Utf8, false));
    columns.push(Arc::new(publishers.collect::<StringArray>()));
    fields.push(Field::new("log_identity", DataType::Utf8, false));
    columns.push(Arc::new(identities.collect::<StringArray>()));
    fields.push(Field::new("first_record", DataType::Int64, true));
    columns.push(Arc::new(sessions.iter().map(|one| one.first_record).collect::<Int64Array>()));
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

/// Returns the texts of a column, which has one in every row.
fn read_texts(batch: &RecordBatch, name: &str) -> Result<Vec<String>, String> {
    let column = batch.column_by_name(name).and_then(|column| column.as_string_opt::<i32>());
    let texts = column.ok_or_else(|| format!("it has no {name}"))?;
    let texts: Option<Vec<String>> = texts.iter().map(|text| text.map(str::to_owned)).collect();
    texts.ok_or_else(|| format!("its {name} is null in some rows"))
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
    fn the_rows_of_many_sessions_come_back_in_order() {
        let other = PublishedSession {
            row: SessionRow { session_id: "s2".into(), ..published().row },
            publisher: "a2".into(),
            first_record: None,
            ..published()
        };
        let all = [other, published()];
        let bytes = PublishedSession::encode_all(&all).expect("encodes");
        assert!(PublishedSession::decode(bytes.clone()).is_err());
        assert!(PublishedSession::decode_all(bytes.clone(), 3).is_err());
        assert_eq!(PublishedSession::decode_all(bytes, 2).as_deref(), Ok(&all[..]));
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
