//! `sessions hide`: leaves projects out from now on.

use toml_edit::{Array, DocumentMut, Item, Table};

use super::forget::clear_lake_cache;
use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandFailure, CommandOutcome};
use crate::config::user_settings::UserSettings;
use crate::setup::change_config;
use crate::update::forget::{forget_sessions, pattern_rule};
use tools::forget::{ForgetSelection, select_forgotten};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct HideFlags {
    /// Projects to hide: names of folders, or patterns of their paths
    #[arg(value_name = "PROJECT", required = true)]
    project: Vec<String>,
    /// Hide them; without this, only show what would be removed
    #[arg(long)]
    yes: bool,
}

/// Adds the projects to `exclude` in the settings file, and then forgets their sessions: logs that are
/// read in between are left out already.
pub(in crate::cli) fn run(
    flags: &HideFlags,
    context: &CommandContext<'_>,
) -> Result<CommandOutcome, CommandFailure> {
    let printer = context.printer;
    let is_hidden = pattern_rule(&flags.project)?;
    let tools = context.create_tools();
    printer.print_warnings(&tools.store_warnings(&context.call)?)?;
    let selection = ForgetSelection::default();
    let mut data = select_forgotten(&tools, &selection, &is_hidden, &context.call)?;
    if flags.yes {
        add_to_settings(&flags.project, context)?;
        if !data.sessions.is_empty() {
            printer.print_note("Removing them from the store ...")?;
            forget_sessions(&context.store, &mut data)?;
            clear_lake_cache(printer)?;
        }
    }
    printer.print_value_on(&data, &context.layout())?;
    Ok(CommandOutcome::from_found(flags.yes || !data.sessions.is_empty()))
}

/// Adds patterns to `exclude`, and says where that is.
fn add_to_settings(
    patterns: &[String],
    context: &CommandContext<'_>,
) -> Result<(), CommandFailure> {
    // What cannot be read must not be changed.
    UserSettings::read()?;
    let path = UserSettings::path();
    let written = change_config(&path, context.call.now, |text| add_patterns(text, patterns))?;
    let names = patterns.join("', '");
    let place = written.path.display();
    let note = if written.changed {
        format!("'{names}' is in `exclude` of {place} now: its logs are not read any more.")
    } else {
        format!("`exclude` of {place} has '{names}' already.")
    };
    context.printer.print_note(&note)?;
    Ok(())
}

/// Returns the text of a settings file with patterns added to `exclude`. Everything else stays as it is.
fn add_patterns(text: &str, patterns: &[String]) -> Result<String, String> {
    let mut document =
        text.parse::<DocumentMut>().map_err(|error| format!("it is not TOML ({error})"))?;
    let ingest = document.entry("ingest").or_insert_with(|| Item::Table(Table::new()));
    let ingest = ingest.as_table_like_mut().ok_or("'ingest' in it is not a table")?;
    let exclude = ingest.entry("exclude").or_insert_with(|| toml_edit::value(Array::new()));
    let exclude = exclude.as_array_mut().ok_or("'exclude' in it is not a list")?;
    for pattern in patterns {
        if !exclude.iter().any(|known| known.as_str() == Some(pattern)) {
            exclude.push(pattern);
        }
    }
    Ok(document.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_added_once_and_the_rest_of_the_file_stays() {
        let acme = ["acme".to_owned()];
        let add = |text: &str| add_patterns(text, &acme).expect("adds");
        assert_eq!(add(""), "[ingest]\nexclude = [\"acme\"]\n");
        let kept = "# mine\n[display]\ntimezone = \"UTC\" # home\n";
        assert!(add(kept).starts_with(kept));
        let both = add("[ingest]\nexclude = [\"~/secret/**\"] # never\n");
        assert_eq!(both, "[ingest]\nexclude = [\"~/secret/**\", \"acme\"] # never\n");
        assert_eq!(add(&both), both);
        for invalid in ["[ingest", "ingest = 3", "[ingest]\nexclude = \"acme\""] {
            assert!(add_patterns(invalid, &acme).is_err(), "{invalid}");
        }
    }
}
