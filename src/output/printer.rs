//! Prints answers, data, remarks and errors. Data goes to stdout, everything else to stderr.

use std::io::{self, BufWriter, IsTerminal, Write};

use schemas::ToolError;
use schemas::envelope::{DebugMetadata, EncodedAnswer, ErrorAnswer, Warning};
use serde::Serialize;

use super::show::Show;
use crate::base::sanitize::clean_text;

/// The output settings of a command.
pub struct Printer {
    pub is_json: bool,
    pub is_quiet: bool,
    /// The debug metadata to add to the metadata of answers.
    pub debug: Option<DebugMetadata>,
}

impl Printer {
    /// Prints an answer: the envelope with `--json`, otherwise text.
    pub fn print_answer<T: Show>(&self, answer: &EncodedAnswer<T>) -> io::Result<()> {
        if self.is_json {
            let Some(debug) = &self.debug else { return self.print_json(answer) };
            let mut json = serde_json::to_value(answer).map_err(io::Error::other)?;
            let mut debug = debug.clone();
            debug.describe_answer(&answer.metadata);
            debug.add_to_answer(&mut json);
            return self.print_json(&json);
        }
        self.print_data(&answer.data.to_text())?;
        self.print_warnings(&answer.warnings)?;
        if !self.is_quiet {
            if let Some(scope) = &answer.metadata.scope {
                self.print_note(scope)?;
            }
            if answer.pagination.as_ref().is_some_and(|page| page.has_more) {
                self.print_note(&describe_next_page(answer))?;
            } else if answer.metadata.results_returned == 0 {
                self.print_note(answer.hint.as_deref().unwrap_or(""))?;
            }
        }
        Ok(())
    }

    /// Prints warnings on stderr, unless the user asked for quiet output.
    pub fn print_warnings(&self, warnings: &[Warning]) -> io::Result<()> {
        for warning in warnings {
            self.print_note(&format!("{}: {}", warning.severity, warning.message))?;
        }
        Ok(())
    }

    /// Prints a value: as JSON with `--json`, otherwise as text.
    pub fn print_value<T: Serialize + Show>(&self, value: &T) -> io::Result<()> {
        if self.is_json { self.print_json(value) } else { self.print_data(&value.to_text()) }
    }

    /// Prints one JSON document.
    pub fn print_json(&self, value: &impl Serialize) -> io::Result<()> {
        let json = serde_json::to_string(value).map_err(io::Error::other)?;
        self.print_data(&format!("{json}\n"))
    }

    /// Prints an error: the envelope with `--json`, otherwise one line on stderr.
    pub fn print_error(&self, error: ToolError) -> io::Result<()> {
        if self.is_json {
            return self.print_json(&ErrorAnswer::from(error));
        }
        writeln!(io::stderr(), "error: {}", clean_text(&error.message))
    }

    /// Reports on stderr that the answer could not be written. If stderr does not work either, only
    /// the exit code shows it.
    pub fn print_output_error(&self, error: &io::Error) {
        let _ = writeln!(
            io::stderr(),
            "error: the output could not be written: {}. The answer is incomplete: check where the output goes and run the command again",
            clean_text(&error.to_string())
        );
    }

    /// Prints data. Characters that a reader cannot see are removed here, regardless of their
    /// origin.
    pub fn print_data(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(ingest::text::sanitize::clean(text).as_bytes())?;
        out.flush()
    }

    /// Returns stdout, for rows that are written as they arrive.
    pub fn row_writer(&self) -> Box<dyn Write + Send> {
        Box::new(BufWriter::new(io::stdout()))
    }

    /// Returns true if stdout is a terminal.
    pub fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Returns true if a user can be asked: input, output and remarks are at a terminal.
    pub fn is_interactive(&self) -> bool {
        self.is_terminal() && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Asks a question and reads the answer, a line. Returns true for `y`, `yes` and an empty line.
    /// The end of the input means no.
    pub fn confirm(&self, question: &str) -> io::Result<bool> {
        write!(io::stderr(), "{} [Y/n] ", clean_text(question))?;
        let mut answer = String::new();
        if io::stdin().read_line(&mut answer)? == 0 {
            writeln!(io::stderr())?;
            return Ok(false);
        }
        Ok(["", "y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
    }

    /// Returns stderr, for output that another process reads.
    pub fn report_writer(&self) -> io::Stderr {
        io::stderr()
    }

    /// Prints what is wrong with the arguments; the text may contain any characters.
    pub fn print_wrong_usage(&self, text: &str) -> io::Result<()> {
        io::stderr().write_all(clean_text(text).as_bytes())
    }

    /// Prints a remark, unless the user asked for quiet output.
    pub fn print_note(&self, text: &str) -> io::Result<()> {
        if self.is_quiet || text.is_empty() {
            return Ok(());
        }
        writeln!(io::stderr(), "{}", clean_text(text))
    }
}

/// Returns the remark on how to get the next page.
fn describe_next_page<T>(answer: &EncodedAnswer<T>) -> String {
    let cursor =
        answer.pagination.as_ref().and_then(|page| page.next_cursor.as_deref()).unwrap_or("");
    let returned = answer.metadata.results_returned;
    match (answer.metadata.results_total, answer.metadata.results_total_is) {
        (Some(total), None) if total > returned => {
            format!("{returned} of {total} shown; --cursor {cursor} shows more")
        }
        (Some(total), Some(_)) => {
            format!("{returned} of at least {total} shown; --cursor {cursor} shows more")
        }
        _ => format!("there is more; --cursor {cursor} shows it"),
    }
}
