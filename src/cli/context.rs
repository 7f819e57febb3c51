//! The store, the call and the printer, which every command gets besides its own flags, and the
//! debug metadata of its answer.

use std::ffi::OsString;
use std::sync::Arc;

use schemas::ToolError;
use schemas::envelope::{DebugMetadata, EncodedAnswer};

use crate::app;
use crate::config::{environment, settings};
use crate::output::{Layout, Printer, Show};
use store::Store;
use tools::{Call, History, Interface, Tools};

/// The store and the settings that a command runs with.
pub(super) struct CommandContext<'a> {
    pub(super) store: Arc<Store>,
    pub(super) interface: Interface,
    pub(super) call: Call<'a>,
    /// The engine that scans a lake, if the user names one.
    pub(super) engine: Option<Arc<dyn History>>,
    pub(super) printer: &'a Printer,
}

impl CommandContext<'_> {
    /// Creates the tools.
    pub(super) fn create_tools(&self) -> Tools {
        let tools = app::create_tools(Arc::clone(&self.store), self.interface);
        match &self.engine {
            Some(engine) => tools.with_history(Arc::clone(engine)),
            None => tools,
        }
    }

    /// Reads a page with the call of the command. An engine loads what each page needs, so there each
    /// page has a call of its own.
    pub(super) fn read_page<T>(&self, read: impl FnOnce(&Call<'_>) -> T) -> T {
        if self.engine.is_some() { read(&self.call.next()) } else { read(&self.call) }
    }

    /// Returns the layout of answers, for the user's screen or for a pipe. Ids are shortened if the call
    /// has read the store.
    pub(super) fn layout(&self) -> Layout {
        let terminal = self.printer.terminal;
        if !terminal.is_screen {
            return self.plain_layout();
        }
        Layout {
            width: terminal.width,
            zone: self.call.zone().clone(),
            now: self.call.now(),
            snapshot: self.call.taken_snapshot(),
            has_links: terminal.has_links,
            is_plain: false,
        }
    }

    /// Returns the layout of a pipe.
    fn plain_layout(&self) -> Layout {
        Layout::plain(self.call.taken_snapshot())
    }

    /// Prints the answer of a tool.
    pub(super) fn print_answer<T: Show>(&self, answer: &EncodedAnswer<T>) -> std::io::Result<()> {
        self.print_page(answer, None)
    }

    /// Prints a page of an answer. `page` is its number, if the command takes one.
    pub(super) fn print_page<T: Show>(
        &self,
        answer: &EncodedAnswer<T>,
        page: Option<u32>,
    ) -> std::io::Result<()> {
        self.printer.print_answer(answer, &self.layout(), page)
    }

    /// Prints a page of an answer as a pipe gets it, also at a terminal.
    pub(super) fn print_long<T: Show>(
        &self,
        answer: &EncodedAnswer<T>,
        page: Option<u32>,
    ) -> std::io::Result<()> {
        self.printer.print_answer(answer, &self.plain_layout(), page)
    }

    /// Creates the tools with the user's prices.
    pub(super) fn create_priced_tools(&self) -> Result<Tools, ToolError> {
        Ok(self.create_tools().with_prices(settings::read_prices()?))
    }

    /// Creates the tools with the user's prices and with queries.
    pub(super) fn create_query_tools(&self) -> Result<Tools, ToolError> {
        Ok(self.create_priced_tools()?.with_program(environment::running_program_path()))
    }
}

/// Returns the debug metadata of a command. Values that a command does not know are fixed.
pub(super) fn debug_metadata(command: String, arguments: &[OsString]) -> DebugMetadata {
    let bytes: usize = arguments.iter().skip(1).map(|argument| argument.len() + 1).sum();
    DebugMetadata::new(format!("cli-{}", std::process::id()), "cli", command, bytes)
}
