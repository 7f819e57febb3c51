//! `query_sql`: one SELECT over the views of [`crate::view`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::schema;
use super::spec::{Category, Risk, ToolExample, ToolSpec};
use crate::closed_enum::closed_enum;
use crate::error::ErrorCode;

/// The registry row of `query_sql`.
pub const SPEC: ToolSpec = ToolSpec {
    name: "query_sql",
    title: "Query with SQL",
    description: "Runs one read-only SELECT (DuckDB dialect) over the views sessions, events, tool_calls, turns, usage, files, lineage, problems, labels. \
Use it for what the other tools cannot count or join; DESCRIBE tool_calls shows a view's columns. \
tool_calls has each call with its result, usage one row per API request with cost_usd, files who touched what; all leave copied history out, events has it (is_replay). \
Times are UTC. At most 30 s, 512 MB, 1,000 rows; long texts are cut, so select left(text, 300).",
    risk: Risk::Read,
    category: Category::Statistics,
    action_template: "Run {sql}",
    command: "query",
    position: Some("sql"),
    answers: "the rows of one read-only SELECT over documented views",
    use_when: &["any question about the history that needs joining or counting in its own way"],
    examples: &[ToolExample {
        description: "Sessions by provider",
        arguments: r#"{"sql": "SELECT provider, count(*) AS sessions FROM sessions GROUP BY 1 ORDER BY 1"}"#,
        command: "sessions query 'SELECT provider, count(*) AS sessions FROM sessions GROUP BY 1 ORDER BY 1'",
    }],
    errors: &[ErrorCode::SqlError, ErrorCode::SqlNotAllowed],
    input: schema::input_schema::<QueryArgs>,
    output: schema::output_schema::<QueryData>,
};

/// Arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueryArgs {
    /// One SELECT, for example: SELECT tool_name, count(*) FROM tool_calls WHERE is_error GROUP BY 1
    pub sql: String,
    /// Max rows to return
    #[schemars(range(min = 1, max = 1000), extend("default" = 100))]
    pub max_rows: Option<u32>,
}

/// Answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueryData {
    /// The columns of the answer.
    pub columns: Vec<QueryColumn>,
    /// Values in the order of the columns. Whole numbers beyond 64 bits are strings.
    pub rows: Vec<Vec<Value>>,
}

/// A column of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueryColumn {
    /// Name of the column.
    pub name: String,
    /// DuckDB's name of the type.
    #[serde(rename = "type")]
    pub sql_type: String,
}

closed_enum! {
    /// A format in which the command line writes rows.
    QueryFormat {
        /// Aligned columns for people; long cells are cut.
        Table = "table",
        /// One array of objects.
        Json = "json",
        /// One object per line.
        Ndjson = "ndjson",
        /// Comma-separated values with a header.
        Csv = "csv",
        /// A Markdown table.
        Markdown = "markdown",
        /// A Parquet file.
        Parquet = "parquet",
        /// An Arrow IPC file.
        Arrow = "arrow",
    }
}

impl QueryFormat {
    /// Returns whether only programs can read the format.
    pub const fn is_binary(self) -> bool {
        matches!(self, Self::Parquet | Self::Arrow)
    }

    /// Returns the format of files with this extension. `None` if no format has it.
    pub fn from_extension(extension: &str) -> Option<Self> {
        match extension {
            "txt" => Some(Self::Table),
            "json" => Some(Self::Json),
            "ndjson" | "jsonl" => Some(Self::Ndjson),
            "csv" => Some(Self::Csv),
            "md" => Some(Self::Markdown),
            "parquet" => Some(Self::Parquet),
            "arrow" => Some(Self::Arrow),
            _ => None,
        }
    }
}
