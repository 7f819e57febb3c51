//! Prints answers, data, remarks and errors. Data goes to stdout, everything else to stderr.

use std::io::{self, BufWriter, IsTerminal, Read as _, Write};

use anstream::AutoStream;
use anstyle::Style;

use ratatui::crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use schemas::ToolError;
use schemas::envelope::{DebugMetadata, EncodedAnswer, ErrorAnswer, Severity, ToolAnswer, Warning};
use serde::Serialize;

use super::layout::Layout;
use super::pager::UserPager;
use super::painted::{DIM, FAILED, PLAIN, Painted, WARNED};
use super::show::Show;
use super::terminal::Terminal;
use super::wrapped::wrap_remark;
use base::sanitize::clean_text;

/// What begins the message of an error.
const ERROR_MARK: &str = "error:";

/// The output settings of a command.
pub struct Printer {
    pub is_json: bool,
    /// True if only data and errors are printed.
    pub is_quiet: bool,
    /// The debug metadata to add to the metadata of answers.
    pub debug: Option<DebugMetadata>,
    /// The destination of the output.
    pub terminal: Terminal,
    /// Shows output that is longer than the screen; `None` without a pager.
    pub pager: Option<UserPager>,
}

impl Printer {
    /// Prints an answer: the envelope with `--json`, otherwise as the layout says.
    pub fn print_answer<T: Show>(
        &self,
        answer: &EncodedAnswer<T>,
        layout: &Layout,
        page: Option<u32>,
    ) -> io::Result<()> {
        if self.is_json {
            return self.print_envelope(answer);
        }
        self.print_painted(&answer.data.paint(layout))?;
        self.print_remarks(answer, layout, page)
    }

    /// Prints the envelope of an answer, with debug metadata if they are wanted.
    fn print_envelope<T>(&self, answer: &EncodedAnswer<T>) -> io::Result<()> {
        let Some(debug) = &self.debug else { return self.print_json(answer) };
        let mut debug = debug.clone();
        debug.describe_answer(&answer.metadata);
        self.print_json(&ToolAnswer {
            status: answer.status,
            data: &answer.data,
            pagination: answer.pagination.clone(),
            hint: answer.hint.clone(),
            warnings: answer.warnings.clone(),
            metadata: answer.metadata.clone().with_debug(debug),
        })
    }

    /// Prints what an answer says about itself, on stderr.
    fn print_remarks<T>(
        &self,
        answer: &EncodedAnswer<T>,
        layout: &Layout,
        page: Option<u32>,
    ) -> io::Result<()> {
        self.print_warnings(&answer.warnings)?;
        let mut remarks = Vec::new();
        remarks.extend(answer.metadata.scope.clone());
        if answer.pagination.as_ref().is_some_and(|page| page.next_cursor.is_some()) {
            remarks.push(describe_next_page(answer, page));
        } else if answer.metadata.results_returned == 0 {
            remarks.extend(answer.hint.clone());
        }
        for remark in remarks {
            self.print_note(&layout.localize_times(&remark))?;
        }
        Ok(())
    }

    /// Prints warnings on stderr. Quiet output has only those of failures.
    pub fn print_warnings(&self, warnings: &[Warning]) -> io::Result<()> {
        for warning in warnings {
            let style = match warning.severity {
                Severity::Info => DIM,
                Severity::Warning => WARNED,
                Severity::Error => {
                    self.print_failure(&warning.message)?;
                    continue;
                }
            };
            self.print_remark(style, &format!("{}: {}", warning.severity, warning.message))?;
        }
        Ok(())
    }

    /// Prints what a command did, which is the same everywhere and never in the pager: as JSON with
    /// `--json`.
    pub fn print_report<T: Serialize + Show>(&self, report: &T) -> io::Result<()> {
        if self.is_json {
            return self.print_json(report);
        }
        self.print_lines(&report.paint(&Layout::plain(None)))
    }

    /// Prints a value: as JSON with `--json`, otherwise as the layout says.
    pub fn print_value<T: Serialize + Show>(&self, value: &T, layout: &Layout) -> io::Result<()> {
        if self.is_json { self.print_json(value) } else { self.print_painted(&value.paint(layout)) }
    }

    /// Prints styled text; in the pager if it is longer than the screen.
    pub fn print_painted(&self, painted: &Painted) -> io::Result<()> {
        let lines = painted.as_str().lines().count();
        let is_long = self.terminal.height.is_some_and(|height| lines >= height);
        if let Some(pager) = self.pager.as_ref().filter(|_| is_long) {
            let text = if self.terminal.has_color {
                painted.as_str().to_owned()
            } else {
                anstream::adapter::strip_str(painted.as_str()).to_string()
            };
            if pager.show(&text)? {
                return Ok(());
            }
        }
        self.print_lines(painted)
    }

    /// Prints styled text that continues what was printed before, which is never in a pager.
    pub fn print_lines(&self, painted: &Painted) -> io::Result<()> {
        let mut out = AutoStream::new(io::stdout(), self.color_of_streams()).lock();
        out.write_all(painted.as_str().as_bytes())?;
        out.flush()
    }

    /// Prints styled text in place of the last `rows` lines of the screen.
    pub fn replace_lines(&self, rows: usize, painted: &Painted) -> io::Result<()> {
        if rows > 0 {
            write!(io::stdout(), "\u{1b}[{rows}A\u{1b}[J")?;
        }
        self.print_lines(painted)
    }

    /// Returns what streams do with styles.
    fn color_of_streams(&self) -> anstream::ColorChoice {
        if self.terminal.has_color {
            anstream::ColorChoice::Always
        } else {
            anstream::ColorChoice::Never
        }
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
        self.print_failure(&error.message)
    }

