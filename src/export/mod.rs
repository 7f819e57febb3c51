//! `sessions export`: events for other programs, transcripts for readers.

mod html;
mod images;
mod markdown;
mod tables;
mod text;
pub(crate) mod transcript;

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use schemas::price::PriceTable;
use schemas::tool::details::DetailArgs;
use schemas::tool::event::Event;
use schemas::{ErrorCode, ExportFormat, ExportTable, ToolError};
use serde::Serialize;

use self::images::TranscriptImages;
use self::markdown::{MarkdownOptions, TextLimits};
use self::tables::TableReader;
use crate::files::leftovers::remove_abandoned;
use crate::files::outfile::{self, WriteOutcome, file_error};
use store::{Snapshot, encode_lake_objects, file_stem, write_arrow};
use tools::error::store_error;
use tools::{Call, SessionSelection, Tools, Transcript};

/// The sessions to export, and the format and place to write them.
#[derive(Debug)]
pub struct ExportArgs {
    pub format: ExportFormat,
    pub table: ExportTable,
    pub selection: SessionSelection,
    /// A folder or a file, depending on the format; `None` writes to the caller's `print`.
    pub output: Option<PathBuf>,
    /// Replaces files with other content.
    pub force: bool,
    /// Puts the images of the logs into HTML transcripts.
    pub images: bool,
    /// Shows long texts of Markdown transcripts to their end.
    pub whole: bool,
    /// Shows the ids of events in Markdown transcripts.
    pub has_ids: bool,
}

/// A summary of what was written.
#[derive(Debug, Serialize)]
pub struct Exported {
    pub format: ExportFormat,
    pub table: ExportTable,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    pub sessions: usize,
    pub events: u64,
    /// The number of rows, unless the table is `events`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// The number of files written; files that already existed with the same bytes are counted in
    /// `files_unchanged`.
    pub files: usize,
    pub files_unchanged: usize,
    pub bytes: u64,
}

/// Exports the selected sessions. Text without an output path goes to `print`, which returns true
/// to continue.
pub fn export_sessions(
    tools: &Tools,
    args: &ExportArgs,
    prices: &PriceTable,
    call: &Call<'_>,
    print: &mut dyn FnMut(&str) -> bool,
) -> Result<Exported, ToolError> {
    if args.images && args.format != ExportFormat::Html {
        return Err(no_images_error(args.format));
    }
    for (flag, is_given) in [("whole", args.whole), ("ids", args.has_ids)] {
        if is_given && args.format != ExportFormat::Markdown {
            let message =
                format!("{flag}: --{flag} works with markdown only, not with {}", args.format);
            let error = ToolError::new(ErrorCode::InvalidArgument, message);
            return Err(error.with_detail("field", flag));
        }
    }
    let mut written = HashSet::new();
    let mut printed: Option<ToolError> = None;
    tools.read_store(call, &mut || {
        // Text that was printed is not printed again.
        if let Some(error) = printed.take() {
            return Err(error);
        }
        let mut has_printed = false;
        let result = export_snapshot(tools, args, prices, call, &mut written, &mut |text| {
            has_printed = true;
            print(text)
        });
        if has_printed {
            printed = result.as_ref().err().cloned();
        }
        result
    })
}

/// Exports the selected sessions as the snapshot of the call has them. `written` has the files that an
/// earlier attempt has written.
fn export_snapshot(
    tools: &Tools,
    args: &ExportArgs,
    prices: &PriceTable,
    call: &Call<'_>,
    written: &mut HashSet<PathBuf>,
    print: &mut dyn FnMut(&str) -> bool,
) -> Result<Exported, ToolError> {
    let snapshot = tools.snapshot(call)?;
    let sessions = args.selection.select_sessions(snapshot, call)?;
    let mut work = Exporter {
        tools,
        call,
        snapshot,
        prices,
        force: args.force,
        written,
        has_images: args.images,
        markdown: MarkdownOptions {
            limits: if args.whole { TextLimits::NONE } else { TextLimits::USUAL },
            zone: call.zone(),
            has_ids: args.has_ids,
        },
        done: Exported {
            format: args.format,
            table: args.table,
            output: args.output.as_ref().map(|path| path.display().to_string()),
            sessions: 0,
            events: 0,
            rows: None,
            files: 0,
            files_unchanged: 0,
            bytes: 0,
        },
    };
    if args.table != ExportTable::Events {
        let reader = TableReader { table: args.table, tools, snapshot, call };
        work.export_table(&sessions, &reader, args.output.as_deref(), print)?;
        return Ok(work.done);
    }
    let is_single = args.selection.session_ids.len() == 1;
    match (args.format, args.output.as_deref()) {
        (ExportFormat::Parquet, Some(dir)) => work.write_parquet_files(&sessions, dir)?,
        (ExportFormat::Arrow, Some(file)) => work.write_arrow_file(&sessions, file)?,
        (ExportFormat::Jsonl, Some(file)) => work.write_json_lines(&sessions, file)?,
        (ExportFormat::Jsonl, None) => work.print_sessions(&sessions, print)?,
        (ExportFormat::Markdown | ExportFormat::Html, None) if is_single => {
            work.print_sessions(&sessions, print)?;
        }
        (ExportFormat::Markdown | ExportFormat::Html, Some(place)) => {
            work.write_transcripts(&sessions, place, is_single)?;
        }
        (format, None) => return Err(missing_output_error(format)),
    }
    Ok(work.done)
}

