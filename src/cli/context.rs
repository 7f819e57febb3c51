//! What every command works with besides its own flags: the store, the call and the printer.

use std::sync::Arc;

use schemas::ToolError;

use crate::app;
use crate::config::{environment, settings};
use crate::output::Printer;
use crate::store::Store;
use crate::tools::{Call, Interface, Tools};

/// The store and the settings that a command runs with.
pub(super) struct Context<'a> {
    pub(super) store: Arc<Store>,
    pub(super) interface: Interface,
    pub(super) call: Call<'a>,
    pub(super) printer: &'a Printer,
}

impl Context<'_> {
    /// Creates the tools.
    pub(super) fn tools(&self) -> Tools {
        app::tools(Arc::clone(&self.store), self.interface)
    }

    /// Creates the tools with the user's prices.
    pub(super) fn priced_tools(&self) -> Result<Tools, ToolError> {
        Ok(self.tools().with_prices(settings::prices()?))
    }

    /// Creates the tools with the user's prices and with queries.
    pub(super) fn counting_tools(&self) -> Result<Tools, ToolError> {
        Ok(self.priced_tools()?.with_program(environment::running()))
    }
}

/// Leaks the tools on purpose: the process exits right after it answers, and dropping what was read
/// of a large store takes a millisecond.
pub(super) fn leak_tools(tools: Tools) -> &'static Tools {
    Box::leak(Box::new(tools))
}
