//! Reads the chats of Aider from `.aider.chat.history.md` in the folder of a project
//! (docs/formats.md#aider).
//!
//! ```text
//! # aider chat started at 2026-10-25 08:30:00
//!
//! > Aider v0.86.2
//! > Main model: gpt-5 with diff edit format
//!
//! #### Why does the test fail?
//!
//! Because the counter is copied.
//!
//! > Tokens: 2.1k sent, 84 received. Cost: $0.01 message, $0.01 session.
//! ```
//!
//! Lines of the program and of prompts end with two blanks. Each chat is a session and is assembled
//! into a document: `{"info":{...},"messages":[{"kind":"prompt","line":6,"text":"..."}, ...]}`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use schemas::{Confidence, EventType, Provider, Usage};
use serde_json::json;

use crate::provider::format::{
    AgentFolders, LogFormat, LogHead, LogReader, Quirks, RecordOutcome, RecordTally, SessionClaim,
};
use crate::provider::shared::database::document_text::document_bytes;
use crate::provider::shared::database::tables::{
    missing_session, session_path, split_session_path,
};
use crate::provider::shared::document::{ASSEMBLED, Document};
use crate::source::assembly::{AssembledSession, Assembly, SessionList};
use crate::source::bounded_file::read_bounded_file;
use crate::stream::{DecodedEvent, RecordAt, Stream, parse_micros};
use crate::text::json::{JsonFields, Value};
use crate::text::render;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Aider,
    has_unique_ids: false,
    decoder_version: 1,
    roots: log_roots,
    sniff: claim_log,
    quirks: Quirks { assemblies: &[ASSEMBLY], ..Quirks::NONE },
    reader: LogReader::Document(decode_log),
};

/// The name of a file of chats.
const HISTORY: &str = ".aider.chat.history.md";

/// Beginning of the first line of a chat; the local time follows.
const START: &str = "# aider chat started at ";

/// Value of `store` in the documents of these sessions.
const STORE: &str = "aider";

/// Commands that send the text after them to the model.
const PROMPT_COMMANDS: &[&str] = &["/architect", "/ask", "/code", "/context", "/help"];

/// Maximum size in bytes of a file of chats.
const MAX_HISTORY_BYTES: u64 = 64 << 20;

/// The end of a line that Aider wrote as the program, or as the prompt.
const LINE_END: &str = "  ";

const ASSEMBLY: Assembly = Assembly {
    name: "Aider history",
    source_suffix: HISTORY,
    is_source: Path::is_file,
    sessions: list_chats,
    assemble: assemble_chat,
    ..Assembly::NONE
};

/// Histories are in the folders of projects, which only the user knows, unless a variable names one.
fn log_roots(places: &AgentFolders<'_>) -> Vec<PathBuf> {
    places.env_path("AIDER_CHAT_HISTORY_FILE").into_iter().collect()
}

/// A chat in a file.
struct Chat<'a> {
    /// The time in its first line, and a number if an earlier chat of the file has the same.
    id: String,
    started_at: &'a str,
    /// The number of its first line, 1-based.
    line: usize,
    /// Its lines after the first one.
    text: &'a str,
}

/// Splits a file into its chats.
fn split_chats(history: &str) -> Vec<Chat<'_>> {
    let mut starts = Vec::new();
    let mut at = 0;
    for (line, text) in (1..).zip(history.split_inclusive('\n')) {
        if text.starts_with(START) {
            starts.push((at, line));
        }
        at += text.len();
    }

    let ends = starts.iter().skip(1).map(|(at, _)| *at).chain([history.len()]);
    let mut chats: Vec<Chat<'_>> = Vec::with_capacity(starts.len());
    for ((start, line), end) in starts.iter().zip(ends) {
        let whole = history.get(*start..end).unwrap_or_default();
        let (first, text) = whole.split_once('\n').unwrap_or((whole, ""));
        let started_at = first.strip_prefix(START).unwrap_or_default().trim();
        let mut id = format!("aider-{}", started_at.replace(['-', ':'], "").replace(' ', "-"));
        let same = chats.iter().filter(|chat| chat.started_at == started_at).count();
        if same > 0 {
            id.push_str(&format!("~{}", same + 1));
        }
        chats.push(Chat { id, started_at, line: *line, text });
    }
    chats
}

