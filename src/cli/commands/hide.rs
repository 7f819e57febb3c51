//! `sessions hide`: leaves projects out from now on.

use std::collections::{HashMap, HashSet};

use schemas::{ErrorCode, ToolError, nearest};
use serde_json::json;

use super::forget::{Consent, remove_sessions};
use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandFailure, CommandOutcome, CommandResult};
use crate::config::patterns::pattern_of_name;
use crate::config::user_settings::UserSettings;
use crate::setup::{change_config, exclude_folders, include_folders};
use crate::update::forget::undo_hide;
use crate::update::log_rules::pattern_rule;
use base::numbers::count_of;
use store::is_store;
use tools::error::store_error;
use tools::forget::{ForgetData, ForgetEntry, ForgetSelection, select_forgotten};

/// Maximum number of projects that the user is asked about.
const MAX_OFFERED_PROJECTS: usize = 9;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct HideFlags {
    /// Projects to hide: names of folders, or patterns of their paths [default: choose among the largest]
    #[arg(value_name = "PROJECT")]
    project: Vec<String>,
    /// Also remove sessions that hold copies or originals of the selected sessions' events
    #[arg(long)]
    with_copies: bool,
    /// Hide them without asking
    #[arg(long)]
    yes: bool,
    /// Read their logs again, from the next ingest on
    #[arg(long, conflicts_with_all = ["with_copies", "yes"])]
    undo: bool,
}

/// Adds the projects to `exclude` in the settings file, and then forgets their sessions: logs that are
/// read in between are left out already.
pub(in crate::cli) fn run(flags: &HideFlags, context: &CommandContext<'_>) -> CommandResult {
    let has_store = is_store(context.store.dir());
    let projects = match &flags.project[..] {
        [] => choose_project(flags.undo, has_store, context)?,
        given => given.to_vec(),
    };
    if projects.is_empty() {
        return Ok(CommandOutcome::NothingFound);
    }
    if flags.undo {
        return undo(&projects, context);
    }
    let printer = context.printer;
    let patterns = patterns_of(&projects, has_store, context)?;
    let mut data = ForgetData::default();
    let mut hidden_by = HashMap::new();
    if has_store {
        let tools = context.create_tools();
        printer.print_warnings(&tools.store_warnings(&context.call)?)?;
        let is_hidden = pattern_rule(&patterns)?;
        let selection =
            ForgetSelection { with_copies: flags.with_copies, ..ForgetSelection::default() };
        data = select_forgotten(&tools, &selection, &is_hidden, &context.call)?;
        let snapshot = tools.snapshot(&context.call)?;
        for pattern in &patterns {
            let is_hidden = pattern_rule(std::slice::from_ref(pattern))?;
            for ForgetEntry { session_id, .. } in &data.sessions {
                // What is forgotten with a session goes with the first project.
                let session = snapshot.session(session_id);
                if pattern == &patterns[0] || session.is_some_and(|session| is_hidden(session)) {
                    hidden_by.insert(session_id.clone(), pattern.clone());
                }
            }
        }
    }

    let is_found = !data.sessions.is_empty();
    let question = format!("Leave {} out from now on, and forget them?", quoted(&patterns));
    let consent = Consent::get(flags.yes, &data, &question, context)?;
    if consent.is_given() {
        add_to_settings(&patterns, context)?;
        if is_found {
            remove_sessions(&mut data, &hidden_by, context)?;
        }
    }
    match consent {
        Consent::Given | Consent::Missing if is_found || printer.is_json => {
            printer.print_value(&data, &context.layout())?;
        }
        Consent::Given | Consent::Missing => {
            let known = known_projects(has_store, context)?;
            let mut note = "No session that was read is in such a folder.".to_owned();
            if let Some(near) = nearest(&projects[0], known.iter().map(String::as_str)) {
                note.push_str(&format!(" Did you mean '{near}'?"));
            }
            note.push_str(" `sessions stats --by project` lists the projects.");
            printer.print_note(&note)?;
        }
        Consent::Asked(true) => printer.print_note("Forgot them.")?,
        Consent::Asked(false) => printer.print_note("Nothing was changed.")?,
    }
    if matches!(consent, Consent::Missing) {
        let names = quoted(&patterns);
        printer.print_note(&format!(
            "Nothing was changed. Add --yes to hide {names}: `exclude` in the settings gets it, and these sessions are forgotten."
        ))?;
    }
    Ok(CommandOutcome::from_found(consent.is_given() || is_found))
}

/// Asks for one of the projects with the most sessions, or of the hidden ones if it is shown again. Returns
/// none if the user chooses none.
///
/// # Errors
/// Fails if the user cannot be asked, or if there is no project.
fn choose_project(
    is_undo: bool,
    has_store: bool,
    context: &CommandContext<'_>,
) -> Result<Vec<String>, CommandFailure> {
    let mut options = Vec::new();
    let mut described = Vec::new();
    if is_undo {
        options = UserSettings::read()?.ingest.exclude;
        described.clone_from(&options);
    } else {
        for (sessions, project) in largest_projects(has_store, context)? {
            described.push(format!("{project}, {}", count_of(sessions, "session")));
            options.push(project);
        }
    }
    if is_undo && options.is_empty() {
        let message =
            format!("Nothing is hidden: `exclude` in {} is empty", UserSettings::path().display());
        return Err(ToolError::new(ErrorCode::InvalidArgument, message).into());
    }
    if context.printer.is_json || !context.printer.is_interactive() || options.is_empty() {
        let message = "'sessions hide' needs a PROJECT: the name of a folder, or a pattern of its path. `sessions stats --by project` lists the projects";
        let error = ToolError::new(ErrorCode::InvalidArgument, message);
        return Err(error.with_detail("field", "project").into());
    }
    let question = if is_undo { "Hidden projects:" } else { "Projects with the most sessions:" };
    let chosen = context.printer.choose(question, &described)?;
    Ok(chosen.and_then(|at| options.get(at).cloned()).into_iter().collect())
}

