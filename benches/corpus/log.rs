//! Writes records as Claude Code does: prompts, answers with a line for each block, tool calls,
//! results with their structured twins, and the client's own notes.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use super::text::{CODE, Language, PROSE, Random, Shape, Writer};
use super::{Corpus, tools};

/// The earliest start of a session (2025-05-01), and the eighteen months in which sessions begin,
/// both in milliseconds.
const FIRST_START: u64 = 1_746_057_600_000;
const STARTS: usize = 548 * 86_400_000;

const PROJECTS: usize = 24;

/// The client versions of those months, and whether they record the progress of tools.
const VERSIONS: &[(&str, bool)] = &[
    ("2.0.14", false),
    ("2.0.76", false),
    ("2.1.19", true),
    ("2.1.42", true),
    ("2.1.77", true),
    ("2.1.112", false),
];

const MODELS: &[&str] = &[
    "claude-sonnet-4-5-20250929",
    "claude-opus-4-5-20251101",
    "claude-sonnet-4-6",
    "claude-opus-4-6",
];

/// Number of files that a session reads and edits repeatedly.
const FILES: usize = 12;

/// Longest text, in bytes.
const MOST_TEXT: u64 = 200_000;

/// A file that the session works on.
struct Source<'a> {
    path: &'a str,
    text: String,
    /// Where the lines start, and where the text ends.
    lines: Vec<usize>,
}

/// A log while it is written.
pub(super) struct Log<'a> {
    out: BufWriter<File>,
    bytes: u64,
    writer: Writer<'a>,
    /// The fields that are the same in every record.
    constant: String,
    model: &'static str,
    /// Time of the last record, in milliseconds since 1970.
    time: u64,
    /// The quoted uuid of the record before.
    parent: String,
    notes_progress: bool,
    files: Vec<Source<'a>>,
    /// The texts to plant, each with the first byte of the log at which it may be planted.
    plants: Vec<(u64, String)>,
    /// Number of tokens of the conversation up to now.
    context: u64,
}

impl<'a> Log<'a> {
    pub(super) fn create(
        dir: &Path,
        number: usize,
        language: &'a Language,
        random: Random,
    ) -> io::Result<Self> {
        let mut writer = Writer::new(language, random);
        let random = &mut writer.random;
        let id = Corpus::session_id(number);
        let project = random.below(PROJECTS).min(random.below(PROJECTS));
        let cwd = format!("/home/dev/work/project-{project:02}");
        let dir = dir.join(cwd.replace('/', "-"));
        std::fs::create_dir_all(&dir)?;
        let age = random.below(STARTS);
        let (version, notes_progress) = VERSIONS[age * VERSIONS.len() / STARTS];
        let model = random.pick(MODELS);
        let on_main = random.percent(40);
        let (slug, branch) = (writer.identifier(), writer.identifier());
        let branch = if on_main { "main" } else { branch };
        Ok(Self {
            out: BufWriter::new(File::create(dir.join(format!("{id}.jsonl")))?),
            bytes: 0,
            writer,
            constant: format!(
                r#""isSidechain":false,"userType":"external","cwd":"{cwd}","sessionId":"{id}","version":"{version}","gitBranch":"{branch}","slug":"{slug}""#
            ),
            model,
            time: FIRST_START + age as u64,
            parent: "null".to_owned(),
            notes_progress,
            files: Vec::new(),
            plants: Vec::new(),
            context: 16_000,
        })
    }

    /// Writes turns until the log has `size` bytes and all plants.
    pub(super) fn converse(&mut self, size: u64, plants: Vec<String>) -> io::Result<()> {
        let from = |text| (self.writer.random.next() % (size / 2), text);
        self.plants = plants.into_iter().map(from).collect();
        while self.bytes < size || !self.plants.is_empty() {
            let prompt = self.text(PROSE, 70, 11);
            self.prompt(&prompt)?;
            while self.bytes < size && self.writer.random.percent(88) {
                self.step()?;
            }
            let answer = self.text(PROSE, 330, 6);
            self.answer(&answer)?;
        }
        Ok(())
    }

    /// Writes a turn of two given texts.
    pub(super) fn exchange(&mut self, prompt: &str, answer: &str) -> io::Result<()> {
        self.prompt(prompt)?;
        self.answer(answer)
    }

