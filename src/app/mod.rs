//! The composition root: creates the tools for a command or a server.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use schemas::ToolError;

use crate::config::{environment, settings};
use crate::store::Store;
use crate::tools::{Caller, Interface, Refresh as _, Tools};
use crate::update::refresher::Refresher;

/// Returns the known facts about the agent that started this process. Claude Code passes its
/// session and its project to the MCP servers and commands it starts; Codex passes its thread to
/// commands.
fn caller(interface: Interface) -> Caller {
    let ids = ["CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID"];
    let named = environment::variable("CLAUDE_PROJECT_DIR").map(PathBuf::from);
    let folders = environment::current_dir().into_iter().chain(named);
    // Logs may contain the path with or without resolved links.
    let folders = folders.flat_map(|dir| [dir.canonicalize().ok(), Some(dir)]).flatten();
    Caller {
        session_ids: ids.into_iter().filter_map(environment::variable).collect(),
        folders: folders.collect(),
        interface,
    }
}

/// Creates the tools over a store, with the caller and its interface.
pub fn tools(store: impl Into<Arc<Store>>, interface: Interface) -> Tools {
    Tools::new(store).with_caller(caller(interface)).with_masking(settings::redactor)
}

/// Creates the tools for a server, which keep the store up to date with the logs. `near` means that
/// the calling agent started the server, so that the server's folder is the agent's.
pub fn serving_tools(store: Arc<Store>, near: bool) -> Result<Tools, ToolError> {
    let refresh = Arc::new(Refresher::new(Arc::clone(&store)));
    // Starts the refresh early, so that it is done before the first call.
    refresh.refresh(Duration::ZERO);
    let tools = if near {
        tools(store, Interface::Tools)
    } else {
        Tools::new(store).with_masking(settings::redactor)
    };
    Ok(tools
        .with_prices(settings::prices()?)
        .with_refresh(refresh)
        .with_program(environment::running()))
}
