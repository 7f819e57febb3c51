//! The help of the program: commands under the purpose they serve, and examples of each.

use std::fmt::Write as _;

use clap::Command;

use super::args::{GLOBAL_FLAGS, MAX_HELP_WIDTH};
use crate::output::{Terminal, wrap_lines};

/// The groups of commands, in the order of the help.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Find and read",
        &["list", "search", "find", "show", "open", "tail", "event", "resume", "blame"],
    ),
    ("Count and explain", &["usage", "stats", "analyze", "report", "query", "web"]),
    ("Keep", &["ingest", "status", "doctor", "label", "forget", "compact", "export"]),
    ("Share", &["push", "pull", "lake"]),
    ("Agents", &["setup", "mcp", "hook", "plugin", "skill", "tools", "statusline"]),
];

/// The heading of the commands that are in no group.
const OTHERS: &str = "This program";

/// Two examples of each command that a user types.
const EXAMPLES: &[(&str, [&str; 2])] = &[
    ("list", ["sessions list -p harbor --since yesterday", "sessions list --sort cost -n 5"]),
    (
        "search",
        [
            "sessions search 'retry budget' -p harbor",
            "sessions search 'is:error cargo' --since monday -l",
        ],
    ),
    (
        "find",
        [
            "sessions find the session about retry budgets",
            "sessions find flaky test --since 'last week'",
        ],
    ),
    ("show", ["sessions show last", "sessions show 9ae82b3a --detail-level turns"]),
    (
        "event",
        ["sessions event 9ae82b3a:31", "sessions event 9ae82b3a:31 9ae82b3a:33 --fields text"],
    ),
    ("resume", ["sessions resume last", "sessions resume 9ae82b3a --with codex"]),
    ("blame", ["sessions blame src/main.rs", "sessions blame src/main.rs:12-20"]),
    ("usage", ["sessions usage today", "sessions usage week --all"]),
    ("stats", ["sessions stats", "sessions stats --by tool --sort errors"]),
    ("analyze", ["sessions analyze last_failed", "sessions analyze --query 'linker not found'"]),
    ("report", ["sessions report --since 30d", "sessions report -p harbor -o harbor.html"]),
    (
        "query",
        [
            "sessions query 'SELECT provider, count(*) FROM sessions GROUP BY 1'",
            "sessions query -f costs.sql -o costs.csv",
        ],
    ),
    ("ingest", ["sessions ingest", "sessions ingest --watch"]),
    ("label", ["sessions label last --add good", "sessions label 9ae82b3a --note 'the fix'"]),
    ("forget", ["sessions forget 9ae82b3a", "sessions forget --project secret --yes"]),
    ("push", ["sessions push /mnt/team/lake --dry-run", "sessions push s3://acme-sessions/lake"]),
    (
        "pull",
        [
            "sessions pull /mnt/team/lake --since 30d",
            "sessions pull s3://acme-sessions/lake --watch",
        ],
    ),
    (
        "lake",
        ["sessions lake compact /mnt/team/lake", "sessions lake compact s3://acme-sessions/lake"],
    ),
    ("export", ["sessions export md 9ae82b3a", "sessions export parquet -o lake --since 30d"]),
];

/// Returns the program with its commands in groups and with examples in the help of commands. Lines fit
/// the terminal.
pub(super) fn arrange_help(mut program: Command, terminal: Terminal) -> Command {
    let width =
        if terminal.is_screen { terminal.width.min(MAX_HELP_WIDTH) } else { MAX_HELP_WIDTH };
    for (name, examples) in EXAMPLES {
        if program.find_subcommand(name).is_some() {
            let [first, second] = examples;
            let text = format!("Examples:\n  {first}\n  {second}");
            program = program.mut_subcommand(name, |command| command.after_help(text));
        }
    }
    let commands = describe_groups(&program, width);
    program.help_template(format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{commands}\n{GLOBAL_FLAGS}:\n{{options}}{{after-help}}"
    ))
}

/// Lists the commands under the names of their groups.
fn describe_groups(program: &Command, width: usize) -> String {
    let shown: Vec<&Command> =
        program.get_subcommands().filter(|command| !command.is_hide_set()).collect();
    let name_width = shown.iter().map(|command| command.get_name().len()).max().unwrap_or(0);
    let grouped = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let others: Vec<&str> =
        shown.iter().map(|command| command.get_name()).filter(|name| !grouped(name)).collect();
    let mut out = String::new();
    for (heading, names) in GROUPS.iter().copied().chain([(OTHERS, others.as_slice())]) {
        let _ = writeln!(out, "{heading}:");
        for name in names {
            let Some(command) = shown.iter().find(|command| command.get_name() == *name) else {
                continue;
            };
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let indent = name_width + 4;
            let mut name = *name;
            for line in wrap_lines(&about, width.saturating_sub(indent)) {
                let _ = writeln!(out, "  {name:<name_width$}  {line}");
                name = "";
            }
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Args;

    #[test]
    fn groups_and_examples_name_commands() {
        let program = Args::command();
        let named = GROUPS.iter().flat_map(|(_, names)| names.iter());
        for name in named.chain(EXAMPLES.iter().map(|(name, _)| name)) {
            assert!(program.find_subcommand(name).is_some(), "{name}");
        }
    }
}
