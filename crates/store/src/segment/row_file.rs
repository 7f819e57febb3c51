//! The rows of a small table in a form that is decoded many times as fast as Parquet. An ingest that
//! has something to read decodes those of all sessions and sources, so this time grows with the
//! store. The briefs that every process reads have the same form.
//!
//! ```text
//! head  "ROWFILE1", hash of the layout: the columns' names and the version of the schema (8 bytes)
//! rows  the values of each row, in the order of its fields:
//!       integer  the sign in the lowest bit, seven bits a byte
//!       text     length in bytes, then UTF-8
//!       enum     its name, as a text
//!       flag     one byte
//!       option   one byte, 0 or 1, then the value
//! ```
//!
//! The Parquet file of the table has the same rows, and is read if a row file is missing, as in
//! segments that earlier versions wrote, or if it has other columns.

use schemas::SCHEMA_VERSION;
use schemas::table::Table;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::xxh3_64;

use super::row_decoder::take_row;
use super::row_encoder::RowError;

/// First bytes of the file; the digit is the version of the layout.
const MAGIC: &[u8; 8] = b"ROWFILE1";

/// Calls `take` with each row of a row file. Returns `None` if its rows have another layout.
pub(super) fn decode_rows<T: DeserializeOwned>(
    layout: &str,
    bytes: &[u8],
    mut take: impl FnMut(T),
) -> Result<Option<()>, RowError> {
    let Some(mut rest) = rows_after_head(layout, bytes) else { return Ok(None) };
    while !rest.is_empty() {
        take(take_row(&mut rest)?);
    }
    Ok(Some(()))
}

/// Returns the bytes of the rows of a row file. `None` if its rows have another layout.
pub(super) fn rows_after_head<'b>(layout: &str, bytes: &'b [u8]) -> Option<&'b [u8]> {
    bytes.strip_prefix(&*head_of(layout))
}

/// Returns the layout of the rows of `table`.
pub(super) fn layout_of(table: &Table) -> String {
    let mut columns = SCHEMA_VERSION.to_string();
    for column in table.columns {
        columns.push('\n');
        columns.push_str(column.name);
    }
    columns
}

/// Returns the head of a row file whose rows have `layout`. The rows of
/// [`append_row`](super::row_encoder::append_row) follow it.
pub(super) fn head_of(layout: &str) -> Vec<u8> {
    [MAGIC.as_slice(), &xxh3_64(layout.as_bytes()).to_le_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use schemas::Provider;
    use schemas::session::{SessionRow, SourceRow, SourceStatus};
    use schemas::table::{SESSIONS, SOURCES};
    use serde::Serialize;

    use super::super::row_encoder::append_row;
    use super::*;

    fn encode_rows<T: Serialize>(layout: &str, rows: &[T]) -> Result<Vec<u8>, RowError> {
        let mut out = head_of(layout);
        rows.iter().try_for_each(|row| append_row(row, &mut out))?;
        Ok(out)
    }

    fn read<T: DeserializeOwned>(table: &Table, bytes: &[u8]) -> Result<Option<Vec<T>>, RowError> {
        let mut rows = Vec::new();
        Ok(decode_rows(&layout_of(table), bytes, |row| rows.push(row))?.map(|()| rows))
    }

    #[test]
    fn damage_and_other_columns_are_noticed() {
        let row = SessionRow { title: Some("täxt".into()), ..SessionRow::default() };
        let bytes =
            encode_rows(&layout_of(&SESSIONS), &[row.clone(), row.clone()]).expect("encodes");
        assert_eq!(read(&SESSIONS, &bytes).expect("reads"), Some(vec![row.clone(), row]));
        assert_eq!(read::<SourceRow>(&SOURCES, &bytes).expect("reads"), None);
        assert_eq!(read::<SessionRow>(&SESSIONS, &[]).expect("reads"), None);
        let head = head_of(&layout_of(&SESSIONS)).len();
        let one_row = head + (bytes.len() - head) / 2;
        for cut in head + 1..bytes.len() {
            let found = read::<SessionRow>(&SESSIONS, &bytes[..cut]);
            assert_eq!(found.is_ok(), cut == one_row, "{cut}");
        }
        for at in head..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0xff;
            // It may be read as other rows; checksums tell them apart.
            let _ = read::<SessionRow>(&SESSIONS, &damaged);
        }
    }

    proptest! {
        #[test]
        fn rows_are_read_back(
            texts in proptest::collection::vec(proptest::option::of(".{0,200}"), 4),
            numbers in proptest::collection::vec(any::<i64>(), 4),
            flag in any::<bool>(),
        ) {
            let text = |at: usize| texts[at].clone();
            let session = SessionRow {
                session_id: text(0).unwrap_or_default(),
                provider: Provider::Codex,
                title: text(1),
                abandoned: text(2),
                started_at: flag.then_some(numbers[0]),
                events: numbers[1],
                source_gone: flag,
                segment: numbers[2],
                ..SessionRow::default()
            };
            let bytes = encode_rows(&layout_of(&SESSIONS), std::slice::from_ref(&session)).expect("encodes");
            prop_assert_eq!(read(&SESSIONS, &bytes).expect("reads"), Some(vec![session]));
            let source = SourceRow {
                session_id: text(3),
                provider: flag.then_some(Provider::Kiro),
                head_hash: numbers[3],
                ..SourceRow::unread(text(0).unwrap_or_default(), SourceStatus::Gone, numbers[0], 1)
            };
            let bytes = encode_rows(&layout_of(&SOURCES), std::slice::from_ref(&source)).expect("encodes");
            prop_assert_eq!(read(&SOURCES, &bytes).expect("reads"), Some(vec![source]));
        }
    }
}