/// Reads a file of chats.
fn read_history(path: &Path) -> io::Result<String> {
    fs::metadata(path)?;
    let bytes = read_bounded_file(path, MAX_HISTORY_BYTES).ok_or_else(|| {
        let message = format!("it is not a file of at most {MAX_HISTORY_BYTES} bytes");
        io::Error::new(io::ErrorKind::FileTooLarge, message)
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Lists the chats in a file. A chat has changed if its length has.
fn list_chats(path: &Path) -> io::Result<SessionList> {
    let history = read_history(path)?;
    let listed = split_chats(&history).into_iter().map(|chat| AssembledSession {
        path: session_path(path, &chat.id),
        bytes: chat.text.len() as u64,
        updated_us: parse_start(chat.started_at).unwrap_or(0),
    });
    Ok(listed.collect::<Vec<_>>().into())
}

/// Assembles the document of the chat at a path.
fn assemble_chat(path: &Path) -> io::Result<Vec<u8>> {
    let (file, id) = split_session_path(path).ok_or_else(missing_session)?;
    let history = read_history(&file)?;
    let chats = split_chats(&history);
    let chat = chats.iter().find(|chat| chat.id == id).ok_or_else(missing_session)?;
    let info = json!({ "store": STORE, "id": id, "started_at": chat.started_at });
    let blocks = split_blocks(chat);
    let messages = blocks.iter().map(|Block { kind, line, text }| {
        json!({ "kind": kind.name(), "line": line, "text": text.trim() }).to_string()
    });
    Ok(document_bytes(&info.to_string(), &messages.collect::<Vec<_>>()))
}

/// Who wrote a block of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Prompt,
    Answer,
    Output,
}

impl BlockKind {
    fn name(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Answer => "answer",
            Self::Output => "output",
        }
    }

    /// Returns who wrote a line, and the line as it was shown. The end of a line decides, unless some
    /// other program has cut it off.
    fn of_line(line: &str, has_ends: bool) -> (Self, &str) {
        let written = if has_ends { line.strip_suffix(LINE_END) } else { Some(line) };
        let marked = |mark: &str| {
            let text = written?.strip_prefix(mark)?;
            if text.is_empty() { Some(text) } else { text.strip_prefix(' ') }
        };
        match (marked("####"), marked(">")) {
            (Some(text), _) => (Self::Prompt, text),
            (None, Some(text)) => (Self::Output, text),
            (None, None) => (Self::Answer, line),
        }
    }
}

/// Lines that follow each other and have one writer.
struct Block {
    kind: BlockKind,
    /// The number of the first line, 1-based.
    line: usize,
    text: String,
}

/// Splits a chat into blocks. A blank line ends a prompt and an output; answers may have some.
fn split_blocks(chat: &Chat<'_>) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_open = false;
    let has_ends = chat.text.lines().any(|line| line.starts_with('>') && line.ends_with(LINE_END));
    for (line, whole) in (chat.line + 1..).zip(chat.text.lines()) {
        let (kind, text) = BlockKind::of_line(whole, has_ends);
        let is_blank = kind == BlockKind::Answer && text.trim().is_empty();
        match blocks.last_mut().filter(|block| is_open && (block.kind == kind)) {
            Some(block) => {
                block.text.push('\n');
                block.text.push_str(text);
            }
            None if is_blank => is_open = false,
            None => {
                blocks.push(Block { kind, line, text: text.to_owned() });
                is_open = true;
            }
        }
    }
    blocks
}

/// Parses the start of a chat: a local time without its zone, read as UTC.
fn parse_start(text: &str) -> Option<i64> {
    parse_micros(Some(&format!("{}Z", text.replacen(' ', "T", 1))))
}

fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let id = head.stored_info(STORE)?["id"].as_str()?;
    Some(SessionClaim::new(Provider::Aider, id))
}

fn decode_log(bytes: &[u8], out: &mut Stream, tally: &mut RecordTally) {
    let chat = Document::read(bytes, &ASSEMBLED, out, tally);
    let mut start = None;
    chat.with_info(|info| start = info.text("started_at").and_then(parse_start));
    out.extend_time_range(start);
    let path = PathBuf::from(&out.session.source_path);
    out.set_cwd(path.parent().and_then(Path::to_str));
    chat.for_each_record(out, tally, &mut |block, raw, at, out| {
        out.begin_record_by_content(at, raw, start.take());
        decode_block(block, at, out)
    });
}

fn decode_block(block: Value<'_>, at: RecordAt, out: &mut Stream) -> RecordOutcome {
    let text = block.text("text").unwrap_or("");
    match block.text("kind") {
        Some("prompt") => push_prompt(text, out),
        Some("answer") => push_answer(text, out),
        _ => push_output(text, at, out),
    }
    RecordOutcome::Events
}

/// Pushes what the user typed: a prompt, or a command to the program.
fn push_prompt(text: &str, out: &mut Stream) {
    let command = text.split_whitespace().next().unwrap_or("");
    let has_prompt = PROMPT_COMMANDS.contains(&command) && text.len() > command.len();
    if text.starts_with(['/', '!']) && !has_prompt {
        out.push_notification("command", text);
    } else if text != "<blank>" {
        out.push_prompt(text);
    }
}

