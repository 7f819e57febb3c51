//! Prints answers, data, remarks and errors. Data goes to stdout, everything else to stderr.

use std::io::{self, BufWriter, IsTerminal, Write};

use schemas::ToolError;
use schemas::envelope::{Answer, DebugMetadata, Failure};
use serde::Serialize;

use super::show::Show;
use crate::base::sanitize::clean;

/// The output settings of a command.
pub struct Printer {
    pub json: bool,
    pub quiet: bool,
    /// The debug metadata to add to the metadata of answers.
    pub debug: Option<DebugMetadata>,
}

impl Printer {
    /// Prints an answer: the envelope with `--json`, otherwise text.
    pub fn answer<T: Serialize + Show>(&self, answer: &Answer<T>) -> io::Result<()> {
        if self.json {
            let mut json = serde_json::to_value(answer).map_err(io::Error::other)?;
            if let Some(debug) = &self.debug {
                let tokens_output = answer.metadata.tokens;
                DebugMetadata { tokens_output, ..debug.clone() }.join(&mut json);
            }
            return self.json(&json);
        }
        self.data(&answer.data.show())?;
        if !self.quiet {
            for warning in &answer.warnings {
                self.note(&format!("{}: {}", warning.severity, warning.message))?;
            }
            if answer.pagination.as_ref().is_some_and(|page| page.has_more) {
                self.note(&next_page(answer))?;
            } else if answer.metadata.results_returned == 0 {
                self.note(answer.hint.as_deref().unwrap_or(""))?;
            }
        }
        Ok(())
    }

    /// Prints a value: as JSON with `--json`, otherwise as text.
    pub fn value<T: Serialize + Show>(&self, value: &T) -> io::Result<()> {
        if self.json { self.json(value) } else { self.data(&value.show()) }
    }

    /// Prints one JSON document.
    pub fn json(&self, value: &impl Serialize) -> io::Result<()> {
        let json = serde_json::to_string(value).map_err(io::Error::other)?;
        self.data(&format!("{json}\n"))
    }

    /// Prints an error: the envelope with `--json`, otherwise one line on stderr.
    pub fn error(&self, error: ToolError) -> io::Result<()> {
        if self.json {
            return self.json(&Failure::from(error));
        }
        writeln!(io::stderr(), "error: {}", clean(&error.message))
    }

    /// Reports on stderr that the answer could not be written. If stderr does not work either, only
    /// the exit code shows it.
    pub fn unwritten(&self, error: &io::Error) {
        let _ = writeln!(
            io::stderr(),
            "error: the output could not be written: {}. The answer is incomplete: check where the output goes and run the command again",
            clean(&error.to_string())
        );
    }

    /// Prints data. Characters that a reader cannot see are removed here, regardless of their
    /// origin.
    pub fn data(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(ingest::text::sanitize::clean(text).as_bytes())?;
        out.flush()
    }

    /// Returns stdout, for rows that are written as they arrive.
    pub fn rows(&self) -> Box<dyn Write + Send> {
        Box::new(BufWriter::new(io::stdout()))
    }

    /// Returns true if stdout is a terminal.
    pub fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Returns stderr, for output that another process reads.
    pub fn report(&self) -> io::Stderr {
        io::stderr()
    }

    /// Prints what is wrong with the arguments; the text may contain any characters.
    pub fn wrong_usage(&self, text: &str) -> io::Result<()> {
        io::stderr().write_all(clean(text).as_bytes())
    }

    /// Prints a remark, unless the user asked for quiet output.
    pub fn note(&self, text: &str) -> io::Result<()> {
        if self.quiet || text.is_empty() {
            return Ok(());
        }
        writeln!(io::stderr(), "{}", clean(text))
    }
}

fn next_page<T>(answer: &Answer<T>) -> String {
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
