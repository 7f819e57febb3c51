//! Describes events for readers: a call or a notice in one line, and an edit as a diff. Screens,
//! transcripts, reports and the page show these instead of arguments and records.

use schemas::tool::event::{EditDiff, Event};
use schemas::{EventType, ToolKind};

use super::change::{Edit, LineCounts, PATCH_START};
use base::paths::path_below;

/// Maximum number of characters of a line.
const MAX_LINE_CHARS: usize = 120;

/// Maximum number of characters of a line of a diff that is cut.
const MAX_DIFF_LINE_CHARS: usize = 2_000;

/// Returns a call, a result without a call, or a notice in one line; `None` for other events.
/// `folder` is that of the session: paths below it are relative.
pub(super) fn describe_event(event: &Event, folder: Option<&str>) -> Option<String> {
    let line = match event.event_type {
        EventType::ToolCall | EventType::ToolResult => describe_call(event, folder),
        EventType::Notification => describe_notice(event),
        EventType::User | EventType::Message | EventType::Reasoning | EventType::TokenUsage => {
            return None;
        }
    };
    Some(match line.char_indices().nth(MAX_LINE_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    })
}

/// Returns the command of a call, its file, what it looks for or asks, or the beginning of its
/// arguments. A command stays as it ran: what its paths mean depends on where it changed to.
fn describe_call(call: &Event, folder: Option<&str>) -> String {
    if let Some(command) = &call.command {
        return first_line(command).to_owned();
    }
    let below = |path: &String| {
        let below = folder.and_then(|folder| path_below(folder, path));
        below.unwrap_or_else(|| path.clone())
    };
    let text = call.text.as_deref().unwrap_or_default();
    let keys: &[&str] = match call.tool_kind {
        Some(ToolKind::Search) => &["pattern", "query", "glob"],
        Some(ToolKind::Web) => &["url", "query"],
        Some(ToolKind::Agent) => &["description", "subject", "prompt", "message", "task"],
        Some(ToolKind::Plan) => &["subject", "explanation", "status"],
        Some(
            ToolKind::Read
            | ToolKind::Edit
            | ToolKind::Write
            | ToolKind::Execute
            | ToolKind::Mcp
            | ToolKind::Other,
        )
        | None => &["question"],
    };
    let wanted = argument(text, keys).map(str::to_owned);
    let place = call.files.first().map(below);
    match (wanted, place, call.files.len()) {
        (Some(wanted), Some(place), _) => format!("{wanted} in {place}"),
        (Some(wanted), None, _) => wanted,
        (None, Some(place), 1) => place,
        (None, Some(place), files) => format!("{place} and {} more", files - 1),
        (None, None, _) => {
            let line = first_line(text);
            fact_of(line).map_or(line, |(_, value)| value).to_owned()
        }
    }
}

fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

/// Splits a line such as `key: value`.
fn fact_of(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.trim().trim_start_matches("- ").split_once(": ")?;
    let is_key = key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    is_key.then(|| (key, value.trim()))
}

/// Returns the value of the first of these keys that a text has, one `key: value` a line.
fn argument<'t>(text: &'t str, keys: &[&str]) -> Option<&'t str> {
    keys.iter().find_map(|key| {
        let mut facts = text.lines().filter_map(fact_of);
        facts.find(|(name, value)| name == key && !value.is_empty()).map(|(_, value)| value)
    })
}

/// How notices are worded whose kind has one of the names.
struct NoticeWording {
    /// Parts of the kind, with spaces between its words.
    names: &'static [&'static str],
    words: &'static str,
    /// The keys of the fact that follows the words. [`PROSE`] is a text that has no keys.
    facts: &'static [&'static str],
}

/// The words of a compaction, which the sizes of the context follow.
const COMPACTED: &str = "Context compacted";

/// The first line of a text, if it is a sentence and neither `key: value` nor markup.
const PROSE: &str = "";

