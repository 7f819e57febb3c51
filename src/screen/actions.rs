//! What can be done with a session on the screen.

use std::path::{Path, PathBuf};

use schemas::{ExportFormat, ExportTable, Timestamp, ToolError};

use super::facts::short_id;
use super::setup::ScreenSetup;
use crate::export::{ExportArgs, export_sessions};
use store::file_stem;
use tools::{Call, SessionSelection};

/// An action on one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionAction {
    Resume,
    CopyId,
    Export,
    ShowCost,
}

impl SessionAction {
    /// Returns the action of a key.
    pub(super) const fn of_key(key: char) -> Option<Self> {
        match key {
            'r' => Some(Self::Resume),
            'y' => Some(Self::CopyId),
            'e' => Some(Self::Export),
            'c' => Some(Self::ShowCost),
            _ => None,
        }
    }
}

/// Writes sessions as Markdown into the current folder. A file that exists is replaced only if the
/// user asks a second time.
#[derive(Debug, Default)]
pub(super) struct MarkdownExport {
    /// The file that the user was asked about.
    asked: Option<PathBuf>,
}

impl MarkdownExport {
    /// Exports a session, and returns what to say about it.
    pub(super) fn run(&mut self, setup: &ScreenSetup, session_id: &str) -> String {
        let path = setup.folder.join(format!("{}.md", file_stem(session_id)));
        let is_confirmed = self.asked.take().is_some_and(|asked| asked == path);
        if path.exists() && !is_confirmed {
            let question = format!("{} exists: press e again to replace it", path.display());
            self.asked = Some(path);
            return question;
        }
        match write_markdown(setup, &path, session_id) {
            Ok(()) => format!("exported session {} to {}", short_id(session_id), path.display()),
            Err(error) => error.message,
        }
    }
}

fn write_markdown(setup: &ScreenSetup, path: &Path, session_id: &str) -> Result<(), ToolError> {
    let call = Call::new(Timestamp::now(), &|| false).with_zone(setup.zone.clone());
    let args = ExportArgs {
        format: ExportFormat::Markdown,
        table: ExportTable::Events,
        selection: SessionSelection {
            session_ids: vec![session_id.to_owned()],
            ..SessionSelection::default()
        },
        output: Some(path.to_owned()),
        force: true,
        images: false,
        whole: false,
        has_ids: false,
        has_content: false,
    };
    export_sessions(&setup.tools, &args, &setup.prices, &call, &mut |_| true).map(|_| ())
}