    /// Prints on stderr what failed, also if the user asked for quiet output. The command may have an
    /// answer all the same.
    pub fn print_failure(&self, message: &str) -> io::Result<()> {
        let mut text = Painted::new();
        let message = self.fit_remark(&format!("{ERROR_MARK} {message}"));
        let message = message.strip_prefix(ERROR_MARK).unwrap_or(&message);
        text.push(FAILED.bold(), ERROR_MARK).push(PLAIN, message);
        self.write_remark(&text)
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

    /// Returns true if stdin is a pipe or a file, from which a command may read.
    pub fn has_piped_input(&self) -> bool {
        !io::stdin().is_terminal()
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

    /// Asks whether something is removed. Anything but `y` or `yes` means no.
    pub fn confirm_removal(&self, question: &str) -> io::Result<bool> {
        write!(io::stderr(), "{} [y/N] ", clean_text(question))?;
        let answer = read_line_or_escape()?.to_lowercase();
        Ok(["y", "yes"].contains(&answer.trim()))
    }

    /// Asks the user to choose one of several texts by its number. Returns its position, or `None` if the
    /// user chooses none.
    pub fn choose(&self, question: &str, options: &[String]) -> io::Result<Option<usize>> {
        let mut text = format!("{question}\n");
        for (at, option) in options.iter().enumerate() {
            text.push_str(&format!("  {}  {option}\n", at + 1));
        }
        write!(io::stderr(), "{}", clean_text(&text))?;
        write!(io::stderr(), "1-{}, or Esc for none: ", options.len())?;
        let chosen =
            read_line_or_escape()?.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        Ok(chosen.filter(|at| *at < options.len()))
    }

    /// Asks for a line of text. The end of the input is an empty line.
    pub fn ask(&self, question: &str) -> io::Result<String> {
        write!(io::stderr(), "{} ", clean_text(question))?;
        let mut answer = Vec::new();
        for byte in io::stdin().lock().bytes() {
            match byte? {
                // A line that was typed while a choice was read in raw mode ends with `\r`.
                b'\n' | b'\r' => break,
                byte => answer.push(byte),
            }
        }
        Ok(String::from_utf8_lossy(&answer).trim().to_owned())
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
        let style = if self.terminal.is_screen { DIM } else { PLAIN };
        self.print_remark(style, text)
    }

    fn print_remark(&self, style: Style, text: &str) -> io::Result<()> {
        if self.is_quiet || text.is_empty() {
            return Ok(());
        }
        let mut painted = Painted::new();
        painted.push(style, &self.fit_remark(text));
        self.write_remark(&painted)
    }

    /// Breaks a remark between words where a terminal would break it inside one.
    fn fit_remark(&self, text: &str) -> String {
        if io::stderr().is_terminal() {
            wrap_remark(text, self.terminal.width)
        } else {
            text.to_owned()
        }
    }

    /// Writes a line to stderr, in colours only if it is a terminal.
    fn write_remark(&self, text: &Painted) -> io::Result<()> {
        let choice = if self.terminal.has_color && io::stderr().is_terminal() {
            anstream::ColorChoice::Always
        } else {
            anstream::ColorChoice::Never
        };
        writeln!(AutoStream::new(io::stderr(), choice), "{}", text.as_str())
    }
}

/// Returns the remark on how to get the next page: by the number after `page`, or by a cursor.
fn describe_next_page<T>(answer: &EncodedAnswer<T>, page: Option<u32>) -> String {
    let cursor =
        answer.pagination.as_ref().and_then(|page| page.next_cursor.as_deref()).unwrap_or("");
    let flag = match page {
        Some(page) => format!("--page {}", page + 1),
        None => format!("--cursor {cursor}"),
    };
    let returned = answer.metadata.results_returned;
    match (answer.metadata.results_total, answer.metadata.results_total_is) {
        (Some(total), None) if total > returned => {
            format!("{returned} of {total} shown; {flag} shows more")
        }
        (Some(total), Some(_)) => {
            format!("{returned} of {total}+ shown; {flag} shows more")
        }
        _ => format!("there is more; {flag} shows it"),
    }
}
/// Reads a line of a user at a terminal. Esc, `q` and Ctrl-C end it at once, with nothing typed.
fn read_line_or_escape() -> io::Result<String> {
    enable_raw_mode()?;
    let typed = read_keys();
    disable_raw_mode()?;
    writeln!(io::stderr())?;
    typed
}

/// Reads the keys of a line in raw mode, and shows them. What was typed after the line is kept for
/// the next reader of the input.
fn read_keys() -> io::Result<String> {
    const CONTROL_C: u8 = 3;
    const CONTROL_D: u8 = 4;
    const BACKSPACE: u8 = 8;
    const ESCAPE: u8 = 27;
    const DELETE: u8 = 127;

    let mut typed = String::new();
    for byte in io::stdin().lock().bytes() {
        match byte? {
            b'\r' | b'\n' => break,
            CONTROL_C | CONTROL_D | ESCAPE => return Ok(String::new()),
            b'q' if typed.is_empty() => return Ok(typed),
            BACKSPACE | DELETE if !typed.is_empty() => {
                typed.pop();
                write!(io::stderr(), "\u{8} \u{8}")?;
            }
            byte if byte.is_ascii_graphic() => {
                typed.push(char::from(byte));
                write!(io::stderr(), "{}", char::from(byte))?;
            }
            _ => {}
        }
    }
    Ok(typed)
}