/// The wordings, of which the first that fits is taken. A notice that fits none is named by its kind.
const WORDINGS: &[NoticeWording] = &[
    NoticeWording {
        names: &["compact summary", "compaction state"],
        words: "Summary of the compacted context",
        facts: &[],
    },
    NoticeWording {
        names: &["compaction start", "compaction begin", "compaction.begin"],
        words: "Compaction started",
        facts: &[],
    },
    NoticeWording { names: &["compact", "compression"], words: COMPACTED, facts: &[] },
    NoticeWording { names: &["title", "session info"], words: "Title", facts: &[PROSE] },
    NoticeWording { names: &["queue"], words: "Queued prompts", facts: &["operation"] },
    NoticeWording {
        names: &["model"],
        words: "Model",
        facts: &["newModel", "modelAlias", "modelId", "model", PROSE],
    },
    NoticeWording {
        names: &["mode"],
        words: "Mode",
        facts: &["newMode", "permissionMode", "mode", PROSE],
    },
    NoticeWording { names: &["thinking"], words: "Thinking", facts: &["level", PROSE] },
    NoticeWording {
        names: &["memory", "guidance", "agents md", "instructions"],
        words: "Instructions read",
        facts: &["path", "uri", PROSE],
    },
    NoticeWording { names: &["file history"], words: "Files saved for undo", facts: &[] },
    NoticeWording { names: &["hook"], words: "Hook", facts: &["hookName", "hookType"] },
    NoticeWording { names: &["turn duration"], words: "Turn ended", facts: &[] },
    NoticeWording { names: &["last prompt"], words: "Prompt saved", facts: &[] },
    NoticeWording { names: &["interrupted", "abort", "cancel"], words: "Interrupted", facts: &[] },
    NoticeWording { names: &["error"], words: "Error", facts: &["message", PROSE] },
    NoticeWording {
        names: &["environment", "context", "user info", "user state", "session meta"],
        words: "Context for the agent",
        facts: &[],
    },
    NoticeWording {
        names: &["system prompt", "developer", "reminder"],
        words: "Instructions to the agent",
        facts: &[PROSE],
    },
    NoticeWording { names: &["meta"], words: "Note to the agent", facts: &[PROSE] },
];

/// The beginning of the text by which Claude Code gives the agent a skill. Its folder follows.
const SKILL_START: &str = "Base directory for this skill: ";

/// The facts that say how large the context was before a compaction, and after it.
const TOKENS_BEFORE: &[&str] =
    &["preTokens", "preCompactionTokens", "originalTokenCount", "tokensBefore"];
const TOKENS_AFTER: &[&str] = &["postTokens", "newTokenCount"];

/// Returns a notice in one line of words, without ids.
fn describe_notice(notice: &Event) -> String {
    let kind = notice.subtype.as_deref().unwrap_or("notice").replace(['_', '-'], " ");
    let text = notice.text.as_deref().unwrap_or_default();
    let names = kind.to_lowercase();
    if let Some(folder) = first_line(text).strip_prefix(SKILL_START) {
        return format!("Skill read: {folder}");
    }
    let fits = |wording: &&NoticeWording| wording.names.iter().any(|name| names.contains(name));
    let Some(wording) = WORDINGS.iter().find(fits) else {
        let kind = kind.replace('.', " ");
        let mut letters = kind.chars();
        let first = letters.next().map(|first| first.to_uppercase().to_string());
        return join_fact(
            &format!("{}{}", first.unwrap_or_default(), letters.as_str()),
            prose(text),
        );
    };
    if wording.words == COMPACTED {
        let tokens = |keys| argument(text, keys)?.parse::<u64>().ok();
        return match (tokens(TOKENS_BEFORE), tokens(TOKENS_AFTER)) {
            (Some(before), Some(after)) => {
                format!("{COMPACTED} from {} to {} tokens", thousands(before), thousands(after))
            }
            (Some(before), None) => format!("{COMPACTED} at {} tokens", thousands(before)),
            (None, _) => COMPACTED.to_owned(),
        };
    }
    let fact = wording.facts.iter().find_map(|key| match *key {
        PROSE => prose(text),
        key => argument(text, &[key]),
    });
    join_fact(wording.words, fact)
}