    /// Finishes the log and returns its size in bytes. The file changes last at the time of the last
    /// record, as a real log does: a first ingest reads logs in this order.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        self.out.flush()?;
        let last_change = UNIX_EPOCH + Duration::from_millis(self.time);
        self.out.get_ref().set_modified(last_change)?;
        Ok(self.bytes)
    }

    /// Returns the text of one event. It contains a planted text if one is due.
    fn text(&mut self, shape: Shape, median: u64, quarters: u64) -> String {
        let due = self.plants.iter().position(|(from, _)| *from <= self.bytes);
        let plant = due.map(|at| self.plants.swap_remove(at).1);
        let bytes = self.writer.random.around(median, quarters).clamp(1, MOST_TEXT);
        self.writer.text(shape, bytes, plant)
    }

    fn prompt(&mut self, text: &str) -> io::Result<()> {
        self.time += self.writer.random.around(90_000, 8);
        self.snapshot()?;
        self.record(
            "user",
            &format!(
                r#""message":{{"role":"user","content":"{text}"}},"thinkingMetadata":{{"maxThinkingTokens":31999}},"todos":[],"permissionMode":"default""#
            ),
        )
    }

    /// Writes a response that calls tools, and their results.
    fn step(&mut self) -> io::Result<()> {
        let mut blocks = Vec::new();
        if self.writer.random.percent(40) {
            let text = self.text(PROSE, 130, 7);
            let signature = self.writer.random.letters(230 + text.len() * 3 / 2);
            blocks.push(format!(
                r#"{{"type":"thinking","thinking":"{text}","signature":"{signature}"}}"#
            ));
        }
        if self.writer.random.percent(44) {
            let text = self.text(PROSE, 50, 7);
            blocks.push(format!(r#"{{"type":"text","text":"{text}"}}"#));
        }
        let mut calls = Vec::new();
        for _ in 0..1 + usize::from(self.writer.random.percent(12)) {
            let id = format!("toolu_01{}", self.writer.random.letters(22));
            let (block, result, printed) = self.call(&id);
            blocks.push(block);
            calls.push((id, result, printed));
        }
        self.message(&blocks, r#""tool_use""#)?;
        for (id, result, printed) in calls {
            self.progress(&id, printed.as_deref())?;
            self.record("user", &result)?;
        }
        Ok(())
    }

    /// Writes the last response of a turn and the client's notes after it.
    fn answer(&mut self, text: &str) -> io::Result<()> {
        self.message(&[format!(r#"{{"type":"text","text":"{text}"}}"#)], r#""end_turn""#)?;
        if self.writer.random.percent(60) {
            self.record(
                "system",
                r#""subtype":"stop_hook_summary","hookCount":1,"hookInfos":[{"command":"./hooks/stop.sh"}],"hookErrors":[],"preventedContinuation":false,"stopReason":"","hasOutput":true,"level":"suggestion""#,
            )?;
        }
        if self.writer.random.percent(40) {
            let millis = self.writer.random.around(60_000, 6);
            self.record(
                "system",
                &format!(r#""subtype":"turn_duration","durationMs":{millis},"isMeta":false"#),
            )?;
        }
        Ok(())
    }

    /// Writes one response, with a line for each block. All lines repeat its usage. In some
    /// responses only the usage of the last line is final.
    fn message(&mut self, blocks: &[String], stop: &str) -> io::Result<()> {
        let random = &mut self.writer.random;
        let (id, request) = (random.letters(22), random.letters(20));
        let (fresh, output) = (random.around(700, 6), random.around(180, 6));
        let early = if random.percent(20) { 1 } else { output };
        let (cached, model) = (self.context, self.model);
        self.context = if cached > 160_000 { 20_000 } else { cached + fresh };
        for (at, block) in blocks.iter().enumerate() {
            let last = at + 1 == blocks.len();
            let (output, stop) = if last { (output, stop) } else { (early, "null") };
            self.record(
                "assistant",
                &format!(
                    r#""message":{{"model":"{model}","id":"msg_01{id}","type":"message","role":"assistant","content":[{block}],"stop_reason":{stop},"stop_sequence":null,"usage":{{"input_tokens":3,"cache_creation_input_tokens":{fresh},"cache_read_input_tokens":{cached},"cache_creation":{{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":{fresh}}},"output_tokens":{output},"service_tier":"standard"}}}},"requestId":"req_011C{request}""#
                ),
            )?;
        }
        Ok(())
    }

    /// Returns a tool's call as a block, its result as fields of a record, and the output of a
    /// command.
    fn call(&mut self, id: &str) -> (String, String, Option<String>) {
        let random = &mut self.writer.random;
        let tool = tools::draw(random);
        let shape = (!tool.shapes.is_empty()).then(|| random.pick(tool.shapes));
        let (median, quarters) = tool.bytes;
        let text = shape.map(|shape| self.text(shape, median, quarters)).unwrap_or_default();
        let file = self.file();
        let file = &self.files[file];
        let bytes = self.writer.random.around(median, quarters);
        let (part, numbered) = file.part(bytes, &mut self.writer.random);
        let given = [file.path, &text, part, &numbered, &file.text];
        let mut block =
            format!(r#"{{"type":"tool_use","id":"{id}","name":"{}","input":{{"#, tool.name);
        self.writer.fill(tool.input, &given, &mut block);
        block += "}}";
        let mut result = format!(
            r#""message":{{"role":"user","content":[{{"tool_use_id":"{id}","type":"tool_result","content":""#
        );
        self.writer.fill(tool.result, &given, &mut result);
        let failed = tool.twin.starts_with('"');
        result += if failed { r#"","is_error":true}]}"# } else { r#""}]}"# };
        result += r#","toolUseResult":"#;
        self.writer.fill(tool.twin, &given, &mut result);
        (block, result, (tool.name == "Bash").then_some(text))
    }

    /// Writes the client's notes while a tool runs, which only some versions make.
    fn progress(&mut self, id: &str, printed: Option<&str>) -> io::Result<()> {
        let random = &mut self.writer.random;
        let notes = if self.notes_progress { random.around(2, 5) } else { 0 };
        let templates = if printed.is_some() { tools::PRINTED } else { tools::PROGRESS };
        for _ in 0..notes {
            let random = &mut self.writer.random;
            let (template, bytes) = (random.pick(templates), random.around(700, 7) as usize);
            let output = printed.map_or("", |printed| lines_within(printed, bytes));
            let mut fields = format!(r#""parentToolUseID":"{id}","data":"#);
            self.writer.fill(template, &[output], &mut fields);
            self.record("progress", &fields)?;
        }
        Ok(())
    }

    /// Chooses a file to work on, mostly one that was used before.
    fn file(&mut self) -> usize {
        let known = self.files.len();
        if known == FILES || known > 0 && self.writer.random.percent(80) {
            return self.writer.random.below(known);
        }
        let bytes = self.writer.random.around(14_000, 5).clamp(500, 110_000);
        let text = self.writer.text(CODE, bytes, None);
        self.files.push(Source::new(self.writer.path(), text));
        known
    }

    /// Writes the record of the file versions that are kept. It is outside the chain, as all of its
    /// kind.
    fn snapshot(&mut self) -> io::Result<()> {
        let (id, time) = (self.writer.random.uuid(), date(self.time));
        let files = self.files.iter().take(5).map(|Source { path, .. }| {
            let name = self.writer.random.letters(16);
            format!(
                r#""{path}":{{"backupFileName":"{name}@v1","version":1,"backupTime":"{time}"}}"#
            )
        });
        let files = files.collect::<Vec<_>>().join(",");
        self.line(&format!(
            r#"{{"type":"file-history-snapshot","messageId":"{id}","snapshot":{{"messageId":"{id}","trackedFileBackups":{{{files}}},"timestamp":"{time}"}},"isSnapshotUpdate":false}}"#
        ))
    }

    /// Writes a record of the chain, in which each record names the one before.
    fn record(&mut self, kind: &str, fields: &str) -> io::Result<()> {
        self.time += self.writer.random.around(1500, 8);
        let uuid = format!(r#""{}""#, self.writer.random.uuid());
        let parent = std::mem::replace(&mut self.parent, uuid);
        let (constant, uuid, time) = (&self.constant, &self.parent, date(self.time));
        self.line(&format!(
            r#"{{"parentUuid":{parent},{constant},{fields},"type":"{kind}","uuid":{uuid},"timestamp":"{time}"}}"#
        ))
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        self.bytes += line.len() as u64 + 1;
        self.out.write_all(line.as_bytes())?;
        self.out.write_all(b"\n")
    }
}

impl<'a> Source<'a> {
    fn new(path: &'a str, text: String) -> Self {
        let breaks = text.match_indices(r"\n").map(|(at, found)| at + found.len());
        let lines = std::iter::once(0).chain(breaks).chain([text.len()]).collect();
        Self { path, text, lines }
    }

    /// Returns some lines of the file, about `bytes` of them, without and with their numbers.
    fn part(&self, bytes: u64, random: &mut Random) -> (&str, String) {
        let count = (self.lines.len() - 1).min(1 + bytes as usize / 32);
        let first = random.below(self.lines.len() - count);
        let lines = &self.lines[first..=first + count];
        let mut numbered = String::new();
        for (line, number) in lines.windows(2).zip(first + 1..) {
            numbered += &format!("{number:>6}→{}", &self.text[line[0]..line[1]]);
        }
        (&self.text[lines[0]..lines[count]], numbered)
    }
}

/// Returns the first lines of a text, at most about `bytes` of them.
fn lines_within(text: &str, bytes: usize) -> &str {
    let breaks = text.match_indices(r"\n").map(|(at, _)| at).chain([text.len()]);
    &text[..breaks.take_while(|at| *at <= bytes).last().unwrap_or(0)]
}

/// Formats a time as RFC 3339 in UTC. Days become dates by Howard Hinnant's `civil_from_days`.
pub(super) fn date(millis: u64) -> String {
    let (days, rest) = (millis / 86_400_000 + 719_468, millis % 86_400_000);
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let from_march = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * from_march + 2) / 5 + 1, (from_march + 2) % 12 + 1);
    let year = year + era * 400 + u64::from(month < 3);
    let (hour, minute, second) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", rest % 1000)
}
