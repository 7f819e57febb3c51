//! `sessions setup`: registers the server with a client, or shows what its configuration needs, and
//! installs the hooks.

use std::path::Path;

use ingest::provider::format::AgentFolders;
use schemas::client::Client;
use schemas::hook::HookClient;
use schemas::{Timestamp, ToolError};

use crate::cli::exit::{CommandFailure, CommandOutcome};
use crate::config::environment;
use crate::output::Printer;
use crate::setup;
use crate::setup::hooks::plan_hooks;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct SetupFlags {
    /// claude, codex, gemini, copilot, opencode, vscode or cursor
    client: Client,
    /// Write it into the client's configuration; the file as it was is kept
    #[arg(long)]
    write: bool,
    /// Install the hooks in the agent's configuration; the file as it was is kept
    #[arg(long)]
    hooks: bool,
    /// Remove the hooks again
    #[arg(long, requires = "hooks")]
    remove: bool,
    /// Show the hooks, and change nothing
    #[arg(long, requires = "hooks", conflicts_with = "remove")]
    dry_run: bool,
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
    let home = environment::home_dir();
    let variable = environment::read_variable;
    let places = AgentFolders::new(&home, &variable);
    if flags.hooks {
        return set_up_hooks(flags, &places, &arguments, printer);
    }
    arguments.push("mcp".to_owned());
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

/// Installs, shows or removes the hooks.
fn set_up_hooks(
    flags: &SetupFlags,
    places: &AgentFolders<'_>,
    arguments: &[String],
    printer: &Printer,
) -> Result<CommandOutcome, CommandFailure> {
    let Some(client) = HookClient::of_client(flags.client) else {
        return Err(
            ToolError::invalid_value("client", flags.client.as_str(), HookClient::NAMES).into()
        );
    };
    let plan = plan_hooks(client, places, &environment::program_path(), arguments);
    if flags.dry_run {
        if printer.is_json {
            printer.print_json(&plan)?;
        } else {
            printer.print_data(&plan.config)?;
            let path = plan.path.display();
            printer.print_note(&format!(
                "Nothing was changed; without --dry-run it goes into {path}"
            ))?;
        }
        return Ok(CommandOutcome::Done);
    }
    let now = Timestamp::now();
    let written = if flags.remove { plan.remove(now)? } else { plan.install(now)? };
    printer.print_value(&written)?;
    if written.changed && !flags.remove {
        printer.print_note(
            "`sessions hook log` shows what hooks say; SESSIONS_HOOKS=off switches them off",
        )?;
    }
    Ok(CommandOutcome::Done)
}
