//! `sessions doctor`: reports where the agents keep their logs, what was found there, and what was
//! unknown in it; also which rules masked what.

use std::sync::Arc;

use ingest::provider::format::AgentFolders;

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::config::environment;
use crate::config::user_settings::UserSettings;
use tools::Tools;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct DoctorFlags {
    /// Show which rule masked which text in a session, an event or a range of events instead
    /// (secrets are not shown)
    #[arg(long, value_name = "ID")]
    pub(in crate::cli) why_masked: Option<String>,
}

pub(in crate::cli) fn run(flags: &DoctorFlags, context: &CommandContext<'_>) -> CommandResult {
    if let Some(id) = &flags.why_masked {
        let report = context.create_tools().explain_masks(id, &context.call)?;
        context.printer.print_value(&report, &context.layout())?;
        return Ok(CommandOutcome::from_found(!report.masked.is_empty()));
    }
    let keep_logs = UserSettings::read()?.store.keep_logs();
    let home = environment::home_dir();
    let folders = AgentFolders::new(&home, &environment::read_variable);
    let data = Tools::new(Arc::clone(&context.store)).run_doctor(&folders, keep_logs)?;
    context.printer.print_value(&data, &context.layout())?;
    Ok(CommandOutcome::Done)
}
