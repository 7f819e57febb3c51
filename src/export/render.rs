//! Renders a session in one of the formats that are texts.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::fmt::Write as _;

use schemas::price::PriceTable;
use schemas::tool::details::DetailArgs;
use schemas::tool::event::Event;
use schemas::{ErrorCode, ExportFormat, ToolError};

use super::atif::model::Trajectory;
use super::atif::{self, TrajectoryWriter};
use super::html;
use super::images::TranscriptImages;
use super::markdown::{self, MarkdownOptions};
use super::otel;
use super::raw_logs::RawLogs;
use super::sts;
use store::Snapshot;
use tools::{Call, Tools, Transcript};

/// Renders the sessions of an export.
pub(super) struct SessionRenderer<'s> {
    pub(super) format: ExportFormat,
    pub(super) tools: &'s Tools,
    pub(super) call: &'s Call<'s>,
    pub(super) snapshot: &'s Snapshot,
    pub(super) prices: &'s PriceTable,
    /// The logs, once they are needed.
    pub(super) logs: OnceCell<RawLogs>,
    /// The positions of the sessions that get a file or a line each; `None` if all do.
    pub(super) own_files: Option<HashSet<usize>>,
    pub(super) has_images: bool,
    /// Writes texts, arguments and results to OTLP.
    pub(super) has_content: bool,
    pub(super) markdown: MarkdownOptions<'s>,
}

/// A session as text.
pub(super) struct RenderedSession {
    pub(super) text: String,
    /// The number of events in it.
    pub(super) events: u64,
}

impl SessionRenderer<'_> {
    /// Returns the logs, which are listed when they are first needed.
    fn logs(&self) -> Result<&RawLogs, ToolError> {
        if let Some(logs) = self.logs.get() {
            return Ok(logs);
        }
        let read = RawLogs::read(self.snapshot, self.tools)?;
        Ok(self.logs.get_or_init(|| read))
    }

    /// Returns whether a session is in the export.
    pub(super) fn is_exported(&self, at: usize) -> bool {
        self.own_files.as_ref().is_none_or(|own| own.contains(&at))
    }

    /// Renders a session in the format of the export, which is one for texts.
    pub(super) fn render_session(&self, at: usize) -> Result<RenderedSession, ToolError> {
        match self.format {
            ExportFormat::Jsonl => self.render_events(at, format_json_lines),
            ExportFormat::Markdown => self
                .render_events(at, |whole| Ok(markdown::render_transcript(whole, self.markdown))),
            ExportFormat::Html => self.render_events(at, |whole| self.render_page(whole)),
            ExportFormat::Atif => self.render_trajectory(at, atif::format_document),
            ExportFormat::Sts => self.render_trajectory(at, sts::format_lines),
            ExportFormat::Otel => self.render_trajectory(at, |trajectory| {
                otel::format_line(trajectory, self.has_content)
            }),
            ExportFormat::Parquet | ExportFormat::Arrow | ExportFormat::Logs => {
                Err(no_text_error(self.format))
            }
        }
    }

    /// Renders a session as readers or the tools see it.
    fn render_events(
        &self,
        at: usize,
        write: impl FnOnce(&Transcript) -> Result<String, ToolError>,
    ) -> Result<RenderedSession, ToolError> {
        let whole = Transcript::read(self.snapshot, at, self.prices, &|| false)?;
        Ok(RenderedSession { text: write(&whole)?, events: whole.events.len() as u64 })
    }

    fn render_page(&self, whole: &Transcript) -> Result<String, ToolError> {
        let session_id = whole.session.session_id.clone();
        let args = DetailArgs { session_id, ..DetailArgs::default() };
        let details = self.tools.get_session_details(&args, self.call)?.data.into_value();
        let images = TranscriptImages::new(self.tools, self.call, self.has_images);
        html::render_transcript(whole, &details, &|event| images.read(event))
    }

    fn render_trajectory(
        &self,
        at: usize,
        write: impl FnOnce(&Trajectory) -> Result<String, ToolError>,
    ) -> Result<RenderedSession, ToolError> {
        let session = &self.snapshot.sessions()[at];
        if session.events == 0 {
            return Err(atif::no_events_error(session.id()));
        }
        let writer = TrajectoryWriter {
            snapshot: self.snapshot,
            call: self.call,
            prices: self.prices,
            logs: self.logs()?,
            own_files: self.own_files.as_ref(),
        };
        let (trajectory, events) = writer.build(at)?;
        Ok(RenderedSession { text: write(&trajectory)?, events })
    }
}

/// Returns the error for a format that is not text, which the caller writes in another way.
fn no_text_error(format: ExportFormat) -> ToolError {
    ToolError::new(ErrorCode::InternalError, format!("{format} is not a format of texts"))
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
