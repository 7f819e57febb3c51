//! Turns rows of the small tables into Arrow columns.

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use ingest::stream::batch::arrow_schema;
use schemas::table::Table;
use serde::Serialize;

/// Converts rows to a batch of `table`, which has a column for each field of the structs.
pub(crate) fn to_batch<T: Serialize>(table: &Table, rows: &[T]) -> Result<RecordBatch, ArrowError> {
    serde_arrow::to_record_batch(arrow_schema(table).fields(), &rows)
        .map_err(|error| ArrowError::from_external_error(error.into()))
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
        assert_eq!(batch.schema(), arrow_schema(table));
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
}