fn join_fact(words: &str, fact: Option<&str>) -> String {
    fact.map_or_else(|| words.to_owned(), |fact| format!("{words}: {fact}"))
}

/// Returns the first line of a text, if it is a sentence and neither `key: value` nor markup.
fn prose(text: &str) -> Option<&str> {
    let line = first_line(text);
    let is_prose = !line.is_empty() && fact_of(line).is_none() && !line.ends_with(':');
    (is_prose && !line.starts_with(['<', '{', '['])).then_some(line)
}

/// Formats a count of tokens: `26k`.
fn thousands(tokens: u64) -> String {
    if tokens < 1_000 { tokens.to_string() } else { format!("{}k", (tokens + 500) / 1_000) }
}

/// Returns the change of a call that edits or writes files; `None` for other calls and unknown forms.
/// The counts are those of the result, which knows how often a text was replaced, if it says them.
pub fn read_diff(call: &Event, result: Option<&str>) -> Option<EditDiff> {
    if call.event_type != EventType::ToolCall {
        return None;
    }
    let text = call.text.as_deref()?;
    let lines: Vec<String> = match text.split_once(PATCH_START) {
        Some((_, patch)) => {
            let lines = patch.lines().skip(1).take_while(|line| *line != "*** End Patch");
            lines.map(str::to_owned).collect()
        }
        None if matches!(call.tool_kind, Some(ToolKind::Edit | ToolKind::Write)) => {
            Edit::parse(text)?.unified_lines()
        }
        None => return None,
    };
    let count = |sign| lines.iter().filter(|line| line.starts_with(sign)).count();
    let counted = LineCounts { added: count('+'), removed: count('-') };
    if counted == (LineCounts { added: 0, removed: 0 }) {
        return None;
    }
    let LineCounts { added, removed } = result.and_then(LineCounts::of_result).unwrap_or(counted);
    // A file that is written as a whole is read better as it is.
    let is_write = call.tool_kind == Some(ToolKind::Write) && !text.contains(PATCH_START);
    let text = if is_write { String::new() } else { lines.join("\n") };
    Some(EditDiff { added, removed, text })
}

/// Keeps the first lines of a diff, and the beginning of long ones.
pub fn cut_diff(diff: &mut EditDiff, max_lines: usize) {
    let cut = |line: &str| line.chars().take(MAX_DIFF_LINE_CHARS).collect::<String>();
    let mut shown: Vec<String> = diff.text.lines().take(max_lines).map(cut).collect();
    let left = diff.text.lines().count() - shown.len();
    if left > 0 {
        shown.push(format!("@@ {left} more lines"));
    }
    diff.text = shown.join("\n");
}

#[cfg(test)]
mod tests {
    use schemas::Provider;
    use schemas::session::{EventRow, SessionRow};

    use super::*;
    use crate::reply::convert::convert_event;

    fn event(event_type: EventType, kind: &str, text: &str) -> Event {
        let is_call = event_type == EventType::ToolCall;
        let row = EventRow {
            event_type,
            subtype: (!is_call).then(|| kind.to_owned()),
            tool_kind: is_call.then(|| kind.to_owned()),
            provider: Provider::Claude,
            ..EventRow::default()
        };
        let session = SessionRow::default();
        Event { text: Some(text.to_owned()), ..convert_event(&row, &session) }
    }

