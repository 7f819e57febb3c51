//! The shell of `sessions query`: queries are typed one after another.

use std::io::Write as _;
use std::sync::Arc;

use schemas::tool::query::QueryFormat;
use schemas::view::VIEWS;
use schemas::{Timestamp, limits};

use crate::app;
use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandFailure, CommandOutcome, CommandResult};
use crate::config::environment;
use crate::output::Printer;
use crate::screen::{InputLanguage, InterruptFlag, LineEditor, TypedInput};
use sql::{self, SqlLimit, SqlQuery};
use tools::{Call, Tools, WriteError};

const WELCOME: &str =
    "SQL over your sessions. A query ends with ; or an empty line. .help lists the commands";

const HELP: &str = "\
.tables          list the views
.schema [VIEW]   show the views with their columns, or one of them
.mode [FORMAT]   show or set the format of rows: table, json, ndjson, csv, markdown
.exit            leave, like Ctrl-D
Tab completes views, columns and words of SQL. Ctrl-C cancels a query.
";

const PROMPT: &str = "sessions> ";

const SHELL_COMMANDS: &[&str] = &[".exit", ".help", ".mode", ".quit", ".schema", ".tables"];

/// The words of SQL that Tab completes.
const SQL_WORDS: &[&str] = &[
    "AND",
    "AS",
    "ASC",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "COUNT",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "ELSE",
    "END",
    "EXISTS",
    "FROM",
    "GROUP",
    "HAVING",
    "ILIKE",
    "IN",
    "INTERVAL",
    "IS",
    "JOIN",
    "LEFT",
    "LIKE",
    "LIMIT",
    "NOT",
    "NULL",
    "NULLS",
    "OFFSET",
    "ON",
    "OR",
    "ORDER",
    "OVER",
    "PARTITION",
    "SELECT",
    "SUM",
    "THEN",
    "UNION",
    "USING",
    "WHEN",
    "WHERE",
    "WITH",
];

/// Reads queries and prints their rows until the user leaves.
pub(super) fn run(
    max_rows: u32,
    format: Option<QueryFormat>,
    context: &CommandContext<'_>,
) -> CommandResult {
    let tools = app::create_screen_tools(Arc::clone(&context.store))?;
    // Without a store, every query would fail with the same error.
    tools.snapshot(&context.call)?;
    let interrupt = InterruptFlag::register()?;
    let mut shell = QueryShell {
        tools,
        printer: context.printer,
        interrupt,
        max_rows,
        format: format.filter(|format| !format.is_binary()).unwrap_or(QueryFormat::Table),
    };
    let language = InputLanguage { complete: complete_word, is_whole: is_whole_input };
    let mut editor = LineEditor::new(language, environment::query_history())?;
    context.printer.print_note(WELCOME)?;
    loop {
        match editor.read_input(PROMPT)? {
            TypedInput::End => return Ok(CommandOutcome::Done),
            TypedInput::GivenUp => {}
            TypedInput::Text(text) => {
                if shell.handle(text.trim())?.is_break() {
                    return Ok(CommandOutcome::Done);
                }
            }
        }
    }
}

/// The shell between two inputs.
struct QueryShell<'a> {
    tools: Tools,
    printer: &'a Printer,
    interrupt: InterruptFlag,
    max_rows: u32,
    format: QueryFormat,
}

