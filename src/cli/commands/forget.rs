//! `sessions forget`: removes sessions from the store for good.

use schemas::Provider;

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandFailure, CommandOutcome, CommandResult};
use crate::config::environment;
use crate::files::lake_cache::remove_cached_stores;
use crate::output::Printer;
use crate::update::forget::{exclusion_rule, forget_sessions, undo_forget};
use tools::error::unusable_path;
use tools::forget::{ForgetSelection, nothing_selected, select_forgotten};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ForgetFlags {
    /// Sessions to forget; any unique prefixes
    #[arg(value_name = "ID")]
    session_ids: Vec<String>,
    /// Only sessions whose working directory contains this text
    #[arg(long, short)]
    project: Option<String>,
    /// Only this agent's sessions
    #[arg(long, visible_alias = "agent")]
    provider: Option<Provider>,
    /// Only sessions whose last event is before: '90d', a date or RFC 3339 time
    #[arg(long, value_name = "TIME")]
    before: Option<String>,
    /// Only sessions with an event that this search finds
    #[arg(long, value_name = "QUERY")]
    query: Option<String>,
    /// Only sessions excluded by the settings file or a .sessionsignore
    #[arg(long)]
    excluded: bool,
    /// Also sessions that hold copies of the selected sessions' events, or the originals
    #[arg(long)]
    with_copies: bool,
    /// Forget them; without this, only show them
    #[arg(long)]
    yes: bool,
    /// Allow the logs of these sessions to be read again; without an ID, those of all forgotten ones
    #[arg(
        long,
        conflicts_with_all = ["project", "provider", "before", "query", "excluded", "with_copies", "yes"]
    )]
    undo: bool,
}

pub(in crate::cli) fn run(flags: ForgetFlags, context: &CommandContext<'_>) -> CommandResult {
    let printer = context.printer;
    if flags.undo {
        let ids = undo_forget(&context.store, &flags.session_ids)?;
        if printer.is_json {
            printer.print_json(&serde_json::json!({ "undone": ids }))?;
        } else if ids.is_empty() {
            printer.print_note("No session is forgotten.")?;
        } else {
            printer.print_data(&format!("{}\n", ids.join("\n")))?;
            printer.print_note(
                "The next `sessions ingest` reads the logs of these sessions again, if they still exist.",
            )?;
        }
        return Ok(CommandOutcome::from_found(!ids.is_empty()));
    }

    let selection = ForgetSelection {
        session_ids: flags.session_ids,
        provider: flags.provider,
        project: flags.project,
        before: flags.before,
        query: flags.query,
        with_copies: flags.with_copies,
    };
    if selection.is_empty() && !flags.excluded {
        return Err(nothing_selected().into());
    }
    let tools = context.create_tools();
    printer.print_warnings(&tools.store_warnings(&context.call)?)?;
    let mut data = if flags.excluded {
        select_forgotten(&tools, &selection, &exclusion_rule()?, &context.call)?
    } else {
        select_forgotten(&tools, &selection, &|_| true, &context.call)?
    };
    let is_found = !data.sessions.is_empty();
    let layout = context.layout();
    if flags.yes && is_found {
        printer.print_note("Removing them from the store ...")?;
        forget_sessions(&context.store, &mut data)?;
        clear_lake_cache(printer)?;
    }
    printer.print_value(&data, &layout)?;
    Ok(CommandOutcome::from_found(is_found))
}

/// Removes what an engine loaded of lakes, which may hold the forgotten sessions too.
pub(super) fn clear_lake_cache(printer: &Printer) -> Result<(), CommandFailure> {
    let cache = environment::cache_dir();
    let in_use = remove_cached_stores(&cache).map_err(|error| unusable_path(&cache, error))?;
    for store in in_use {
        printer.print_note(&format!(
            "{} is in use by a process with --engine and may still hold them. End that process, then run `sessions forget` again or remove the folder",
            store.display()
        ))?;
    }
    Ok(())
}