/// Pushes a response: its reasoning, if the file has it, and its text.
fn push_answer(text: &str, out: &mut Stream) {
    out.begin_step();
    let (reasoning, answer) = split_reasoning(text);
    for (kind, text) in [(EventType::Reasoning, reasoning), (EventType::Message, answer)] {
        let text = text.trim();
        if !text.is_empty() {
            out.push_text(kind, text);
        }
    }
}

/// Splits a response into its reasoning and the rest.
fn split_reasoning(text: &str) -> (&str, &str) {
    let split = || {
        let (tag, rest) = text.strip_prefix("<thinking-content-")?.split_once('>')?;
        rest.split_once(&format!("</thinking-content-{tag}>"))
    };
    split().unwrap_or(("", text))
}

/// Pushes what the program printed: edits that it made, the counts of the response before, and the
/// rest as a notification.
fn push_output(text: &str, at: RecordAt, out: &mut Stream) {
    let mut rest = String::new();
    let mut usage = Usage::default();
    let mut cost = None;
    let mut edits = 0;
    for line in text.lines().map(str::trim) {
        if let Some(path) = line.strip_prefix("Applied edit to ") {
            edits += 1;
            push_edit(path, line, &format!("{}-{edits}", at.line), out);
            continue;
        }
        if let Some(counts) = line.strip_prefix("Tokens: ") {
            usage = parse_counts(counts);
        }
        cost = parse_cost(line).or(cost);
        decode_setting(line, out);
        render::append_line(line, &mut rest);
    }
    if out.push_usage(usage, cost, None) {
        out.set_confidence(Confidence::Estimated);
    }
    if !rest.trim().is_empty() {
        out.push_shortened("output", &rest);
    }
}

/// Pushes an edit as a call with its result. The text of the edit is in the response.
fn push_edit(path: &str, result: &str, id: &str, out: &mut Stream) {
    let call = DecodedEvent {
        text: path,
        tool_name: Some("edit"),
        tool_call_id: Some(id),
        files: &[path.to_owned()],
        ..DecodedEvent::default()
    };
    out.push(EventType::ToolCall, call);
    out.push_result(Some(id), result, Some(false), None);
}

/// Reads the lines that the program prints when it starts and when the model changes.
fn decode_setting(line: &str, out: &mut Stream) {
    let model = line.strip_prefix("Main model: ").or_else(|| line.strip_prefix("Model: "));
    if let Some((model, _)) = model.and_then(|model| model.split_once(" with ")) {
        out.set_model(Some(model));
    }
    if let Some(version) = line.strip_prefix("Aider v") {
        out.set_version(Some(version));
    }
    if let Some(folder) = line.strip_prefix("Git working dir: ") {
        out.set_cwd(Some(folder));
    }
}

/// Parses rounded counts: `12k sent, 1.2k cache write, 3k cache hit, 345 received.` What was sent
/// includes the cache.
fn parse_counts(text: &str) -> Usage {
    let mut usage = Usage::default();
    let text = text.split(" received").next().unwrap_or(text);
    let mut sent = None;
    for part in text.split(", ") {
        let (number, what) = part.split_once(' ').unwrap_or((part, "received"));
        let count = parse_count(number);
        match what {
            "sent" => sent = count,
            "cache write" => usage.cache_write = count,
            "cache hit" => usage.cache_read = count,
            "received" => usage.output = count,
            _ => {}
        }
    }
    let cached = usage.cache_read.unwrap_or(0).saturating_add(usage.cache_write.unwrap_or(0));
    usage.input = sent.map(|sent| sent.saturating_sub(cached).max(0));
    usage
}

/// Parses a count such as `345`, `1.2k` or `12k`.
fn parse_count(text: &str) -> Option<i64> {
    let Some(thousands) = text.strip_suffix('k') else { return text.replace(',', "").parse().ok() };
    let (whole, tenth) = thousands.split_once('.').unwrap_or((thousands, "0"));
    let whole: i64 = whole.parse().ok()?;
    let tenth: i64 = tenth.parse().ok().filter(|tenth| (0..10).contains(tenth))?;
    whole.checked_mul(1000)?.checked_add(tenth * 100)
}

/// Parses the cost of a response: `Cost: $0.01 message, $0.06 session.`
fn parse_cost(line: &str) -> Option<f64> {
    let (_, costs) = line.split_once("Cost: $")?;
    let (cost, _) = costs.split_once(" message")?;
    cost.parse().ok().filter(|cost: &f64| cost.is_finite() && *cost >= 0.0)
}
