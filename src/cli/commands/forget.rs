//! `sessions forget`: removes sessions from the store for good.

use std::collections::HashMap;

use schemas::Provider;

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandFailure, CommandOutcome, CommandResult};
use crate::config::environment;
use crate::files::lake_cache::remove_cached_stores;
use crate::output::{Printer, describe_removal};
use crate::update::forget::{exclusion_rule, forget_sessions, undo_forget};
use tools::error::unusable_path;
use tools::forget::{ForgetData, ForgetSelection, nothing_selected, select_forgotten};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ForgetFlags {
    /// Sessions to forget; any unique prefixes [default: choose in the picker]
    #[arg(value_name = "ID")]
    session_ids: Vec<String>,
    /// Only sessions whose working directory contains this text
    #[arg(long, short)]
    project: Option<String>,
    /// Only this agent's sessions
    #[arg(long = "agent", visible_alias = "provider", value_name = "AGENT")]
    provider: Option<Provider>,
    /// Only sessions that ended before: '90d', a date or RFC 3339 time
    #[arg(long, value_name = "TIME")]
    before: Option<String>,
    /// Only sessions with an event that this search finds
    #[arg(long, value_name = "QUERY")]
    query: Option<String>,
    /// Only sessions excluded by the settings file or a .sessionsignore
    #[arg(long)]
    excluded: bool,
    /// Also remove sessions that hold copies or originals of the selected sessions' events
    #[arg(long)]
    with_copies: bool,
    /// Forget them without asking
    #[arg(long)]
    yes: bool,
    /// Allow the logs of these sessions to be read again; without an ID, those of all forgotten ones
    #[arg(
        long,
        conflicts_with_all = ["project", "provider", "before", "query", "excluded", "with_copies", "yes"]
    )]
    undo: bool,
}

impl ForgetFlags {
    /// Returns whether the flags say nothing, so that a terminal offers the sessions.
    pub(in crate::cli) fn is_empty(&self) -> bool {
        let has_filter = self.project.is_some()
            || self.provider.is_some()
            || self.before.is_some()
            || self.query.is_some();
        let has_switch = self.excluded || self.with_copies || self.yes || self.undo;
        self.session_ids.is_empty() && !has_filter && !has_switch
    }
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
    let data = if flags.excluded {
        select_forgotten(&tools, &selection, &exclusion_rule()?, &context.call)?
    } else {
        select_forgotten(&tools, &selection, &|_| true, &context.call)?
    };
    forget_selected(data, flags.yes, context)
}

/// Removes a session that the user chose, and its subagents, after a question.
pub(in crate::cli) fn forget_session(
    session_id: String,
    context: &CommandContext<'_>,
) -> CommandResult {
    let selection = ForgetSelection { session_ids: vec![session_id], ..ForgetSelection::default() };
    let tools = context.create_tools();
    let data = select_forgotten(&tools, &selection, &|_| true, &context.call)?;
    forget_selected(data, false, context)
}

/// Shows the sessions, and removes them if the user agrees or has agreed.
fn forget_selected(
    mut data: ForgetData,
    is_agreed: bool,
    context: &CommandContext<'_>,
) -> CommandResult {
    let printer = context.printer;
    let is_found = !data.sessions.is_empty();
    let consent = Consent::get(is_agreed, &data, "Forget them?", context)?;
    if consent.is_given() && is_found {
        remove_sessions(&mut data, &HashMap::new(), context)?;
    }
    match consent {
        Consent::Given => printer.print_value(&data, &context.layout())?,
        Consent::Asked(true) => {
            printer.print_note(&format!("Forgot them. {}", describe_removal(&data)))?;
        }
        Consent::Asked(false) => printer.print_note("Nothing was changed.")?,
        Consent::Missing => {
            printer.print_value(&data, &context.layout())?;
            printer.print_note(&describe_removal(&data))?;
        }
    }
    Ok(CommandOutcome::from_found(is_found))
}

/// Whether the user agrees that sessions are removed.
pub(super) enum Consent {
    /// With `--yes`.
    Given,
    /// The user saw the sessions and answered.
    Asked(bool),
    /// Nobody can be asked.
    Missing,
}

impl Consent {
    /// Shows the sessions and asks `question`, unless `--yes` was given or nobody can be asked.
    pub(super) fn get(
        is_given: bool,
        data: &ForgetData,
        question: &str,
        context: &CommandContext<'_>,
    ) -> Result<Self, CommandFailure> {
        let printer = context.printer;
        if is_given {
            return Ok(Self::Given);
        }
        if data.sessions.is_empty() || printer.is_json || !printer.is_interactive() {
            return Ok(Self::Missing);
        }
        printer.print_value(data, &context.layout())?;
        let question = format!("{question} Your agents' log files are not touched.");
        Ok(Self::Asked(printer.confirm_removal(&question)?))
    }

    pub(super) fn is_given(&self) -> bool {
        matches!(self, Self::Given | Self::Asked(true))
    }
}

/// Removes the sessions from the store.
pub(super) fn remove_sessions(
    data: &mut ForgetData,
    hidden_by: &HashMap<String, String>,
    context: &CommandContext<'_>,
) -> Result<(), CommandFailure> {
    context.printer.print_note("Removing them from the store ...")?;
    forget_sessions(&context.store, data, hidden_by)?;
    clear_lake_cache(context.printer)
}

/// Removes what an engine loaded of lakes, which may hold the forgotten sessions too.
fn clear_lake_cache(printer: &Printer) -> Result<(), CommandFailure> {
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
