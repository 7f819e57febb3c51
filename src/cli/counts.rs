//! `query`, `stats` and `usage`.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use schemas::tool::OneOrMany;
use schemas::tool::query::{QueryArgs, QueryFormat};
use schemas::tool::stats::{GroupKey, StatsArgs, StatsSort};
use schemas::{ErrorCode, Provider, ToolError, limits};

use super::files::file_named;
use super::{Failure, Outcome};
use crate::outfile::{self, file_error};
use crate::output::{Printer, usage_table};
use crate::sql::{self, Cut, Query, Summary};
use crate::tools::{Call, Tools, WriteError};

#[derive(Debug, clap::Args)]
pub(super) struct QueryFlags {
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

#[derive(Debug, clap::Args)]
pub(super) struct StatsFlags {
    /// provider, project, model, tool, tool_kind, event_type, error, day, week, month, hour,
    /// session, branch or file; one, or two with a comma between them
    #[arg(long = "by", value_name = "KEY", required = true, value_delimiter = ',')]
    group_by: Vec<GroupKey>,
    #[command(flatten)]
    filter: Filter,
    /// key, events, errors, error_rate, tokens, cost, duration or size
    #[arg(long)]
    sort: Option<StatsSort>,
    /// Most groups [default: 50, at most 500]
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
}

#[derive(Debug, clap::Args)]
pub(super) struct UsageFlags {
    /// How long the periods are
    #[arg(value_enum, default_value_t = Period::Daily)]
    period: Period,
    #[command(flatten)]
    filter: Filter,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Period {
    Daily,
    Weekly,
    Monthly,
}

#[derive(Debug, clap::Args)]
struct Filter {
    /// Only this agent's logs
    #[arg(long)]
    provider: Option<Provider>,
    /// Only sessions whose working directory contains this text
    #[arg(long)]
    project: Option<String>,
    /// Only this session; any unique prefix
    #[arg(long, value_name = "ID")]
    session_id: Option<String>,
    /// Only events since: '24h', '7d', a date or RFC 3339 time (UTC)
    #[arg(long)]
    since: Option<String>,
    /// Only events before, in the same forms
    #[arg(long)]
    until: Option<String>,
}

impl Filter {
    fn args(
        self,
        group_by: Vec<GroupKey>,
        sort: Option<StatsSort>,
        limit: Option<u32>,
    ) -> StatsArgs {
        StatsArgs {
            group_by: OneOrMany::Many(group_by),
            provider: self.provider,
            project: self.project,
            session_id: self.session_id,
            since: self.since,
            until: self.until,
            sort,
            limit,
        }
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Tool(error) => Self::Tool(error),
            WriteError::Output(error) => Self::Output(error),
        }
    }
}

pub(super) fn stats(
    tools: &Tools,
    flags: StatsFlags,
    call: &Call<'_>,
    printer: &Printer,
) -> Result<Outcome, Failure> {
    let args = flags.filter.args(flags.group_by, flags.sort, flags.limit);
    let answer = tools.stats(&args, call)?;
    printer.answer(&answer)?;
    if !printer.json && answer.metadata.results_truncated {
        printer.note(answer.hint.as_deref().unwrap_or(""))?;
    }
    Ok(found(!answer.data.groups.is_empty()))
}

pub(super) fn usage(
    tools: &Tools,
    flags: UsageFlags,
    call: &Call<'_>,
    printer: &Printer,
) -> Result<Outcome, Failure> {
    let key = match flags.period {
        Period::Daily => GroupKey::Day,
        Period::Weekly => GroupKey::Week,
        Period::Monthly => GroupKey::Month,
    };
    if printer.json {
        let args = flags.filter.args(vec![key], None, Some(limits::STATS_LIMIT_MAX));
        let answer = tools.stats(&args, call)?;
        printer.json(&answer)?;
        return Ok(found(!answer.data.groups.is_empty()));
    }
    let answer = tools.all_stats(&flags.filter.args(vec![key], None, None), call)?;
    let used = answer.data.groups.iter().any(|group| group.tokens.is_some());
    if used {
        printer.data(&usage_table(&answer.data))?;
    } else {
        printer.note(answer.hint.as_deref().unwrap_or("The logs name no tokens."))?;
    }
    Ok(found(used))
}

pub(super) fn query(
    tools: &Tools,
    flags: QueryFlags,
    call: &Call<'_>,
    printer: &Printer,
) -> Result<Outcome, Failure> {
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
        return Ok(found(!answer.data.rows.is_empty()));
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
    Ok(found(summary.rows > 0))
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

fn found(any: bool) -> Outcome {
    if any { Outcome::Done } else { Outcome::NothingFound }
}
