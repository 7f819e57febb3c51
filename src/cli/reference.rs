//! Describes the command line for help and documentation, and answers `--ai-help`, which is looked
//! for before the arguments are parsed.

use std::ffi::OsString;

use clap::{Arg, Command};

use super::blank_values::find_option;
use crate::help::{CommandHelp, Help};

/// Returns help made from the commands of `program`.
pub(super) fn describe_commands(mut program: Command) -> Help {
    program.build();
    let commands = program
        .get_subcommands()
        .filter(|command| !command.is_hide_set() && command.get_name() != "help");
    Help::new(commands.map(describe_command).collect())
}

/// Returns the help of one command.
fn describe_command(command: &Command) -> CommandHelp {
    let usage = command.clone().render_usage().to_string();
    CommandHelp {
        name: command.get_name().to_owned(),
        about: command.get_about().map(ToString::to_string).unwrap_or_default(),
        usage: usage.trim_start_matches("Usage: ").to_owned(),
        options: command
            .get_arguments()
            .filter(|arg| is_command_specific(arg))
            .map(describe_option)
            .collect(),
    }
}

/// True if an argument belongs to its command alone. Flags that every command has are described
/// once.
fn is_command_specific(arg: &Arg) -> bool {
    !arg.is_global_set()
        && !arg.is_hide_set()
        && !["help", "version"].contains(&arg.get_id().as_str())
}

/// Returns how an argument is written, and its help.
fn describe_option(arg: &Arg) -> (String, String) {
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

/// True if `--ai-help` is among the arguments.
pub(super) fn has_ai_help(arguments: &[OsString]) -> bool {
    words_before_dashes(arguments).any(|word| word == "--ai-help")
}

/// Returns the help that `--ai-help` asks for: that of the first command among the arguments, else
/// that of the whole `program`.
pub(super) fn answer_ai_help(program: &Command, arguments: &[OsString]) -> String {
    let help = describe_commands(program.clone());
    let mut words = words_before_dashes(arguments);
    while let Some(word) = words.next() {
        if find_option(program, None, word).is_some_and(|flag| flag.get_action().takes_values()) {
            words.next();
        } else if let Some(text) = help.command_manual(word) {
            return text;
        }
    }
    help.manual()
}

/// Returns the arguments before `--`; those that are not UTF-8 are empty.
pub(super) fn words_before_dashes(arguments: &[OsString]) -> impl Iterator<Item = &str> {
    let words = arguments.iter().skip(1).map(|word| word.to_str().unwrap_or_default());
    words.take_while(|word| *word != "--")
}
