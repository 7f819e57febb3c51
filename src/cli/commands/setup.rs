//! `sessions setup`: registers the server with a client, or shows what its configuration needs.

use std::path::Path;

use ingest::provider::format::Places;
use schemas::Timestamp;
use schemas::client::Client;

use crate::cli::exit::{Failure, Outcome};
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
) -> Result<Outcome, Failure> {
    let mut arguments = Vec::new();
    if let Some(store) = store {
        // The client starts the server elsewhere, and without this environment.
        let store = std::path::absolute(store).unwrap_or_else(|_| store.to_owned());
        arguments.extend(["--store".to_owned(), store.to_string_lossy().into_owned()]);
    }
    arguments.push("mcp".to_owned());
    let (home, variable) = (environment::home(), environment::variable);
    let places = Places::new(&home, &variable);
    let registration =
        setup::registration(flags.client, &places, &environment::program(), &arguments);
    if flags.write {
        let written = registration.write(Timestamp::now())?;
        printer.value(&written)?;
        return Ok(Outcome::Done);
    }
    if printer.json {
        printer.json(&registration)?;
    } else {
        printer.data(&registration.config)?;
        let or = registration.command.map(|command| format!(", or run: {command}"));
        printer.note(&format!(
            "This belongs into {}; --write puts it there{}",
            registration.path.display(),
            or.unwrap_or_default()
        ))?;
    }
    Ok(Outcome::Done)
}
