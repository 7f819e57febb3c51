//! `sessions restore`: writes the archived logs of sessions back to where their agents expect them. With
//! `--file`, prints a file of a session (`restore_file.rs`).

use std::path::PathBuf;

use ingest::provider::format::AgentFolders;
use schemas::{ErrorCode, ToolError};

use super::restore_file::{self, RestoreFileFlags};
use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::config::environment;
use crate::config::user_settings::UserSettings;
use crate::files::restore::{RestoreOptions, restore_sessions};
use tools::restore::{RestoreOutcome, RestoreSelection};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct RestoreFlags {
    /// Sessions to restore, including their subagents; any unique prefixes
    #[arg(value_name = "ID", required_unless_present_any = ["all", "file"], conflicts_with = "all")]
    session_ids: Vec<String>,
    /// Restore all sessions of this machine
    #[arg(long)]
    all: bool,
    /// Only sessions whose log is missing
    #[arg(long)]
    lost: bool,
    /// Restore into another home folder, to the same relative paths
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
    /// Show what would be restored, and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    file: RestoreFileFlags,
}

impl RestoreFlags {
    /// Returns whether a file is restored, not a log.
    pub(in crate::cli) fn is_of_file(&self) -> bool {
        self.file.file.is_some()
    }
}

pub(in crate::cli) fn run(flags: RestoreFlags, context: &CommandContext<'_>) -> CommandResult {
    if let Some(path) = &flags.file.file {
        return restore_file::run(path, &flags.file, context);
    }
    let tools = context.create_tools();
    let to = match &flags.to {
        None => None,
        Some(folder) => Some(std::path::absolute(folder).map_err(|error| {
            let message = format!("--to {}: {error}. Name a folder", folder.display());
            ToolError::new(ErrorCode::InvalidArgument, message)
        })?),
    };
    let home = environment::home_dir();
    let options = RestoreOptions {
        home: &home,
        folders: &AgentFolders::new(&home, &environment::read_variable),
        to: to.as_deref(),
        is_dry_run: flags.dry_run,
        keep: UserSettings::read()?.store.keep_logs(),
    };
    let selection =
        RestoreSelection { session_ids: flags.session_ids, all: flags.all, lost: flags.lost };
    let data = restore_sessions(&tools, &selection, &options, &context.call)?;
    context.printer.print_value(&data, &context.layout())?;
    // Of all sessions, some never had a log to archive.
    let has_failed = data.sessions.iter().any(|one| one.outcome == RestoreOutcome::Failed);
    Ok(CommandOutcome::from_found(data.not_restored == 0 || flags.all && !has_failed))
}
