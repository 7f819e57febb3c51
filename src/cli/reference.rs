//! The command line's description of itself, for help and documentation; and `--ai-help`, which
//! is answered before arguments are looked at.

use std::ffi::OsString;

use clap::{Arg, CommandFactory};

use super::args::Args;
use crate::help::{CommandHelp, Help};

/// Help made from the commands as they are.
pub fn help() -> Help {
    let mut command = Args::command();
    command.build();
    let commands = command.get_subcommands();
    let commands =
        commands.filter(|command| !command.is_hide_set() && command.get_name() != "help");
    Help::new(commands.map(describe).collect())
}

fn describe(command: &clap::Command) -> CommandHelp {
    let usage = command.clone().render_usage().to_string();
    CommandHelp {
        name: command.get_name().to_owned(),
        about: command.get_about().map(ToString::to_string).unwrap_or_default(),
        usage: usage.trim_start_matches("Usage: ").to_owned(),
        options: command.get_arguments().filter(|arg| is_own(arg)).map(option).collect(),
    }
}

/// Flags that every command has are told once.
fn is_own(arg: &Arg) -> bool {
    !arg.is_global_set()
        && !arg.is_hide_set()
        && !["help", "version"].contains(&arg.get_id().as_str())
}

/// How it is written, and what for.
fn option(arg: &Arg) -> (String, String) {
    let names = arg.get_value_names().unwrap_or_default();
    let value = match names.first() {
        Some(name) => format!("<{name}>"),
        None => format!("<{}>", arg.get_id().as_str().to_uppercase()),
    };
    let form = match arg.get_long() {
        Some(long) if arg.get_action().takes_values() => format!("--{long} {value}"),
        Some(long) => format!("--{long}"),
        None => value,
    };
    (form, arg.get_help().map(ToString::to_string).unwrap_or_default())
}

/// The help that `--ai-help` asks for, if it is there: that of the command before it, else all.
pub(super) fn asked(arguments: &[OsString]) -> Option<String> {
    let words = arguments.iter().skip(1).map(|word| word.to_str().unwrap_or_default());
    let mut words = words.take_while(|word| *word != "--");
    if !words.clone().any(|word| word == "--ai-help") {
        return None;
    }
    let command = Args::command();
    let takes_value = |word: &str| {
        let long = word.strip_prefix("--").unwrap_or_default();
        let mut known = command.get_arguments().filter(|arg| arg.get_long() == Some(long));
        known.any(|arg| arg.get_action().takes_values())
    };
    let help = help();
    while let Some(word) = words.next() {
        if takes_value(word) {
            words.next();
        } else if let Some(text) = help.command(word) {
            return Some(text);
        }
    }
    Some(help.markdown())
}
