//! `sessions uninstall`: removes what the program has written for agents, and the program.

use ingest::discover::real_path;
use ingest::provider::format::AgentFolders;

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::config::environment;
use crate::setup::uninstall::uninstall;
use store::is_store;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct UninstallFlags {
    /// Remove the store and the cache of lakes too
    #[arg(long)]
    store_too: bool,
    /// Remove everything; without this, only show it
    #[arg(long)]
    yes: bool,
}

pub(in crate::cli) fn run(flags: &UninstallFlags, context: &CommandContext<'_>) -> CommandResult {
    let store = context.store.dir().to_owned();
    let mut folders = Vec::new();
    if flags.store_too && is_store(&store) {
        folders.push(("store", store.clone()));
    }
    if flags.store_too {
        folders.push(("cache", environment::cache_dir()));
    }
    let home = environment::home_dir();
    let places = AgentFolders::new(&home, &environment::read_variable);
    let program = environment::program_path();
    let program = real_path(&program).unwrap_or(program);
    let mut done = uninstall(&program, &places, &home, folders, flags.yes);
    if !flags.store_too && is_store(&store) {
        let store = store.display();
        done.remaining.push(format!("The store in {store} stays; --store-too removes it"));
    }
    context.printer.print_report(&done)?;
    Ok(if done.has_errors() { CommandOutcome::Wrong } else { CommandOutcome::Done })
}
