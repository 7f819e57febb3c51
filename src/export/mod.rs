//! `sessions export`: events and trajectories for other programs, transcripts for readers.

mod atif;
mod html;
mod images;
mod markdown;
mod otel;
pub(crate) mod raw_logs;
mod render;
mod sts;
mod tables;
mod text;
pub(crate) mod transcript;

use std::cell::OnceCell;
use std::collections::HashSet;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use ingest::discover::is_log_file;
use ingest::provider::format::AgentFolders;
use ingest::redact::columns::mask_name;
use ingest::relocate::below_log_folder;
use schemas::price::PriceTable;
use schemas::{ErrorCode, ExportFormat, ExportLayout, ExportTable, ToolError};
use serde::Serialize;

use self::markdown::{MarkdownOptions, TextLimits};
use self::render::SessionRenderer;
use self::tables::TableReader;
use crate::config::environment;
use crate::files::leftovers::remove_abandoned;
use crate::files::outfile::{self, WriteOutcome, file_error};
use store::{Snapshot, UnpackError, encode_lake_objects, file_stem, write_arrow};
use tools::error::store_error;
use tools::{Call, SessionSelection, Tools};

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
    /// Writes texts, arguments and results to OTLP, which otherwise has names and counts only.
    pub has_content: bool,
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
    /// The number of sessions without an archived log, in an export of logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_log: Option<usize>,
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
    let flags = [
        ("whole", args.whole, ExportFormat::Markdown),
        ("ids", args.has_ids, ExportFormat::Markdown),
        ("include-content", args.has_content, ExportFormat::Otel),
    ];
    for (flag, is_given, format) in flags {
        if is_given && args.format != format {
            let message =
                format!("{flag}: --{flag} works with {format} only, not with {}", args.format);
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
    let is_single = args.selection.session_ids.len() == 1;
    let renderer = SessionRenderer {
        format: args.format,
        tools,
        call,
        snapshot,
        prices,
        logs: OnceCell::new(),
        own_files: find_own_files(snapshot, &sessions, args),
        has_images: args.images,
        has_content: args.has_content,
        markdown: MarkdownOptions {
            limits: if args.whole { TextLimits::NONE } else { TextLimits::USUAL },
            zone: call.zone(),
            has_ids: args.has_ids,
        },
    };
    let mut work = Exporter {
        snapshot,
        force: args.force,
        written,
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
            without_log: None,
        },
    };
    if args.table != ExportTable::Events {
        let reader = TableReader { table: args.table, tools, snapshot, call };
        work.export_table(&sessions, &reader, args.output.as_deref(), print)?;
        return Ok(work.done);
    }
    match (args.format.layout(), args.output.as_deref()) {
        (ExportLayout::Partitions, Some(dir)) => work.write_parquet_files(&sessions, dir)?,
        (ExportLayout::OneFile, Some(file)) => work.write_arrow_file(&sessions, file)?,
        (ExportLayout::Lines, Some(file)) => work.write_json_lines(&renderer, &sessions, file)?,
        (ExportLayout::Lines, None) => work.print_sessions(&renderer, &sessions, print)?,
        (ExportLayout::LogFiles, Some(dir)) => work.write_logs(tools, &sessions, dir)?,
        (ExportLayout::FilePerSession, None) if is_single => {
            work.print_sessions(&renderer, &sessions, print)?;
        }
        (ExportLayout::FilePerSession, Some(place)) => {
            work.write_session_files(&renderer, &sessions, place, is_single)?;
        }
        (_, None) => return Err(missing_output_error(args.format)),
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
    let needs = match format.layout() {
        ExportLayout::OneFile => "a file: -o events.arrow",
        ExportLayout::Partitions | ExportLayout::LogFiles => "a folder: -o FOLDER",
        ExportLayout::Lines | ExportLayout::FilePerSession => {
            "a folder, as there may be several sessions: -o FOLDER; or name one with --session-id"
        }
    };
    ToolError::new(ErrorCode::InvalidArgument, format!("output: {format} needs {needs}"))
        .with_detail("field", "output")
}

/// An export in progress.
struct Exporter<'s> {
    snapshot: &'s Snapshot,
    force: bool,
    /// The files that this export has written, which it may replace.
    written: &'s mut HashSet<PathBuf>,
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
                ExportFormat::Markdown
                | ExportFormat::Html
                | ExportFormat::Atif
                | ExportFormat::Otel
                | ExportFormat::Sts
                | ExportFormat::Logs => Err(tables::no_table(format)),
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

    /// Writes all sessions into one file of JSON lines.
    fn write_json_lines(
        &mut self,
        renderer: &SessionRenderer<'_>,
        sessions: &[usize],
        path: &Path,
    ) -> Result<(), ToolError> {
        let mut events = 0;
        let mut count = 0;
        self.write_file(path, 0, |file| {
            let mut file = BufWriter::new(file);
            for at in sessions {
                if !renderer.is_exported(*at) {
                    continue;
                }
                let rendered = renderer.render_session(*at)?;
                events += rendered.events;
                count += 1;
                file.write_all(rendered.text.as_bytes())
                    .map_err(|error| file_error(path, &error))?;
            }
            file.flush().map_err(|error| file_error(path, &error))
        })?;
        self.done.events = events;
        self.done.sessions = count;
        Ok(())
    }

    /// Writes one file per session. If one session was named and `place` is not a folder, the file
    /// is `place` itself.
    fn write_session_files(
        &mut self,
        renderer: &SessionRenderer<'_>,
        sessions: &[usize],
        place: &Path,
        is_single: bool,
    ) -> Result<(), ToolError> {
        let snapshot = self.snapshot;
        let is_file = is_single && !place.is_dir();
        if !is_file {
            outfile::require_folder(place, "an export of several sessions")?;
        }
        for at in sessions {
            if !renderer.is_exported(*at) {
                continue;
            }
            let id = snapshot.sessions()[*at].id();
            let path = if is_file {
                place.to_owned()
            } else {
                place.join(self.done.format.file_name(&file_stem(id)))
            };
            let rendered = renderer.render_session(*at)?;
            self.write_file(&path, rendered.events, |file| {
                file.write_all(rendered.text.as_bytes()).map_err(|error| file_error(&path, &error))
            })?;
            self.done.sessions += 1;
        }
        Ok(())
    }

    /// Writes the log of each session that the archive has, and the files next to it, with their secrets masked, to
    /// the place below the folder of its agent. The archive has nothing that was forgotten. A file whose name has
    /// a secret is left out, as are sessions in databases.
    fn write_logs(
        &mut self,
        tools: &Tools,
        sessions: &[usize],
        dir: &Path,
    ) -> Result<(), ToolError> {
        outfile::require_folder(dir, "an export of logs")?;
        let snapshot = self.snapshot;
        let archive = tools.store().open_archive().map_err(store_error)?;
        let redactor = tools.create_redactor()?;
        let home = environment::home_dir();
        let folders = AgentFolders::new(&home, &environment::read_variable);
        let mut without_log = 0;
        let mut places = HashSet::new();
        for at in sessions {
            let id = snapshot.sessions()[*at].id();
            let mut is_written = false;
            if let Some(archive) = &archive {
                for file in archive.files_of(id).filter(|file| is_log_file(&file.path)) {
                    let path = Path::new(&file.path);
                    let below = below_log_folder(file.provider, path, &folders);
                    // Elsewhere, and below several folders of an agent, logs may have one name.
                    let apart = || {
                        let name = path.file_name()?.to_str()?;
                        Some(format!("{}/{name}", file_stem(id)))
                    };
                    let folder = dir.join(file.provider.as_str());
                    let below = below.filter(|below| !places.contains(&folder.join(below)));
                    let is_safe = |below: &String| mask_name(Some(&redactor), below) == *below;
                    let Some(below) = below.or_else(apart).filter(is_safe) else { continue };
                    let place = folder.join(below);
                    places.insert(place.clone());
                    self.write_file(&place, 0, |out| {
                        let unpacked = archive.unpack_masked(file, &redactor, out);
                        unpacked.map(|_| ()).map_err(|error| match error {
                            UnpackError::Store(error) => store_error(error),
                            UnpackError::Write(error) => file_error(&place, &error),
                        })
                    })?;
                    is_written = true;
                }
            }
            self.done.sessions += usize::from(is_written);
            without_log += usize::from(!is_written);
        }
        self.done.without_log = Some(without_log);
        Ok(())
    }

    /// Prints the text of each session, until `print` returns false.
    fn print_sessions(
        &mut self,
        renderer: &SessionRenderer<'_>,
        sessions: &[usize],
        print: &mut dyn FnMut(&str) -> bool,
    ) -> Result<(), ToolError> {
        for at in sessions {
            if !renderer.is_exported(*at) {
                continue;
            }
            let rendered = renderer.render_session(*at)?;
            self.done.sessions += 1;
            self.done.events += rendered.events;
            self.done.bytes += rendered.text.len() as u64;
            if !print(&rendered.text) {
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

/// Returns the sessions that get a file or a line each in an export of several: those that have something
/// to read, which logs of aborted starts have not. Trajectories refer to all subagents. `None` for JSON
/// lines, which have the events of all sessions, and for a session that was named: it is exported
/// whatever it holds.
fn find_own_files(
    snapshot: &Snapshot,
    sessions: &[usize],
    args: &ExportArgs,
) -> Option<HashSet<usize>> {
    if args.format == ExportFormat::Jsonl {
        return None;
    }
    match args.selection.session_ids.len() {
        0 => {}
        1 => return None,
        _ => return Some(sessions.iter().copied().collect()),
    }
    let has_file = |at: &usize| {
        snapshot.sessions().get(*at).is_some_and(|session| {
            let is_subagent = args.format == ExportFormat::Atif && session.is_subagent;
            session.events > 0 && (session.is_conversation || is_subagent)
        })
    };
    Some(sessions.iter().copied().filter(has_file).collect())
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