/// Returns the error for a format without images.
fn no_images_error(format: ExportFormat) -> ToolError {
    let message = format!("images: {format} has no images; --images needs --format html");
    ToolError::new(ErrorCode::InvalidArgument, message).with_detail("field", "images")
}

/// Returns the error for a format that needs an output.
fn missing_output_error(format: ExportFormat) -> ToolError {
    let needs = match format {
        ExportFormat::Arrow => "a file: -o events.arrow",
        ExportFormat::Parquet => "a folder: -o FOLDER",
        ExportFormat::Jsonl | ExportFormat::Markdown | ExportFormat::Html => {
            "a folder, as there may be several sessions: -o FOLDER; or name one with --session-id"
        }
    };
    ToolError::new(ErrorCode::InvalidArgument, format!("output: {format} needs {needs}"))
        .with_detail("field", "output")
}

/// An export in progress.
struct Exporter<'s> {
    tools: &'s Tools,
    call: &'s Call<'s>,
    snapshot: &'s Snapshot,
    prices: &'s PriceTable,
    force: bool,
    /// The files that this export has written, which it may replace.
    written: &'s mut HashSet<PathBuf>,
    has_images: bool,
    markdown: MarkdownOptions<'s>,
    done: Exported,
}

impl Exporter<'_> {
    /// Writes a table of the sessions into one file. JSON lines without a file are printed.
    fn export_table(
        &mut self,
        sessions: &[usize],
        reader: &TableReader<'_>,
        output: Option<&Path>,
        print: &mut dyn FnMut(&str) -> bool,
    ) -> Result<(), ToolError> {
        let format = self.done.format;
        let Some(path) = output else {
            return match format {
                ExportFormat::Jsonl => reader.read_lines(sessions, &mut |text| Ok(print(text))),
                ExportFormat::Parquet | ExportFormat::Arrow => {
                    let extension = format.extension();
                    let message =
                        format!("output: {format} needs a file: -o {}.{extension}", reader.table);
                    let error = ToolError::new(ErrorCode::InvalidArgument, message);
                    Err(error.with_detail("field", "output"))
                }
                ExportFormat::Markdown | ExportFormat::Html => Err(tables::no_table(format)),
            };
        };
        let mut rows = 0;
        self.write_file(path, 0, |file| {
            rows = reader.write_file(sessions, format, file, path)?;
            Ok(())
        })?;
        self.done.rows = Some(rows);
        self.done.sessions = sessions.len();
        Ok(())
    }

    /// Writes one object for each session and day (docs/answers.md#report-and-export).
    fn write_parquet_files(&mut self, sessions: &[usize], dir: &Path) -> Result<(), ToolError> {
        let snapshot = self.snapshot;
        outfile::require_folder(dir, "an export to Parquet")?;
        // A killed run may have left files in partitions that this run does not write to.
        remove_abandoned_below(dir, PARTITION_LEVELS);
        for at in sessions {
            for object in encode_lake_objects(snapshot, *at).map_err(store_error)? {
                let path = dir.join(&object.key);
                self.write_file(&path, object.rows as u64, |file| {
                    file.write_all(&object.bytes).map_err(|error| file_error(&path, &error))
                })?;
            }
            self.done.sessions += 1;
        }
        Ok(())
    }

    /// Writes all events into one Arrow file.
    fn write_arrow_file(&mut self, sessions: &[usize], path: &Path) -> Result<(), ToolError> {
        let snapshot = self.snapshot;
        let mut events = 0;
        self.write_file(path, 0, |file| {
            events = write_arrow(snapshot, sessions, file, path).map_err(store_error)?;
            Ok(())
        })?;
        self.done.events = events;
        self.done.sessions = sessions.len();
        Ok(())
    }

    /// Writes all events into one file, as JSON lines.
    fn write_json_lines(&mut self, sessions: &[usize], path: &Path) -> Result<(), ToolError> {
        let snapshot = self.snapshot;
        let prices = self.prices;
        let mut events = 0;
        self.write_file(path, 0, |file| {
            let mut file = BufWriter::new(file);
            for at in sessions {
                let whole = Transcript::read(snapshot, *at, prices, &|| false)?;
                events += whole.events.len() as u64;
                file.write_all(format_json_lines(&whole)?.as_bytes())
                    .map_err(|error| file_error(path, &error))?;
            }
            file.flush().map_err(|error| file_error(path, &error))
        })?;
        self.done.events = events;
        self.done.sessions = sessions.len();
        Ok(())
    }

    /// Writes one file per session. If one session was named and `place` is not a folder, the file
    /// is `place` itself.
    fn write_transcripts(
        &mut self,
        sessions: &[usize],
        place: &Path,
        is_single: bool,
    ) -> Result<(), ToolError> {
        let snapshot = self.snapshot;
        let is_file = is_single && !place.is_dir();
        if !is_file {
            outfile::require_folder(place, "an export of several transcripts")?;
        }
        for at in sessions {
            let Some(row) = snapshot.sessions().get(*at) else { continue };
            // Logs of aborted starts contain nothing to read.
            if !is_single && !row.is_conversation {
                continue;
            }
            let name = format!("{}.{}", file_stem(&row.session_id), self.done.format.extension());
            let path = if is_file { place.to_owned() } else { place.join(name) };
            let whole = Transcript::read(snapshot, *at, self.prices, &|| false)?;
            let text = self.render_session(&whole)?;
            self.write_file(&path, whole.events.len() as u64, |file| {
                file.write_all(text.as_bytes()).map_err(|error| file_error(&path, &error))
            })?;
            self.done.sessions += 1;
        }
        Ok(())
    }

    /// Renders a session in the format of the export, which is one for texts.
    fn render_session(&self, whole: &Transcript) -> Result<String, ToolError> {
        match self.done.format {
            ExportFormat::Jsonl => format_json_lines(whole),
            ExportFormat::Markdown => Ok(markdown::render_transcript(whole, self.markdown)),
            ExportFormat::Html => {
                let session_id = whole.session.session_id.clone();
                let args = DetailArgs { session_id, ..DetailArgs::default() };
                let details = self.tools.get_session_details(&args, self.call)?.data.into_value();
                let images = TranscriptImages::new(self.tools, self.call, self.has_images);
                html::render_transcript(whole, &details, &|event| images.read(event))
            }
            ExportFormat::Parquet | ExportFormat::Arrow => {
                Err(missing_output_error(self.done.format))
            }
        }
    }

    /// Prints the text of each session, until `print` returns false.
    fn print_sessions(
        &mut self,
        sessions: &[usize],
        print: &mut dyn FnMut(&str) -> bool,
    ) -> Result<(), ToolError> {
        for at in sessions {
            let whole = Transcript::read(self.snapshot, *at, self.prices, &|| false)?;
            let text = self.render_session(&whole)?;
            self.done.sessions += 1;
            self.done.events += whole.events.len() as u64;
            self.done.bytes += text.len() as u64;
            if !print(&text) {
                break;
            }
        }
        Ok(())
    }

    /// Writes a file with this number of events to its path.
    fn write_file(
        &mut self,
        path: &Path,
        events: u64,
        fill: impl FnOnce(&mut std::fs::File) -> Result<(), ToolError>,
    ) -> Result<(), ToolError> {
        let advice = "Replace it with --force, or name another place with -o";
        let force = self.force || self.written.contains(path);
        match outfile::write_output(path, || force, advice, fill)? {
            WriteOutcome::Written(bytes) => {
                self.done.files += 1;
                self.done.bytes += bytes;
                self.written.insert(path.to_owned());
            }
            WriteOutcome::Unchanged => self.done.files_unchanged += 1,
        }
        self.done.events += events;
        Ok(())
    }
}

/// Number of folder levels below the root of a lake: `p_provider=X/p_date=YYYY-MM-DD`.
const PARTITION_LEVELS: usize = 2;

/// Removes abandoned temporary files in `dir` and in the partitions below it, down to `levels`
/// levels. Links are not followed.
fn remove_abandoned_below(dir: &Path, levels: usize) {
    remove_abandoned(dir);
    if levels == 0 {
        return;
    }
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let is_partition = entry.file_name().as_encoded_bytes().starts_with(b"p_");
        if is_partition && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_abandoned_below(&entry.path(), levels - 1);
        }
    }
}

/// Formats the events of a session as `get_event_details` returns them, one per line.
fn format_json_lines(whole: &Transcript) -> Result<String, ToolError> {
    let mut out = String::new();
    for event in &whole.events {
        // What readers see of an event is not in it, unless it is asked for.
        let event = Event { line: None, diff: None, ..event.clone() };
        let line = serde_json::to_string(&event).map_err(|error| {
            let message = format!("{} cannot be written as JSON: {error}", event.event_id);
            ToolError::new(ErrorCode::InternalError, message)
        })?;
        let _ = writeln!(out, "{line}");
    }
    Ok(out)
}