impl QueryShell<'_> {
    /// Runs a command of the shell or a query. Breaks if the user wants to leave.
    fn handle(&mut self, text: &str) -> Result<std::ops::ControlFlow<()>, CommandFailure> {
        use std::ops::ControlFlow::{Break, Continue};

        let mut words = text.split_whitespace();
        match (words.next(), words.next()) {
            (None, _) => {}
            (Some(".exit" | ".quit"), _) => return Ok(Break(())),
            (Some(".help"), _) => self.printer.print_data(HELP)?,
            (Some(".tables"), _) => self.printer.print_data(&list_views())?,
            (Some(".schema"), None) => self.printer.print_data(&sql::schema_text())?,
            (Some(".schema"), Some(view)) => self.print_view(view)?,
            (Some(".mode"), None) => self.printer.print_data(&format!("{}\n", self.format))?,
            (Some(".mode"), Some(format)) => self.set_format(format)?,
            (Some(command), _) if command.starts_with('.') => {
                let message = format!("unknown command '{command}'. .help lists the commands");
                self.printer.print_failure(&message)?;
            }
            (Some(_), _) => self.run_query(text.trim_end_matches(';'))?,
        }
        Ok(Continue(()))
    }

    fn print_view(&self, name: &str) -> std::io::Result<()> {
        let schema = sql::schema_text();
        let heading = format!("{name}: ");
        match schema.split("\n\n").find(|view| view.starts_with(&heading)) {
            Some(view) => self.printer.print_data(&format!("{view}\n")),
            None => {
                self.printer.print_failure(&format!("no view '{name}'. .tables lists the views"))
            }
        }
    }

    fn set_format(&mut self, name: &str) -> std::io::Result<()> {
        match name.parse::<QueryFormat>() {
            Ok(format) if !format.is_binary() => {
                self.format = format;
                Ok(())
            }
            Ok(_) | Err(_) => {
                let known = QueryFormat::ALL.iter().filter(|format| !format.is_binary());
                let names: Vec<&str> = known.map(|format| format.as_str()).collect();
                let message = format!("no format '{name}'. Use one of: {}", names.join(", "));
                self.printer.print_failure(&message)
            }
        }
    }

    /// Runs a query and prints its rows. Its errors are printed, so that the shell continues.
    fn run_query(&self, sql: &str) -> Result<(), CommandFailure> {
        self.interrupt.clear();
        self.tools.refresh_store();
        let stop = || self.interrupt.is_set();
        let call = Call::new(Timestamp::now(), &stop);
        let query = SqlQuery {
            sql,
            format: Some(self.format),
            max_rows: self.max_rows as usize,
            max_bytes: limits::SQL_OUTPUT_BYTES,
            max_time: call.remaining_query_time(),
            sessions: None,
        };
        let mut out = self.printer.row_writer();
        match self.tools.write_query(&query, &mut out, &call) {
            Ok(summary) => {
                out.flush()?;
                let rows = if summary.rows == 1 { "row" } else { "rows" };
                let more = match summary.cut {
                    Some(SqlLimit::Rows) => "; --max-rows shows more",
                    Some(SqlLimit::Bytes) => "; the rest does not fit",
                    None => "",
                };
                let seconds = call.elapsed().as_secs_f64();
                let note = format!("{} {rows} in {seconds:.2} s{more}", summary.rows);
                self.printer.print_note(&note)?;
            }
            Err(WriteError::Tool(error)) => {
                out.flush()?;
                // Ctrl-C also ends the process of the query, whose end is then not an error.
                if self.interrupt.is_set() {
                    self.printer.print_note("cancelled")?;
                } else {
                    self.printer.print_error(error)?;
                }
            }
            Err(WriteError::Output(error)) => return Err(error.into()),
        }
        Ok(())
    }
}

/// Returns the names of the views with what they hold.
fn list_views() -> String {
    VIEWS.iter().map(|view| format!("{:<14} {}\n", view.name, view.doc)).collect()
}

/// Returns true if a typed text is a whole query or command: it ends with a semicolon or with an empty
/// line.
fn is_whole_input(text: &str) -> bool {
    let typed = text.trim_end_matches([' ', '\t']);
    typed.trim().is_empty() || typed.starts_with('.') || typed.ends_with([';', '\n'])
}

/// Returns the views, columns, words of SQL and commands that begin with a word.
fn complete_word(before: &str, word: &str) -> Vec<String> {
    if before.trim().is_empty() && word.starts_with('.') {
        let known = SHELL_COMMANDS.iter().filter(|command| command.starts_with(word));
        return known.map(|command| (*command).to_owned()).collect();
    }
    let (prefix, typed) = match word.rsplit_once('.') {
        Some((table, column)) => (format!("{table}."), column),
        None => (String::new(), word),
    };
    let lower = typed.to_lowercase();
    let views = VIEWS.iter().map(|view| view.name).filter(|_| prefix.is_empty());
    let columns = VIEWS.iter().flat_map(|view| view.columns().map(|column| column.name));
    let mut names: Vec<String> =
        views.chain(columns).filter(|name| name.starts_with(&lower)).map(str::to_owned).collect();
    if prefix.is_empty() && !before.trim_start().starts_with('.') && !typed.is_empty() {
        let upper = typed.to_uppercase();
        let words = SQL_WORDS.iter().filter(|known| known.starts_with(&upper));
        names.extend(words.map(|known| (*known).to_owned()));
    }
    names.sort();
    names.dedup();
    names.into_iter().map(|name| format!("{prefix}{name}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_ends_with_a_semicolon_or_an_empty_line() {
        for (text, is_whole) in [
            ("", true),
            (".schema", true),
            ("SELECT 1", false),
            ("SELECT 1;  ", true),
            ("SELECT 1\n", true),
            ("SELECT 1\nFROM sessions", false),
        ] {
            assert_eq!(is_whole_input(text), is_whole, "{text:?}");
        }
    }

    #[test]
    fn words_are_completed_by_their_place() {
        assert_eq!(complete_word("", ".sch"), [".schema"]);
        assert_eq!(complete_word("SELECT * FROM ", "sessio"), ["session_id", "sessions"]);
        assert_eq!(complete_word("SELECT ", "s.session_i"), ["s.session_id"]);
        assert_eq!(complete_word("", "sele"), ["SELECT"]);
        assert_eq!(complete_word(".schema ", "sessions"), ["sessions"]);
    }
}
