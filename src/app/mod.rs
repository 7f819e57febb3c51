//! The composition root: creates the tools for a command or a server.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ingest::discover::real_path;
use schemas::{ErrorCode, ToolError};

use crate::config::user_settings::UserSettings;
use crate::config::{environment, settings};
use crate::update::refresher::Refresher;
use store::Store;
use tools::{Caller, Freshness, History, Interface, Refresh, Tools, UnreadReason};

/// Returns the known facts about the agent that started this process. Claude Code passes its
/// session and its project to the MCP servers and commands it starts; Codex passes its thread to
/// commands.
fn current_caller(interface: Interface) -> Caller {
    let id_variables = ["CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID"];
    let session_ids = id_variables.into_iter().filter_map(environment::read_variable).collect();

    let project_dir = environment::read_variable("CLAUDE_PROJECT_DIR").map(PathBuf::from);
    let mut folders = Vec::new();
    for dir in environment::current_dir().into_iter().chain(project_dir) {
        // Logs may contain the path with or without resolved links.
        folders.extend(real_path(&dir));
        folders.push(dir);
    }

    Caller { session_ids, folders, interface }
}

/// Returns the store in `dir`, with the names of this machine and its user. Invalid settings do not
/// stop commands that need nothing else of them: the names are then those of the system.
pub fn open_store(dir: PathBuf) -> Store {
    let settings = UserSettings::read().unwrap_or_default();
    Store::new(dir).with_identity(settings.identity())
}

/// Creates the tools over a store, with the caller and its interface.
pub fn create_tools(store: impl Into<Arc<Store>>, interface: Interface) -> Tools {
    Tools::new(store).with_caller(current_caller(interface)).with_masking(settings::create_redactor)
}

/// Creates the engine at an address over a lake; `None` if neither is named.
///
/// # Errors
/// Fails if only one of them is named, if one is not valid, or if this build has no engine.
pub fn create_engine(
    address: Option<&str>,
    lake: Option<&str>,
) -> Result<Option<Arc<dyn History>>, ToolError> {
    match (address, lake) {
        (None, _) => Ok(None),
        (Some(_), None) => {
            let message = "--engine needs --lake: the folder to which machines push";
            Err(ToolError::new(ErrorCode::InvalidArgument, message).with_detail("field", "lake"))
        }
        (Some(address), Some(lake)) => open_engine(address, lake).map(Some),
    }
}

#[cfg(feature = "spark")]
fn open_engine(address: &str, lake: &str) -> Result<Arc<dyn History>, ToolError> {
    let engine = crate::spark::SparkEngine::new(address, lake, settings::create_redactor)?;
    Ok(Arc::new(engine))
}

#[cfg(not(feature = "spark"))]
fn open_engine(address: &str, _: &str) -> Result<Arc<dyn History>, ToolError> {
    let message = format!(
        "This build of sessions has no engine, so it cannot use '{address}'. Build it with \
        --features spark"
    );
    Err(ToolError::new(ErrorCode::InvalidArgument, message).with_detail("field", "engine"))
}

/// Creates the tools for a server that answers over a lake. `is_local` is true if the calling agent
/// started the server.
pub fn create_lake_tools(
    store: Arc<Store>,
    engine: Arc<dyn History>,
    is_local: bool,
) -> Result<Tools, ToolError> {
    let tools = create_masked_tools(store, is_local);
    Ok(tools.with_prices(settings::read_prices()?).with_history(engine))
}

/// Creates the tools of a server, which answer the agent that started it if `is_local` is true.
fn create_masked_tools(store: Arc<Store>, is_local: bool) -> Tools {
    if is_local {
        return create_tools(store, Interface::default());
    }
    Tools::new(store).with_masking(settings::create_redactor)
}

/// Creates what brings a store up to date, before a command answers, with the logs of this machine and
/// with those from which it was built.
pub fn create_refresh(store: Arc<Store>) -> Arc<dyn Refresh> {
    Arc::new(Refresher::for_command(store))
}

/// Creates the tools for a screen, which stays open while agents write: the store is kept up to date
/// with the logs.
pub fn create_screen_tools(store: Arc<Store>) -> Result<Tools, ToolError> {
    let refresh = Arc::new(Refresher::for_server(Arc::clone(&store)));
    keep_current(create_tools(store, Interface::Commands), refresh)
}

/// Creates the tools for a server, which keep the store up to date with the logs. `is_local` is
/// true if the calling agent started the server, so that the server's folder is the agent's.
pub fn create_server_tools(store: Arc<Store>, is_local: bool) -> Result<Tools, ToolError> {
    let refresh = Arc::new(Refresher::for_server(Arc::clone(&store)));
    // Starts the refresh early, so that it is done before the first call.
    refresh.refresh(Duration::ZERO);

    keep_current(create_masked_tools(store, is_local), refresh)
}

/// Adds the user's prices, queries, and what keeps the store up to date.
fn keep_current(tools: Tools, refresh: Arc<dyn Refresh>) -> Result<Tools, ToolError> {
    let tools = tools.with_prices(settings::read_prices()?).with_refresh(refresh);
    Ok(tools.with_program(environment::running_program_path()))
}

/// Keeps the store of a server up to date on calls of its readers.
struct ReaderRefresh(Refresher);

impl Refresh for ReaderRefresh {
    fn refresh(&self, wait: Duration) {
        self.0.refresh(wait);
    }

    /// Says nothing about logs, which may be of sessions that a reader may not read.
    fn current_freshness(&self) -> Freshness {
        match self.0.current_freshness().unread_reason {
            UnreadReason::Unmasked(_) => {
                let reason = "Ask the operator of this server".to_owned();
                Freshness { unread_reason: UnreadReason::Unmasked(reason), ..Freshness::default() }
            }
            UnreadReason::None
            | UnreadReason::Looking
            | UnreadReason::Reading
            | UnreadReason::Busy
            | UnreadReason::Trouble(_) => Freshness::default(),
        }
    }
}

/// Creates what keeps the store of a server up to date for all its readers.
pub fn create_reader_refresh(store: Arc<Store>) -> Arc<dyn Refresh> {
    Arc::new(ReaderRefresh(Refresher::for_server(store)))
}

/// Creates the tools for a reader of a server, over the part of the store that the reader may read.
/// `refresh` keeps the whole store up to date.
pub fn create_reader_tools(
    part: Arc<Store>,
    refresh: Arc<dyn Refresh>,
) -> Result<Tools, ToolError> {
    keep_current(Tools::new(part).with_masking(settings::create_redactor), refresh)
}
