//! The help of the program: commands under the purpose they serve, and examples of each.

use std::fmt::Write as _;

use clap::Command;

use super::args::{GLOBAL_FLAGS, MAX_HELP_WIDTH};
use crate::output::{Terminal, wrap_lines};

/// The groups of commands, in the order of the help.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Find and read",
        &["list", "search", "find", "show", "open", "tail", "event", "resume", "blame", "restore"],
    ),
    ("Count and explain", &["usage", "stats", "analyze", "report", "query", "web"]),
    (
        "Keep",
        &["ingest", "status", "doctor", "secrets", "label", "forget", "hide", "compact", "export"],
    ),
    ("Share", &["push", "pull", "lake"]),
    ("Agents", &["setup", "mcp", "hook", "plugin", "skill", "tools", "statusline"]),
];

/// The commands that a user needs in a week.
const EVERY_DAY: &[&str] = &[
    "search", "find", "list", "show", "open", "tail", "resume", "usage", "stats", "ingest", "web",
    "setup",
];

/// The line about the flags that every command has.
const GLOBAL_FLAGS_LINE: &str =
    "--json, --quiet, --store DIR, --no-refresh and others: `sessions help --all`";

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
    (
        "restore",
        [
            "sessions restore 9ae82b3a",
            "sessions restore --file src/main.rs --at 9ae82b3a:31 -o before.rs",
        ],
    ),
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
    ("secrets", ["sessions secrets --since 30d", "sessions secrets --scrub"]),
    ("label", ["sessions label last --add good", "sessions label 9ae82b3a --note 'the fix'"]),
    ("forget", ["sessions forget 9ae82b3a", "sessions forget --project secret --yes"]),
    ("hide", ["sessions hide acme", "sessions hide '~/clients/**' --yes"]),
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

/// The commands that the help of the program lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HelpScope {
    /// Those of every day, with one line about the global flags.
    EveryDay,
    /// All, in groups, with the global flags.
    All,
}

/// Returns the program with the commands of `scope` in its help. The help of a command has examples, its
/// own flags and one line about the global ones. Lines fit the terminal.
pub(super) fn arrange_help(mut program: Command, terminal: Terminal, scope: HelpScope) -> Command {
    let width =
        if terminal.is_screen { terminal.width.min(MAX_HELP_WIDTH) } else { MAX_HELP_WIDTH };
    if scope == HelpScope::All {
        let groups = describe_groups(&program, width);
        return program.help_template(format!(
            "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{groups}{GLOBAL_FLAGS}:\n{{options}}{{after-help}}"
        ));
    }
    let mut global_flags = format!("{GLOBAL_FLAGS}:\n");
    for line in wrap_lines(GLOBAL_FLAGS_LINE, width.saturating_sub(2)) {
        let _ = writeln!(global_flags, "  {line}");
    }
    program = program.mut_args(|flag| if flag.is_global_set() { flag.hide(true) } else { flag });
    program = program.mut_subcommands(|command| {
        let examples = examples_of(command.get_name());
        let examples =
            examples.map(|[first, second]| format!("Examples:\n  {first}\n  {second}\n\n"));
        command.after_help(examples.unwrap_or_default() + global_flags.trim_end())
    });
    let commands = describe_commands("Commands", EVERY_DAY, &program, width);
    let all =
        "`sessions help --all` lists all commands, `sessions COMMAND --help` the flags of one.";
    let all = wrap_lines(all, width).join("\n");
    program.help_template(format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{commands}\n{all}\n\n{}{{after-help}}",
        global_flags.trim_end()
    ))
}

/// Returns the two examples of a command.
pub(super) fn examples_of(command: &str) -> Option<[&'static str; 2]> {
    EXAMPLES.iter().find(|(name, _)| *name == command).map(|(_, examples)| *examples)
}

/// Lists the commands under the names of their groups.
fn describe_groups(program: &Command, width: usize) -> String {
    let grouped = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let shown = program.get_subcommands().filter(|command| !command.is_hide_set());
    let others: Vec<&str> = shown.map(Command::get_name).filter(|name| !grouped(name)).collect();
    let mut out = String::new();
    for (heading, names) in GROUPS.iter().copied().chain([(OTHERS, others.as_slice())]) {
        out.push_str(&describe_commands(heading, names, program, width));
        out.push('\n');
    }
    out
}

/// Lists commands under a heading.
fn describe_commands(heading: &str, names: &[&str], program: &Command, width: usize) -> String {
    let shown = program.get_subcommands().filter(|command| !command.is_hide_set());
    let name_width = shown.map(|command| command.get_name().len()).max().unwrap_or(0);
    let mut out = format!("{heading}:\n");
    for name in names {
        let Some(command) = program.find_subcommand(name) else { continue };
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let indent = name_width + 4;
        let mut name = *name;
        for line in wrap_lines(&about, width.saturating_sub(indent)) {
            let _ = writeln!(out, "  {name:<name_width$}  {line}");
            name = "";
        }
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
        let named = named.chain(EVERY_DAY);
        for name in named.chain(EXAMPLES.iter().map(|(name, _)| name)) {
            assert!(program.find_subcommand(name).is_some(), "{name}");
        }
    }
}
