//! Recognizes text in the user's role that a machine wrote. Every agent has a table of such text,
//! in the file `machine.rs` of its folder (docs/formats.md#what-all-formats-share).

/// One kind of text in the user's role that no user typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineText {
    /// The beginning of the text. After a tag without its `>`, attributes may follow.
    pub start: &'static str,
    /// The end of the text; other text after it is judged by itself. Empty if the text extends to
    /// the end of its block, and the same as `start` if it is the start alone.
    pub end: &'static str,
    /// Subtype of the notification that the text becomes.
    pub subtype: &'static str,
    /// A version of the agent that writes the text. `docs` if the text is known only from the
    /// agent's sources or documentation, or from logs without a version.
    pub seen: &'static str,
}

impl MachineText {
    /// Returns the row of a text that is known only from documentation.
    pub(crate) const fn documented(
        start: &'static str,
        end: &'static str,
        subtype: &'static str,
    ) -> Self {
        Self { start, end, subtype, seen: "docs" }
    }
}

/// Machine text at the beginning of another text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MachineBlock<'t> {
    /// Subtype of the notification.
    pub subtype: &'static str,
    /// The machine's text.
    pub text: &'t str,
    /// The text after it, without leading white space.
    pub rest: &'t str,
}

/// Returns the row of `table` for the beginning of `text`. White space before the text does not
/// count.
pub(crate) fn find_machine_text(
    table: &'static [MachineText],
    text: &str,
) -> Option<&'static MachineText> {
    let text = text.trim_start();
    table.iter().find(|row| has_start(text, row.start))
}

/// Splits the machine text off that `text` begins with. `None` if it begins with other text.
pub(crate) fn split_machine_text<'t>(
    table: &'static [MachineText],
    text: &'t str,
) -> Option<MachineBlock<'t>> {
    let row = find_machine_text(table, text)?;
    let text = text.trim_start();
    let (text, rest) = text.split_at(block_end(text, row));
    Some(MachineBlock { subtype: row.subtype, text: text.trim_end(), rest: rest.trim_start() })
}

/// Returns the text after all machine text that `text` begins with; empty if that is all.
pub(crate) fn skip_machine_texts<'t>(table: &'static [MachineText], mut text: &'t str) -> &'t str {
    while let Some(block) = split_machine_text(table, text) {
        text = block.rest;
    }
    text
}

/// Returns whether `text` begins with `start`. A tag without its `>` must end there.
fn has_start(text: &str, start: &str) -> bool {
    let Some(rest) = text.strip_prefix(start) else { return false };
    let is_open_tag = start.starts_with('<') && !start.ends_with('>');
    !is_open_tag || rest.starts_with(|c: char| c == '>' || c.is_whitespace())
}

/// Returns the offset after the machine text at the beginning of `text`. An end that no other start
/// precedes belongs to the text, which then only mentions it.
fn block_end(text: &str, row: &MachineText) -> usize {
    if row.end == row.start {
        return row.start.len();
    }
    let Some(first) = text.find(row.end).filter(|_| !row.end.is_empty()) else {
        return text.len();
    };
    let mut end = first + row.end.len();
    while let Some(at) = text[end..].find(row.end)
        && !text[end..end + at].contains(row.start)
    {
        end += at + row.end.len();
    }
    end
}

/// Returns whether a command as typed is one that the client carries out itself, without a request
/// to the model. `commands` are such commands; those in `bare` are only without arguments.
pub(crate) fn is_client_command(typed: &str, commands: &[&str], bare: &[&str]) -> bool {
    let typed = typed.trim();
    let name = typed.split_whitespace().next().unwrap_or("");
    commands.contains(&name) || bare.contains(&typed)
}

/// Returns the text between two tags.
pub(crate) fn text_between<'t>(text: &'t str, open: &str, close: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(open)?;
    let (inner, _) = rest.split_once(close)?;
    Some(inner.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[MachineText] = &[
        MachineText { start: "<env>", end: "</env>", subtype: "env", seen: "1" },
        MachineText { start: "<hook", end: "</hook>", subtype: "hook", seen: "1" },
        MachineText { start: "Caveat: ", end: "", subtype: "caveat", seen: "1" },
        MachineText { start: "[[ask]]", end: "[[ask]]", subtype: "marker", seen: "1" },
    ];

    fn check(text: &str, want: Option<(&str, &str, &str)>) {
        let found = split_machine_text(TABLE, text);
        let found = found.as_ref().map(|block| (block.subtype, block.text, block.rest));
        assert_eq!(found, want, "{text}");
    }

    #[test]
    fn machine_text_ends_where_its_tag_is_closed() {
        check("fix it", None);
        check(" <env>x</env>\n\nfix it", Some(("env", "<env>x</env>", "fix it")));
        check("<env>x</env>", Some(("env", "<env>x</env>", "")));
        check("<env>never closed", Some(("env", "<env>never closed", "")));
        check("<hook id=\"1\">x</hook> y", Some(("hook", "<hook id=\"1\">x</hook>", "y")));
        check("<hooks>x</hooks>", None);
        check("[[ask]]\n\nwhy [[ask]]?", Some(("marker", "[[ask]]", "why [[ask]]?")));
        check("Caveat: x </env> y", Some(("caveat", "Caveat: x </env> y", "")));
        assert_eq!(skip_machine_texts(TABLE, "<env>x</env>\n<hook>y</hook>\nfix it"), "fix it");
        assert_eq!(skip_machine_texts(TABLE, "<env>x</env>\nCaveat: y"), "");
    }

    #[test]
    fn an_end_that_is_only_mentioned_does_not_end_the_text() {
        let mentions = "<env>write </env> at the end</env>";
        check(&format!("{mentions}\ngo"), Some(("env", mentions, "go")));
        check("<env>a</env><env>b</env>", Some(("env", "<env>a</env>", "<env>b</env>")));
    }

    #[test]
    fn commands_with_words_for_the_model_are_no_client_commands() {
        let is_client = |typed| is_client_command(typed, &["/model"], &["/plan"]);
        assert!(is_client("/model opus") && is_client("/model") && is_client("/plan "));
        assert!(!is_client("/plan the move") && !is_client("/models") && !is_client("fix it"));
    }
}