    #[test]
    fn notices_are_words() {
        for (kind, text, line) in [
            (
                "compact_boundary",
                "Conversation compacted\ntrigger: manual\npreTokens: 25630\nuuids: 1, 2",
                "Context compacted at 26k tokens",
            ),
            (
                "chat_compression",
                "originalTokenCount: 16230\nnewTokenCount: 2104",
                "Context compacted from 16k to 2k tokens",
            ),
            ("compacted", "", "Context compacted"),
            ("custom-title", "Share one counter", "Title: Share one counter"),
            ("queue-operation", "operation: enqueue\ncontent: x", "Queued prompts: enqueue"),
            ("permission-mode", "permissionMode: acceptEdits", "Mode: acceptEdits"),
            ("session.mode_changed", "previousMode: a\nnewMode: plan", "Mode: plan"),
            ("model_change", "openai/gpt-5.5", "Model: openai/gpt-5.5"),
            (
                "nested_memory",
                "path: /home/mira/CLAUDE.md",
                "Instructions read: /home/mira/CLAUDE.md",
            ),
            ("api_error", "Overloaded", "Error: Overloaded"),
            ("turn_aborted", "turn_id: 01a1\nreason: interrupted", "Interrupted"),
            ("environment_context", "<environment_context>", "Context for the agent"),
            ("meta", "Caveat: the messages below are of commands.", "Note to the agent"),
            ("meta", "Read the plan.", "Note to the agent: Read the plan."),
            (
                "meta",
                "Base directory for this skill: /home/mira/skills/moor\n\n# Moor",
                "Skill read: /home/mira/skills/moor",
            ),
            ("quantum-checkpoint", "phase:\n  - 0.5", "Quantum checkpoint"),
            ("session.resume", "resumeTime: 2026-10-20", "Session resume"),
        ] {
            let notice = event(EventType::Notification, kind, text);
            assert_eq!(describe_event(&notice, None).as_deref(), Some(line), "{kind}");
        }
    }

    #[test]
    fn calls_are_described_by_what_they_do() {
        let question = "questions:\n  - question: Which budget?\n    header: Budget";
        for (kind, text, line) in [
            ("other", question, "Which budget?"),
            ("search", "pattern: fn main\npath: src", "fn main"),
            ("agent", "prompt: long\ndescription: Find callers", "Find callers"),
            ("other", "limit: 5\nid: x", "5"),
        ] {
            let call = event(EventType::ToolCall, kind, text);
            assert_eq!(describe_event(&call, None).as_deref(), Some(line), "{text}");
        }
        let mut read = event(EventType::ToolCall, "read", "file_path: /home/mira/pier/src/a.rs");
        read.files = vec!["/home/mira/pier/src/a.rs".to_owned()];
        assert_eq!(describe_event(&read, Some("/home/mira/pier")).as_deref(), Some("src/a.rs"));
        read.files.push("/home/mira/pier/b.rs".to_owned());
        assert_eq!(
            describe_event(&read, Some("/home/mira/pier")).as_deref(),
            Some("src/a.rs and 1 more")
        );
    }

    #[test]
    fn edits_are_diffs_with_the_counts_of_their_results() {
        let text = "file_path: a\nold_string: a\nb\nc\nnew_string: a\nx\nc";
        let edit = event(EventType::ToolCall, "edit", text);
        let diff =
            |added, removed, text: &str| Some(EditDiff { added, removed, text: text.to_owned() });
        assert_eq!(read_diff(&edit, None), diff(1, 1, " a\n-b\n+x\n c"));
        let result = "All occurrences were replaced.\n(3 lines added, 3 removed)";
        assert_eq!(read_diff(&edit, Some(result)), diff(3, 3, " a\n-b\n+x\n c"));
        let patch = "input: *** Begin Patch\n*** Update File: a.rs\n@@ fn a\n same\n-old\n+new\n*** End Patch\nrest";
        let patch = event(EventType::ToolCall, "execute", patch);
        let lines = "*** Update File: a.rs\n@@ fn a\n same\n-old\n+new";
        assert_eq!(read_diff(&patch, None), diff(1, 1, lines));
        assert_eq!(read_diff(&event(EventType::ToolCall, "read", text), None), None);
    }
}
