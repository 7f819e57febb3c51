//! Splits text in the user's role as Cursor and Grok write it: `<user_query>` encloses the typed
//! words, and other tags enclose the client's additions (docs/formats.md#cursor,
//! docs/formats.md#grok).

use crate::stream::{Stream, parse_micros};

/// Tags that begin text of the client, each with the subtype of the notification that it becomes.
const TAGS: &[(&str, &str)] = &[
    ("<user_info>", "user_info"),
    ("<environment_context>", "environment_context"),
    ("<system_reminder>", "system_reminder"),
    ("<system-reminder>", "system_reminder"),
    ("<open_and_recently_viewed_files>", "open_files"),
    ("<attached_files>", "attached_files"),
    ("<manually_attached_skills>", "skills"),
    ("<agent_skills>", "skills"),
    ("<additional_data>", "additional_data"),
    ("<project_layout>", "project_layout"),
    ("<git_status>", "git_status"),
    ("<rules>", "rules"),
    ("<dynamic_tools>", "dynamic_tools"),
    ("<agent_transcripts>", "agent_transcripts"),
    ("<mcp_file_system>", "mcp"),
];

/// Beginnings of the names of months.
const MONTHS: &[&str] =
    &["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A text in the user's role, split by author.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct UserText {
    /// Text that the user typed; empty if there is none.
    pub prompt: String,
    /// Text that the client added; empty if there is none.
    pub context: String,
    /// Subtype of the notification with `context`.
    pub subtype: &'static str,
    /// Time at which the prompt was sent.
    pub time: Option<i64>,
    /// The folder that the context names.
    pub workspace: Option<String>,
}

impl UserText {
    /// Pushes the text that the client added as a notification, if there is any.
    pub(crate) fn push_context(&self, out: &mut Stream) {
        if !self.context.is_empty() {
            out.push_notification(self.subtype, &self.context);
        }
    }
}

/// Separates the user's words from the client's additions.
pub(crate) fn split_user_text(text: &str) -> UserText {
    let mut words = match text.split_once("<user_query>") {
        Some((before, rest)) => split_query(before, rest),
        None => split_untagged(text),
    };
    let folder = words.context.lines().find_map(|line| line.strip_prefix("Workspace Path: "));
    words.workspace = folder.map(|folder| folder.trim().to_owned());
    words
}

/// Splits a text with `<user_query>` into its parts. `before` precedes this tag, and `rest` follows
/// it.
fn split_query(before: &str, rest: &str) -> UserText {
    let (query, after) = rest.rsplit_once("</user_query>").unwrap_or((rest, ""));
    let (time, before) = split_timestamp(before);
    let after = after.trim();
    // After the query come attachments in brackets and reminders in tags.
    let (attached, reminders) = if after.starts_with('<') { ("", after) } else { (after, "") };
    UserText {
        prompt: join_lines(query.trim(), attached),
        context: join_lines(before.trim(), reminders),
        subtype: "user_context",
        time,
        workspace: None,
    }
}

/// Attributes a text without `<user_query>` to the client if it begins with one of [`TAGS`],
/// otherwise to the user.
fn split_untagged(text: &str) -> UserText {
    let (time, rest) = split_timestamp(text);
    let start = rest.trim_start();
    match TAGS.iter().find(|(tag, _)| start.starts_with(tag)) {
        Some(&(_, subtype)) => UserText { context: rest, subtype, time, ..UserText::default() },
        None => UserText { prompt: rest, time, ..UserText::default() },
    }
}

/// Joins two texts with a line break; either may be empty.
fn join_lines(first: &str, second: &str) -> String {
    let between = if first.is_empty() || second.is_empty() { "" } else { "\n" };
    format!("{first}{between}{second}")
}

/// Returns the time in `<timestamp>`, and the text without it.
fn split_timestamp(text: &str) -> (Option<i64>, String) {
    if let Some((before, rest)) = text.split_once("<timestamp>")
        && let Some((time, after)) = rest.split_once("</timestamp>")
    {
        return (parse_date(time), join_lines(before, after.trim_start()));
    }
    (None, text.to_owned())
}

/// Parses `Friday, Sep 4, 2026, 2:21 AM (UTC+8)`. Returns `None` for every other text, such as a
/// time without a zone.
fn parse_date(text: &str) -> Option<i64> {
    let (date, zone) = text.trim().strip_suffix(')')?.rsplit_once("(UTC")?;

    let mut parts = date.trim().split(", ").skip(1);
    let (month, day) = parts.next()?.split_once(' ')?;
    let year: u16 = parts.next()?.parse().ok()?;
    let (clock, half) = parts.next()?.split_once(char::is_whitespace)?;

    let month = MONTHS.iter().position(|name| month.starts_with(name))? + 1;
    let day: u8 = day.parse().ok()?;
    let (hour, minute) = clock.split_once(':')?;
    let hour = hour.parse::<u8>().ok()? % 12 + if half == "PM" { 12 } else { 0 };
    let minute: u8 = minute.parse().ok()?;

    let (sign, zone) = match zone.strip_prefix('-') {
        Some(zone) => ('-', zone),
        None => ('+', zone.trim_start_matches('+')),
    };
    let (hours, minutes) = zone.split_once(':').unwrap_or((zone, "0"));
    let hours: u8 = if hours.is_empty() { 0 } else { hours.parse().ok()? };
    let minutes: u8 = minutes.parse().ok()?;

    let rfc3339 = format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:00{sign}{hours:02}:{minutes:02}"
    );
    parse_micros(Some(&rfc3339))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_told_from_what_stands_around_them() {
        let check = |text: &str, prompt: &str, context: &str| {
            let words = split_user_text(text);
            assert_eq!(
                (words.prompt.as_str(), words.context.as_str()),
                (prompt, context),
                "{text}"
            );
        };
        check("fix it", "fix it", "");
        check("<user_query>\nfix it\n</user_query>", "fix it", "");
        check("<user_query>say </user_query> twice</user_query>", "say </user_query> twice", "");
        check("<user_query>cut", "cut", "");
        check("<rules>\nx\n</rules>\n<user_query>go</user_query>", "go", "<rules>\nx\n</rules>");
        check("<user_query>go</user_query>\n[Image]", "go\n[Image]", "");
        check(
            "<user_query>go</user_query>\n<system_reminder>x</system_reminder>",
            "go",
            "<system_reminder>x</system_reminder>",
        );
        check("<user_info>\nOS: linux\n</user_info>", "", "<user_info>\nOS: linux\n</user_info>");
        check("<div> is broken", "<div> is broken", "");
    }

    #[test]
    fn the_folder_and_the_time_are_read() {
        let words = split_user_text("<user_info>\nWorkspace Path: /home/mira/code\n</user_info>");
        assert_eq!(words.workspace.as_deref(), Some("/home/mira/code"));
        let words = split_user_text(
            "<timestamp>Friday, Sep 4, 2026, 2:21 PM (UTC+8)</timestamp>\n<user_query>a</user_query>",
        );
        assert_eq!(words.time, parse_micros(Some("2026-09-04T06:21:00Z")));
        assert_eq!(words.context, "");
        assert_eq!(
            parse_date("Friday, Sep 4, 2026, 12:05 AM (UTC-3:30)"),
            parse_micros(Some("2026-09-04T03:35:00Z"))
        );
        assert_eq!(
            parse_date("Friday, Sep 4, 2026, 2:21\u{202f}AM (UTC)"),
            parse_micros(Some("2026-09-04T02:21:00Z"))
        );
        assert_eq!(parse_date("Friday, Sep 4, 2026, 2:21 AM"), None);
    }
}
