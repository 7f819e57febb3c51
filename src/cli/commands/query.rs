//! `sessions query`: runs one SQL SELECT over the store.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use schemas::tool::query::{QueryArgs, QueryFormat};
use schemas::{ErrorCode, ToolError, limits};

use crate::cli::context::{Context, leak_tools};
use crate::cli::exit::{Failure, Outcome};
use crate::cli::output_path::file_named;
use crate::files::outfile::{self, file_error};
use crate::sql::{self, Cut, Query, Summary};
use crate::tools::{Call, Tools, WriteError};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct QueryFlags {
    /// One SELECT
    sql: Option<String>,
    /// Show the views, their columns and examples
    #[arg(long)]
    schema: bool,
    /// Most rows to print
    #[arg(long, value_name = "N", default_value_t = limits::SQL_ROWS_MAX)]
    max_rows: u32,
    /// table, json, ndjson, csv, markdown, parquet or arrow [default: as FILE ends, else table]
    #[arg(long, value_name = "FORMAT")]
    output: Option<QueryFormat>,
    /// Write the rows to a file
    #[arg(short = 'o', value_name = "FILE")]
    file: Option<PathBuf>,
    /// Replace a file that holds something else
    #[arg(long, requires = "file")]
    force: bool,
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Tool(error) => Self::Tool(error),
            WriteError::Output(error) => Self::Output(error),
        }
    }
}

pub(in crate::cli) fn run(flags: QueryFlags, context: &Context<'_>) -> Result<Outcome, Failure> {
    let tools = leak_tools(context.counting_tools()?);
    let (call, printer) = (&context.call, context.printer);
    if flags.schema {
        printer.data(&sql::schema_text())?;
        return Ok(Outcome::Done);
    }
    let Some(sql) = flags.sql else {
        return Err(wrong(
            "query: no SQL given. Try `sessions query 'SELECT provider, count(*) FROM sessions GROUP BY 1'`, or --schema for the views",
        ));
    };
    if printer.json {
        if flags.output.is_some() || flags.file.is_some() {
            return Err(wrong(
                "--json prints the answer of the MCP tool. Leave it out to use --output or -o",
            ));
        }
        let answer = tools.query(&QueryArgs { sql, max_rows: Some(flags.max_rows) }, call)?;
        printer.json(&answer)?;
        return Ok(Outcome::from_found(!answer.data.rows.is_empty()));
    }
    let file = file_named(flags.file);
    let ending = file.as_deref().and_then(Path::extension).and_then(|end| end.to_str());
    let format =
        flags.output.or(ending.and_then(QueryFormat::of_ending)).unwrap_or(QueryFormat::Table);
    let query = Query {
        sql: &sql,
        format: Some(format),
        max_rows: flags.max_rows as usize,
        max_bytes: limits::SQL_OUTPUT_BYTES,
        time: call.query_left(),
    };
    let summary = match &file {
        Some(path) => to_file(tools, &query, path, flags.force, call)?,
        None if format.is_binary() && printer.is_terminal() => {
            return Err(wrong(&format!("{format} is not for a terminal. Name a file with -o")));
        }
        None => {
            let mut out = printer.rows();
            let summary = tools.write_query(&query, &mut out, call)?;
            out.flush()?;
            summary
        }
    };
    if summary.cut == Some(Cut::Rows) {
        printer.note(&format!("only the first {} rows; --max-rows shows more", summary.rows))?;
    }
    Ok(Outcome::from_found(summary.rows > 0))
}

/// Writes the rows into a file.
fn to_file(
    tools: &Tools,
    query: &Query<'_>,
    path: &Path,
    force: bool,
    call: &Call<'_>,
) -> Result<Summary, Failure> {
    let mut summary = Summary::default();
    let advice =
        "It holds something else, so it stays. --force replaces it; or name another file with -o";
    outfile::put(
        path,
        || force,
        advice,
        |file| {
            summary = tools.write_query(query, file, call).map_err(|error| match error {
                WriteError::Tool(error) => error,
                WriteError::Output(error) => file_error(path, &error),
            })?;
            Ok(())
        },
    )?;
    Ok(summary)
}

fn wrong(message: &str) -> Failure {
    Failure::Tool(ToolError::new(ErrorCode::InvalidArgument, message))
}
