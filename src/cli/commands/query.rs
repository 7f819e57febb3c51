//! `sessions query`: runs one SQL SELECT over the store.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemas::tool::query::{QueryArgs, QueryFormat};
use schemas::{ErrorCode, ToolError, limits};

use super::query_shell;
use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandFailure, CommandOutcome, CommandResult};
use crate::cli::output_path::output_file;
use crate::files::outfile::{self, file_error};
use crate::files::stdin::{read_stdin_text, read_text};
use crate::output::Printer;
use sql::{self, SqlLimit, SqlQuery, SqlSummary};
use tools::{Call, Tools, WriteError};

/// Maximum size of a SELECT that is read from a file or from stdin.
const MAX_SQL_BYTES: u64 = 1 << 20;

/// How long stdin may be silent if the user did not name it. Agents start commands with a pipe that
/// stays open and empty; a program that writes SQL has begun by then.
const MAX_STDIN_SILENCE: Duration = Duration::from_secs(3);

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct QueryFlags {
    /// One SELECT; - reads it from stdin. Without it a shell opens at a terminal, and a file or pipe
    /// on stdin is read
    sql: Option<String>,
    /// Read the SELECT from a file; - is stdin
    #[arg(long = "input", short = 'f', value_name = "FILE", conflicts_with = "sql")]
    input: Option<PathBuf>,
    /// Show the views, their columns and examples
    #[arg(long)]
    schema: bool,
    /// Maximum number of rows to print
    #[arg(long, value_name = "N", default_value_t = limits::SQL_ROWS_MAX)]
    max_rows: u32,
    /// table, json, ndjson, csv, markdown, parquet or arrow [default: by FILE's extension, else table]
    #[arg(long, value_name = "FORMAT")]
    output: Option<QueryFormat>,
    /// Write the rows to a file
    #[arg(short = 'o', value_name = "FILE")]
    file: Option<PathBuf>,
    /// Overwrite a file that has other content
    #[arg(long, requires = "file")]
    force: bool,
}

impl QueryFlags {
    /// True if only the views are shown, which needs no store.
    pub(in crate::cli) fn is_schema(&self) -> bool {
        self.schema
    }
}

impl From<WriteError> for CommandFailure {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Tool(error) => Self::Tool(error),
            WriteError::Output(error) => Self::Output(error),
        }
    }
}

pub(in crate::cli) fn run(flags: QueryFlags, context: &CommandContext<'_>) -> CommandResult {
    let tools = context.create_query_tools()?;
    let call = &context.call;
    let printer = context.printer;
    if flags.schema {
        printer.print_data(&sql::schema_text())?;
        return Ok(CommandOutcome::Done);
    }
    let is_shell = flags.sql.is_none() && flags.input.is_none() && flags.file.is_none();
    if is_shell && printer.is_interactive() && !printer.is_json {
        return query_shell::run(flags.max_rows, flags.output, context);
    }
    let Some(sql) = read_sql(flags.sql, flags.input.as_deref(), printer)? else {
        return Err(invalid_argument(
            "query: no SQL given. Try `sessions query 'SELECT provider, count(*) FROM sessions GROUP BY 1'`, or --schema for the views",
        ));
    };
    if printer.is_json {
        if flags.output.is_some() || flags.file.is_some() {
            return Err(invalid_argument(
                "--json prints the answer of the MCP tool. Leave it out to use --output or -o",
            ));
        }
        let answer = tools.query_sql(&QueryArgs { sql, max_rows: Some(flags.max_rows) }, call)?;
        printer.print_json(&answer)?;
        return Ok(CommandOutcome::from_found(!answer.data.rows.is_empty()));
    }

    let file = output_file(flags.file);
    let ending = file.as_deref().and_then(Path::extension).and_then(|end| end.to_str());
    let format =
        flags.output.or(ending.and_then(QueryFormat::from_extension)).unwrap_or(QueryFormat::Table);
    let query = SqlQuery {
        sql: &sql,
        format: Some(format),
        max_rows: flags.max_rows as usize,
        max_bytes: limits::SQL_OUTPUT_BYTES,
        max_time: call.remaining_query_time(),
        sessions: None,
    };

    let summary = match &file {
        Some(path) => write_to_file(&tools, &query, path, flags.force, call)?,
        None if format.is_binary() && printer.is_terminal() => {
            return Err(invalid_argument(&format!(
                "{format} cannot be printed on a terminal. Name a file with -o"
            )));
        }
        None => {
            let mut out = printer.row_writer();
            let summary = tools.write_query(&query, &mut out, call)?;
            out.flush()?;
            summary
        }
    };

    printer.print_warnings(&tools.store_warnings(call)?)?;
    if summary.cut == Some(SqlLimit::Rows) {
        printer
            .print_note(&format!("only the first {} rows; --max-rows shows more", summary.rows))?;
    }
    Ok(CommandOutcome::from_found(summary.rows > 0))
}

/// Returns the SELECT: the argument, the content of the file, or what another program passes on stdin;
/// `-` is stdin too. Returns `None` if stdin is empty, or a terminal that the user did not name.
///
/// # Errors
/// Fails if the file or stdin cannot be read, or if stdin was not named and stays silent.
fn read_sql(
    argument: Option<String>,
    input: Option<&Path>,
    printer: &Printer,
) -> Result<Option<String>, ToolError> {
    let is_named = input.is_some_and(|path| path == Path::new("-"))
        || argument.as_deref().is_some_and(|sql| sql.trim() == "-");
    if let Some(path) = input
        && !is_named
    {
        let file = File::open(path).map_err(|error| file_error(path, &error))?;
        let text = read_text(file, MAX_SQL_BYTES).map_err(|error| file_error(path, &error))?;
        return Ok(Some(text));
    }
    let is_stdin = is_named || argument.is_none() && printer.has_piped_input();
    if !is_stdin {
        return Ok(argument);
    }
    let wait = if is_named { None } else { Some(MAX_STDIN_SILENCE) };
    let text = read_stdin_text(MAX_SQL_BYTES, wait)
        .map_err(|error| file_error(Path::new("stdin"), &error))?;
    let Some(text) = text else {
        let seconds = MAX_STDIN_SILENCE.as_secs();
        let message = format!(
            "query: no SQL given, and nothing arrived on stdin within {seconds} seconds. Pass the SQL as the argument, or `-` to wait for stdin"
        );
        return Err(ToolError::new(ErrorCode::InvalidArgument, message));
    };
    Ok(Some(text).filter(|sql| !sql.trim().is_empty()))
}

/// Writes the rows into a file.
fn write_to_file(
    tools: &Tools,
    query: &SqlQuery<'_>,
    path: &Path,
    force: bool,
    call: &Call<'_>,
) -> Result<SqlSummary, CommandFailure> {
    let mut summary = SqlSummary::default();
    let advice = "Replace it with --force, or name another file with -o";
    outfile::write_output(
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

/// Returns the failure of arguments that do not make sense.
fn invalid_argument(message: &str) -> CommandFailure {
    CommandFailure::Tool(ToolError::new(ErrorCode::InvalidArgument, message))
}
