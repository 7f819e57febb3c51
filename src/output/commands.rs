//! Messages speak of tools and their arguments; at a terminal these are commands and flags.

use std::borrow::Cow;

use schemas::tool::TOOLS;

/// A message with the names of tools as commands: `list_sessions(limit=1)` is
/// `sessions list --limit 1`.
pub(super) fn commands(message: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(message);
    for tool in TOOLS {
        while let Some((before, after)) = text.split_once(tool.name) {
            let command = format!("sessions {}", tool.command);
            let (flags, rest) = call(after).unwrap_or((String::new(), after));
            text = Cow::Owned(format!("{before}{command}{flags}{rest}"));
        }
    }
    text
}

/// The arguments in brackets behind a name as flags, and what follows.
fn call(after: &str) -> Option<(String, &str)> {
    let (arguments, rest) = after.strip_prefix('(')?.split_once(')')?;
    let mut flags = String::new();
    for argument in arguments.split(", ") {
        let (name, value) = argument.split_once('=')?;
        let value = value.trim_matches(['[', ']', '"', '\'']);
        match name {
            // These have no flag.
            "event_ids" | "sql" => flags.push_str(&format!(" {value}")),
            _ => {
                let name =
                    name.strip_suffix("ids").map(|of| format!("{of}id")).unwrap_or(name.to_owned());
                flags.push_str(&format!(" --{} {value}", name.replace('_', "-")));
            }
        }
    }
    Some((flags, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_commands_at_a_terminal() {
        for (message, shown) in [
            ("no name", "no name"),
            ("list_sessions shows them", "sessions list shows them"),
            (
                "list_sessions(limit=1) and search_events",
                "sessions list --limit 1 and sessions search",
            ),
            ("get_event_details(event_ids=[...]) gives", "sessions event ... gives"),
            ("list_sessions(session_ids=[...])", "sessions list --session-id ..."),
            ("list_sessions(label=x, limit=2).", "sessions list --label x --limit 2."),
            ("query_sql(odd) stays odd", "sessions query(odd) stays odd"),
        ] {
            assert_eq!(commands(message), shown);
        }
    }
}
