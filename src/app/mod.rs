//! The composition root: the tools as a command or a server has them.

pub mod environment;
pub mod http_token;
pub mod ingest_logs;
pub mod settings;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use schemas::ToolError;

use crate::refresh::Refresher;
use crate::store::Store;
use crate::tools::{Caller, Interface, Refresh as _, Tools};

/// The agent that started this process, as far as it tells: Claude Code names its session and its
/// project to the MCP servers and commands it starts, Codex its thread to commands.
fn caller(interface: Interface) -> Caller {
    let ids = ["CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID"];
    let named = environment::variable("CLAUDE_PROJECT_DIR").map(PathBuf::from);
    let folders = environment::current_dir().into_iter().chain(named);
    // Logs may hold the name with its links or without.
    let folders = folders.flat_map(|dir| [dir.canonicalize().ok(), Some(dir)]).flatten();
    Caller {
        session_ids: ids.into_iter().filter_map(environment::variable).collect(),
        folders: folders.collect(),
        interface,
    }
}

/// The tools over a store, knowing who calls and how.
pub fn tools(store: impl Into<Arc<Store>>, interface: Interface) -> Tools {
    Tools::new(store).with_caller(caller(interface)).with_masking(settings::redactor)
}

/// The tools as a server has them: they keep the store up with the logs. `near` says that the
/// agent that calls started the server, so that its folder is the agent's.
pub fn serving_tools(store: Store, near: bool) -> Result<Tools, ToolError> {
    let store = Arc::new(store);
    let refresh = Arc::new(Refresher::new(Arc::clone(&store)));
    // Before anybody asks: the first call finds it done.
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
