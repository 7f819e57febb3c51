//! `sessions setup`: registers the server with a client, or shows what its configuration needs.

use std::path::Path;

use ingest::provider::format::AgentFolders;
use schemas::Timestamp;
use schemas::client::Client;

use crate::cli::exit::{CommandFailure, CommandOutcome};
use crate::config::environment;
use crate::output::Printer;
use crate::setup;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct SetupFlags {
    /// claude, codex, gemini, opencode, vscode or cursor
    client: Client,
    /// Write it into the client's configuration; the file as it was is kept
    #[arg(long)]
    write: bool,
}

/// Registers the server, which opens `store` if the user named one.
pub(in crate::cli) fn run(
    flags: &SetupFlags,
    store: Option<&Path>,
    printer: &Printer,
) -> Result<CommandOutcome, CommandFailure> {
    let mut arguments = Vec::new();
    if let Some(store) = store {
        // The client starts the server elsewhere, and without this environment.
        let store = std::path::absolute(store).unwrap_or_else(|_| store.to_owned());
        arguments.extend(["--store".to_owned(), store.to_string_lossy().into_owned()]);
    }
    arguments.push("mcp".to_owned());

    let home = environment::home_dir();
    let variable = environment::read_variable;
    let places = AgentFolders::new(&home, &variable);
    let registration =
        setup::plan_registration(flags.client, &places, &environment::program_path(), &arguments);
    if flags.write {
        let written = registration.write_config(Timestamp::now())?;
        printer.print_value(&written)?;
        return Ok(CommandOutcome::Done);
    }
    if printer.is_json {
        printer.print_json(&registration)?;
    } else {
        printer.print_data(&registration.config)?;
        let mut advice = format!(
            "Add this to {}, or run the command again with --write",
            registration.path.display()
        );
        if let Some(command) = registration.command {
            advice.push_str(&format!(", or run: {command}"));
        }
        printer.print_note(&advice)?;
    }
    Ok(CommandOutcome::Done)
}
