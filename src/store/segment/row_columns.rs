//! Reads some columns of the rows of a row file and skips the others. Nothing is allocated, so this
//! takes a fraction of the time in which whole rows are decoded.

use schemas::table::{ColumnType, Table};

use super::row_decoder::RowDecoder;
use super::row_encoder::RowError;

/// A value of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnValue<'b> {
    /// An optional column has no value in this row.
    Absent,
    /// A text, or the name of an enum's variant.
    Text(&'b str),
    Number(i64),
    Flag(bool),
}

impl<'b> ColumnValue<'b> {
    /// Returns the text; `None` if it is absent or something else.
    pub(super) fn text(self) -> Option<&'b str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Absent | Self::Number(_) | Self::Flag(_) => None,
        }
    }

    /// Returns the number; 0 if it is absent or something else.
    pub(super) fn number(self) -> i64 {
        match self {
            Self::Number(number) => number,
            Self::Absent | Self::Text(_) | Self::Flag(_) => 0,
        }
    }
}

/// The columns to read of the rows of a table.
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
    /// Selects the columns of these names.
    pub(super) fn new(table: &Table, names: [&str; N]) -> Self {
        let columns = table.columns.iter().map(|column| StoredColumn {
            kind: column.kind,
            is_optional: column.is_nullable,
            position: names.iter().position(|name| *name == column.name),
        });
        Self { columns: columns.collect() }
    }

    /// Calls `take` with the values of each row, in the order in which the columns were named. `rows`
    /// are the bytes after the head of a row file.
    pub(super) fn read_rows<'b>(
        &self,
        mut rows: &'b [u8],
        mut take: impl FnMut([ColumnValue<'b>; N]) -> Result<(), RowError>,
    ) -> Result<(), RowError> {
        while !rows.is_empty() {
            let mut decoder = RowDecoder::new(&mut rows);
            let mut values = [ColumnValue::Absent; N];
            for StoredColumn { kind, is_optional, position } in &self.columns {
                if *is_optional && !decoder.take_flag()? {
                    continue;
                }
                match position {
                    Some(position) => values[*position] = take_value(&mut decoder, *kind)?,
                    None if *kind == ColumnType::Text => decoder.skip_text()?,
                    None => {
                        take_value(&mut decoder, *kind)?;
                    }
                }
            }
            take(values)?;
        }
        Ok(())
    }
}

fn take_value<'b>(
    decoder: &mut RowDecoder<'_, 'b>,
    kind: ColumnType,
) -> Result<ColumnValue<'b>, RowError> {
    match kind {
        ColumnType::Text => decoder.take_text().map(ColumnValue::Text),
        ColumnType::Int | ColumnType::BigInt | ColumnType::Timestamp => {
            decoder.take_integer().map(ColumnValue::Number)
        }
        ColumnType::Bool => decoder.take_flag().map(ColumnValue::Flag),
        ColumnType::TextList | ColumnType::Date | ColumnType::Double => {
            Err(RowError::unsupported("a list, a day or a fraction"))
        }
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
            ..SessionRow::default()
        };
        let mut bytes = Vec::new();
        for _ in 0..2 {
            append_row(&session, &mut bytes).expect("encodes");
        }
        let names = ["live_from", "source_path", "title", "cwd", "ended_at", "source_gone"];
        let mut rows = Vec::new();
        let read = RowColumns::new(&SESSIONS, names).read_rows(&bytes, |values| {
            rows.push(values);
            Ok(())
        });
        read.expect("reads");
        let expected = [
            ColumnValue::Number(2),
            ColumnValue::Text("/logs/ä.jsonl"),
            ColumnValue::Text("a title"),
            ColumnValue::Absent,
            ColumnValue::Number(-7),
            ColumnValue::Flag(true),
        ];
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
        let names =
            ["path", "status", "session_id", "provider", "size", "modified_us", "redaction_rules"];
        let read = RowColumns::new(&SOURCES, names).read_rows(&bytes, |values| {
            let texts = [0, 1, 2, 3].map(|at| values[at].text().unwrap_or_default());
            assert_eq!(texts, ["/logs/a", "gone", "s1", "kiro"]);
            assert_eq!([4, 5, 6].map(|at: usize| values[at].number()), [3, 4, -5]);
            Ok(())
        });
        read.expect("reads");
        let read = RowColumns::new(&SOURCES, ["decoder_version", "segment"]);
        let read = read.read_rows(&bytes, |values| {
            assert_eq!(values.map(ColumnValue::number), [6, 9]);
            Ok(())
        });
        read.expect("reads");
    }
}
