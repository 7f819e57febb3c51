//! `sessions setup`: registers the server with clients, shows what their configurations need, or
//! checks them, and installs the hooks.

use std::path::Path;

use ingest::provider::format::AgentFolders;
use schemas::client::Client;
use schemas::hook::HookClient;
use schemas::{ErrorCode, Timestamp, ToolError};

use crate::cli::exit::{CommandFailure, CommandOutcome, CommandResult};
use crate::config::environment;
use crate::output::Printer;
use crate::setup::check::{RegistrationChecks, check_registration};
use crate::setup::hooks::plan_hooks;
use crate::setup::{self, AllClientsSetup, ClientSetup, Registration};

const NO_CLIENT: &str = "No client was found. Name one: `sessions setup CLIENT --write`";

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct SetupFlags {
    /// claude, codex, gemini, opencode, vscode, cursor, copilot, claude-desktop, windsurf, zed,
    /// jetbrains (Junie), cline, goose, kiro or antigravity [default: choose among those that were found]
    client: Option<Client>,
    /// Set up every client found on this machine
    #[arg(long, conflicts_with = "client")]
    all: bool,
    /// Write it into the client's configuration; the previous file is kept
    #[arg(long)]
    write: bool,
    /// Start the server as the client would, and report whether it works
    #[arg(long, conflicts_with = "write")]
    check: bool,
    /// Install the hooks in the agent's configuration; the previous file is kept
    #[arg(long, conflicts_with_all = ["all", "check", "write"])]
    hooks: bool,
    /// Remove the hooks
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
) -> CommandResult {
    let mut arguments = Vec::new();
    if let Some(store) = store {
        // The client starts the server elsewhere, and without this environment.
        let store = std::path::absolute(store).unwrap_or_else(|_| store.to_owned());
        arguments.extend(["--store".to_owned(), store.to_string_lossy().into_owned()]);
    }
    let home = environment::home_dir();
    let variable = environment::read_variable;
    let places = AgentFolders::new(&home, &variable);
    if flags.hooks
        && let Some(client) = flags.client
    {
        return set_up_hooks(client, flags, &places, &arguments, printer);
    }
    arguments.push("mcp".to_owned());
    let program = environment::program_path();
    let plan = |client| setup::plan_registration(client, &places, &program, &arguments);
    if flags.check {
        let clients = match flags.client {
            Some(client) => vec![client],
            None => setup::find_clients(&places),
        };
        return check_clients(clients.into_iter().map(plan), printer);
    }
    match flags.client {
        Some(client) => set_up_client(plan(client), flags.write, printer),
        None => {
            let clients = setup::find_clients(&places);
            let registrations: Vec<Registration> = clients.into_iter().map(plan).collect();
            if flags.all {
                return set_up_all(registrations, flags.write, printer);
            }
            let has_found = !registrations.is_empty();
            let chosen = choose_clients(registrations, printer)?;
            if has_found && chosen.is_empty() {
                return Ok(CommandOutcome::Done);
            }
            set_up_all(chosen, true, printer)
        }
    }
}

/// Asks which of the clients that were found gets the server. Returns none if the user chooses none.
///
/// # Errors
/// Fails if the user cannot be asked.
fn choose_clients(
    registrations: Vec<Registration>,
    printer: &Printer,
) -> Result<Vec<Registration>, CommandFailure> {
    if printer.is_json || !printer.is_interactive() {
        let message =
            format!("'sessions setup' needs a client, or --all: {}", Client::NAMES.join(", "));
        let error = ToolError::new(ErrorCode::InvalidArgument, message);
        return Err(error.with_detail("field", "client").into());
    }
    if registrations.is_empty() {
        return Ok(registrations);
    }
    let mut options: Vec<String> = registrations
        .iter()
        .map(|registration| format!("{}  {}", registration.client, registration.path.display()))
        .collect();
    options.push("all of them".to_owned());
    let question = "Register the MCP server with (the previous configuration is kept):";
    let chosen = printer.choose(question, &options)?;
    let is_chosen =
        |at: usize| chosen.is_some_and(|chosen| chosen == at || chosen + 1 == options.len());
    let numbered = registrations.into_iter().enumerate();
    Ok(numbered.filter(|(at, _)| is_chosen(*at)).map(|(_, registration)| registration).collect())
}

