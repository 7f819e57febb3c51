//! Describes the columns of a table as plain data. Column types are those that Parquet, DuckDB and
//! Spark share.

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// A text in UTF-8.
    Text,
    /// A whole number of 32 bits.
    Int,
    /// A whole number of 64 bits.
    BigInt,
    /// True or false.
    Bool,
    /// A list of texts.
    TextList,
    /// Microseconds since the epoch, UTC.
    Timestamp,
    /// A day in UTC; only in views.
    Date,
    /// A floating-point number; only in views.
    Double,
}

impl ColumnType {
    /// Returns the type's name in SQL.
    pub const fn sql_type(self) -> &'static str {
        match self {
            Self::Text => "VARCHAR",
            Self::Int => "INTEGER",
            Self::BigInt => "BIGINT",
            Self::Bool => "BOOLEAN",
            Self::TextList => "VARCHAR[]",
            Self::Timestamp => "TIMESTAMP",
            Self::Date => "DATE",
            Self::Double => "DOUBLE",
        }
    }
}

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Name of the column in the Parquet file and in SQL.
    pub name: &'static str,
    /// Type of its values.
    pub kind: ColumnType,
    /// True if the column may be null, which means that the log does not give the value. Unknown is
    /// not zero.
    pub is_nullable: bool,
    /// What the column holds, as a sentence for readers.
    pub doc: &'static str,
    /// True for bookkeeping of the store, which is left out of the SQL views.
    pub is_internal: bool,
    /// How secrets are kept out of the column.
    pub masking: Masking,
}

/// How secrets are kept out of a column. Text is masked unless its column gives a reason not to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Masking {
    /// The column holds no text.
    NotText,
    /// The column holds text, and each of its values is masked.
    Masked,
    /// The column holds JSON whose keys and strings are masked.
    MaskedJson,
    /// The column holds text that is never masked, for this reason.
    Exempt(&'static str),
}

impl Masking {
    /// Returns the default masking of a column of this type.
    const fn of(kind: ColumnType) -> Self {
        match kind {
            ColumnType::Text | ColumnType::TextList => Self::Masked,
            ColumnType::Int
            | ColumnType::BigInt
            | ColumnType::Bool
            | ColumnType::Timestamp
            | ColumnType::Date
            | ColumnType::Double => Self::NotText,
        }
    }
}

impl Column {
    /// Returns the same column, never masked for this reason.
    pub(crate) const fn exempt_from_masking(self, reason: &'static str) -> Self {
        Self { masking: Masking::Exempt(reason), ..self }
    }

    /// Returns the same column, holding JSON written by this program that contains foreign names.
    pub(crate) const fn with_masked_json(self) -> Self {
        Self { masking: Masking::MaskedJson, ..self }
    }
}

/// The reason why columns with a fixed set of words are not masked.
pub(crate) const OWN_WORDS: &str = "its values are words of this program";

/// A table: a Parquet file of that name in every segment that has rows for it.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// Name of the table and of its file.
    pub name: &'static str,
    /// What a row is, as a sentence for readers.
    pub doc: &'static str,
    /// The columns, in the order of the file.
    pub columns: &'static [Column],
}

/// Returns a column that is never null.
pub(crate) const fn required(name: &'static str, kind: ColumnType, doc: &'static str) -> Column {
    Column { name, kind, is_nullable: false, doc, is_internal: false, masking: Masking::of(kind) }
}

/// Returns a column that is null if the log does not give the value.
pub(crate) const fn optional(name: &'static str, kind: ColumnType, doc: &'static str) -> Column {
    Column { is_nullable: true, ..required(name, kind, doc) }
}

/// Returns a column that holds bookkeeping of the store, and is never null.
pub(crate) const fn internal(name: &'static str, kind: ColumnType, doc: &'static str) -> Column {
    Column { is_internal: true, ..required(name, kind, doc) }
}