/// Returns the projects with the most sessions and the number of these, the largest first.
fn largest_projects(
    has_store: bool,
    context: &CommandContext<'_>,
) -> Result<Vec<(usize, String)>, CommandFailure> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    if has_store {
        let snapshot = context.store.take_lazy_snapshot().map_err(store_error)?;
        for project in snapshot.sessions().iter().filter_map(|row| row.origin.project.as_ref()) {
            *counts.entry(project.clone()).or_default() += 1;
        }
    }
    let mut projects: Vec<(usize, String)> =
        counts.into_iter().map(|(project, sessions)| (sessions, project)).collect();
    projects.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    projects.truncate(MAX_OFFERED_PROJECTS);
    Ok(projects)
}

/// Removes the projects from `exclude` in the settings file, and lets the logs of their sessions be read
/// again.
fn undo(projects: &[String], context: &CommandContext<'_>) -> CommandResult {
    let mut patterns = projects.to_vec();
    patterns.extend(projects.iter().map(|project| pattern_of_name(project)));
    patterns.sort();
    patterns.dedup();
    // What cannot be read must not be changed.
    let settings = UserSettings::read()?;
    let path = UserSettings::path();
    // First, so that the same command completes what was interrupted.
    let sessions =
        if is_store(context.store.dir()) { undo_hide(&context.store, &patterns)? } else { 0 };
    let excluded = settings.ingest.exclude.iter().filter(|known| patterns.contains(known));
    let excluded: Vec<String> = excluded.cloned().collect();
    if excluded.is_empty() && sessions == 0 {
        let known = quoted(&settings.ingest.exclude);
        let hidden = if known == "''" { "nothing" } else { &known };
        let message = format!(
            "{} is not hidden: `exclude` in {} has {hidden}",
            quoted(projects),
            path.display()
        );
        return Err(ToolError::new(ErrorCode::InvalidArgument, message).into());
    }
    change_config(&path, context.call.now, |text| include_folders(text, &excluded))?;
    let printer = context.printer;
    if printer.is_json {
        printer.print_json(&json!({ "undone": sessions, "patterns": excluded }))?;
    }
    let forgotten = if sessions == 0 {
        "none had been forgotten by it (`sessions forget --undo ID` brings others back)".to_owned()
    } else {
        format!("{} had been forgotten", count_of(sessions, "session"))
    };
    printer.print_note(&format!(
        "Removed {} from `exclude` in {}. The next `sessions ingest` reads such logs; {forgotten}.",
        quoted(&excluded),
        path.display()
    ))?;
    Ok(CommandOutcome::Done)
}

/// Returns the patterns of the projects. The name of a known project is no pattern, whatever characters it
/// has.
fn patterns_of(
    projects: &[String],
    has_store: bool,
    context: &CommandContext<'_>,
) -> Result<Vec<String>, CommandFailure> {
    let known = known_projects(has_store, context)?;
    let mut patterns = Vec::new();
    for project in projects {
        if project.trim().trim_matches(['*', '/', '\\', '.']).is_empty() {
            let message = format!(
                "'{project}' names no project. `sessions stats --by project` lists their names"
            );
            return Err(ToolError::new(ErrorCode::InvalidArgument, message).into());
        }
        let is_name = known.contains(project) && !project.contains(['/', '\\']);
        patterns.push(if is_name { pattern_of_name(project) } else { project.clone() });
    }
    Ok(patterns)
}

/// Returns the names of the projects of the store, if there is one.
fn known_projects(
    has_store: bool,
    context: &CommandContext<'_>,
) -> Result<HashSet<String>, CommandFailure> {
    let mut known = HashSet::new();
    if has_store {
        let snapshot = context.store.take_lazy_snapshot().map_err(store_error)?;
        known.extend(snapshot.sessions().iter().filter_map(|row| row.origin.project.clone()));
    }
    Ok(known)
}

/// Adds patterns to `exclude`, and says where that is.
fn add_to_settings(
    patterns: &[String],
    context: &CommandContext<'_>,
) -> Result<(), CommandFailure> {
    // What cannot be read must not be changed.
    UserSettings::read()?;
    let path = UserSettings::path();
    let written = change_config(&path, context.call.now, |text| exclude_folders(text, patterns))?;
    let names = quoted(patterns);
    let place = written.path.display();
    let note = if written.changed {
        format!(
            "Added {names} to `exclude` in {place}: such logs are not read any more. `sessions hide --undo` takes it back."
        )
    } else {
        format!("`exclude` in {place} has {names} already.")
    };
    context.printer.print_note(&note)?;
    Ok(())
}

/// Returns the patterns in quotes.
fn quoted(patterns: &[String]) -> String {
    format!("'{}'", patterns.join("', '"))
}