/// Checks the registrations and reports what works.
fn check_clients(
    registrations: impl Iterator<Item = Registration>,
    printer: &Printer,
) -> CommandResult {
    let checks: Vec<_> =
        registrations.map(|registration| check_registration(&registration)).collect();
    let is_working = !checks.is_empty() && checks.iter().all(|check| check.problem.is_none());
    if checks.is_empty() {
        printer.print_note(NO_CLIENT)?;
    }
    printer.print_report(&RegistrationChecks { checks })?;
    Ok(CommandOutcome::from_found(is_working))
}

/// Registers the server with one client, or shows the entry.
fn set_up_client(registration: Registration, write: bool, printer: &Printer) -> CommandResult {
    if write {
        let written = registration.write_config(Timestamp::now())?;
        printer.print_report(&written)?;
        return Ok(CommandOutcome::Done);
    }
    if printer.is_json {
        printer.print_json(&registration)?;
    } else {
        printer.print_data(&registration.config)?;
        let mut advice =
            format!("Add this to {}, or add --write to the command", registration.path.display());
        if let Some(command) = registration.command {
            advice.push_str(&format!(", or run: {command}"));
        }
        if let Some(link) = registration.link {
            advice.push_str(&format!(", or open: {link}"));
        }
        printer.print_note(&advice)?;
    }
    Ok(CommandOutcome::Done)
}

/// Installs, shows or removes the hooks.
fn set_up_hooks(
    client: Client,
    flags: &SetupFlags,
    places: &AgentFolders<'_>,
    arguments: &[String],
    printer: &Printer,
) -> CommandResult {
    let Ok(client) = client.as_str().parse::<HookClient>() else {
        return Err(ToolError::invalid_value("client", client.as_str(), HookClient::NAMES).into());
    };
    let plan = plan_hooks(client, places, &environment::program_path(), arguments);
    if flags.dry_run {
        if printer.is_json {
            printer.print_json(&plan)?;
        } else {
            printer.print_data(&plan.config)?;
            let path = plan.path.display();
            printer.print_note(&format!(
                "Nothing was changed. Without --dry-run, this is written to {path}"
            ))?;
        }
        return Ok(CommandOutcome::Done);
    }
    let now = Timestamp::now();
    let written = if flags.remove { plan.remove(now)? } else { plan.install(now)? };
    printer.print_report(&written)?;
    if written.changed && !flags.remove {
        printer.print_note(
            "`sessions hook log` lists their answers; SESSIONS_HOOKS=off turns them off",
        )?;
    }
    Ok(CommandOutcome::Done)
}

/// Registers the server with each of several clients, or lists them. A file that cannot take the
/// entry does not keep the others from getting it.
fn set_up_all(registrations: Vec<Registration>, write: bool, printer: &Printer) -> CommandResult {
    let mut clients = Vec::new();
    for registration in registrations {
        let mut result = ClientSetup {
            client: registration.client,
            path: registration.path.clone(),
            written: None,
            error: None,
        };
        if write {
            match registration.write_config(Timestamp::now()) {
                Ok(written) => result.written = Some(written),
                Err(error) => result.error = Some(error.message),
            }
        }
        clients.push(result);
    }

    let is_found = !clients.is_empty();
    let has_errors = clients.iter().any(|result| result.error.is_some());
    printer.print_report(&AllClientsSetup { clients })?;
    if !is_found {
        printer.print_note(NO_CLIENT)?;
    } else if !write {
        printer.print_note("To register the server with these clients, add --write")?;
    }
    if has_errors {
        return Ok(CommandOutcome::Wrong);
    }
    Ok(CommandOutcome::from_found(is_found))
}
