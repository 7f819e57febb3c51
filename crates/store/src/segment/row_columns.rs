//! Reads some columns of texts of the rows of a row file and skips the others. Nothing is allocated,
//! so this takes a fraction of the time in which whole rows are decoded.

use schemas::table::{ColumnType, Table};

use super::row_decoder::RowDecoder;
use super::row_encoder::RowError;

/// The columns of texts to read of the rows of a table.
pub(super) struct RowColumns<const N: usize> {
    /// All columns, in the order of their values in a row.
    columns: Vec<StoredColumn>,
}

/// A column of a row file.
struct StoredColumn {
    kind: ColumnType,
    is_optional: bool,
    /// Position of its value among those that are read. `None` if it is skipped.
    position: Option<usize>,
}

impl<const N: usize> RowColumns<N> {
    /// Selects the columns of these names, which have texts or names of variants.
    pub(super) fn new(table: &Table, names: [&str; N]) -> Self {
        let columns = table.columns.iter().map(|column| StoredColumn {
            kind: column.kind,
            is_optional: column.is_nullable,
            position: names.iter().position(|name| *name == column.name),
        });
        Self { columns: columns.collect() }
    }

    /// Calls `take` with the texts of each row, in the order in which the columns were named. An
    /// optional column has none in some rows. `rows` are the bytes after the head of a row file.
    pub(super) fn read_rows<'b>(
        &self,
        mut rows: &'b [u8],
        mut take: impl FnMut([Option<&'b str>; N]) -> Result<(), RowError>,
    ) -> Result<(), RowError> {
        while !rows.is_empty() {
            let mut decoder = RowDecoder::new(&mut rows);
            let mut texts = [None; N];
            for StoredColumn { kind, is_optional, position } in &self.columns {
                if *is_optional && !decoder.take_flag()? {
                    continue;
                }
                match (kind, position) {
                    (ColumnType::Text, Some(position)) => {
                        texts[*position] = Some(decoder.take_text()?);
                    }
                    (ColumnType::Text, None) => decoder.skip_text()?,
                    (ColumnType::Int | ColumnType::BigInt | ColumnType::Timestamp, _) => {
                        decoder.take_integer()?;
                    }
                    (ColumnType::Bool, _) => {
                        decoder.take_flag()?;
                    }
                    (ColumnType::TextList | ColumnType::Date | ColumnType::Double, _) => {
                        return Err(RowError::unsupported("a list, a day or a fraction"));
                    }
                }
            }
            take(texts)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use schemas::Provider;
    use schemas::session::{SessionRow, SourceRow, SourceStatus};
    use schemas::table::{SESSIONS, SOURCES};

    use super::super::row_encoder::append_row;
    use super::*;

    /// The columns of each table are in the order in which its rows are encoded.
    #[test]
    fn columns_have_the_values_of_whole_rows() {
        let session = SessionRow {
            session_id: "s1".to_owned(),
            provider: Provider::Codex,
            source_path: "/logs/ä.jsonl".to_owned(),
            title: Some("a title".to_owned()),
            cwd: None,
            ended_at: Some(-7),
            events: 12,
            source_gone: true,
            segment: 3,
            live_from: 2,
            relation: Some("subagent_of".to_owned()),
            ..SessionRow::default()
        };
        let mut bytes = Vec::new();
        for _ in 0..2 {
            append_row(&session, &mut bytes).expect("encodes");
        }
        let names = ["relation", "source_path", "title", "cwd"];
        let mut rows = Vec::new();
        let read = RowColumns::new(&SESSIONS, names).read_rows(&bytes, |texts| {
            rows.push(texts);
            Ok(())
        });
        read.expect("reads");
        let expected = [Some("subagent_of"), Some("/logs/ä.jsonl"), Some("a title"), None];
        assert_eq!(rows, [expected, expected]);
        for cut in 1..bytes.len() / 2 {
            let read = RowColumns::new(&SESSIONS, names).read_rows(&bytes[..cut], |_| Ok(()));
            assert!(read.is_err(), "{cut}");
        }

        let source = SourceRow {
            session_id: Some("s1".to_owned()),
            provider: Some(Provider::Kiro),
            redaction_rules: -5,
            decoder_version: 6,
            segment: 9,
            ..SourceRow::unread("/logs/a".to_owned(), SourceStatus::Gone, 3, 4)
        };
        let mut bytes = Vec::new();
        append_row(&source, &mut bytes).expect("encodes");
        let names = ["path", "status", "session_id", "provider"];
        let read = RowColumns::new(&SOURCES, names).read_rows(&bytes, |texts| {
            assert_eq!(texts, ["/logs/a", "gone", "s1", "kiro"].map(Some));
            Ok(())
        });
        read.expect("reads");
    }
}
