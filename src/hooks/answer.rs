//! Decides what a hook says.

use std::collections::HashSet;
use std::path::Path;
use std::time::Instant;

use schemas::hook::HookName;
use schemas::tool::analyze::FixMatch;
use schemas::{EventType, Timestamp, ToolError};
use xxhash_rust::xxh3::xxh3_64;

use super::fence::{fence, quote, quote_lines};
use super::input::HookInput;
use super::past_question::{PastQuestion, find_past_question, is_time_word};
use super::project::{ProjectHistory, ProjectQuestion, describe_machine, find_project_history};
use super::recap::{describe_last_sessions, since_line};
use base::sanitize::clean_text;
use search::{FoundSession, SessionQuestion, SessionRequest, search_sessions};
use store::Snapshot;
use tools::{
    HistoryScope, KnownFix, LiveFailure, RecalledSession, find_failing_call, find_known_fix,
    read_events,
};

/// Maximum size in bytes of everything that is said in one session.
const MAX_SESSION_BYTES: usize = 8 << 10;

/// Minimum number of words of a question that the best session must have.
const MIN_FOUND_WORDS: usize = 2;

/// Minimum percentage of the words of a question that the best session must have.
const MIN_FOUND_PERCENT: usize = 60;

/// Maximum number of sessions that answer a question about the past.
const MAX_SESSIONS: usize = 2;

/// Maximum number of passages of a session, and their size in bytes.
const MAX_PASSAGES: usize = 2;
const MAX_PASSAGE_BYTES: usize = 260;

/// Size in bytes of the part of an event in which the words of a question must be.
const COUNTED_BYTES: usize = 600;

/// Bytes at the end of a word that may differ between its forms, and the bytes that may not.
const WORD_ENDING_BYTES: usize = 2;
const MIN_WORD_BYTES: usize = 4;

/// Maximum size in bytes of the changed lines of an edit.
const MAX_EDIT_BYTES: usize = 200;

/// Maximum number of edits of a fix that are shown.
const MAX_EDITS: usize = 2;

/// A prompt of fewer lines is not a pasted error.
const MIN_PASTED_LINES: usize = 2;

/// What was already said in the session that asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServedBefore {
    /// The ids and keys of [`HookAnswer`].
    pub ids: HashSet<String>,
    /// The bytes of all answers.
    pub bytes: usize,
}

/// What a hook says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookAnswer {
    /// The fenced text.
    pub text: String,
    /// The sessions and events that the text is from.
    pub ids: Vec<String>,
    /// A hash of what was recognized. Nothing is said twice about the same thing.
    pub key: String,
    /// Why something was said, in words of this program.
    pub reason: String,
}

/// The history from which hooks answer.
pub struct HookHistory<'a> {
    pub snapshot: &'a Snapshot,
    /// The user's home folder, which is not a project.
    pub home: &'a Path,
    /// Only events before this time count, in microseconds since the epoch.
    pub until: i64,
    /// The other machines whose sessions may be quoted.
    pub machines: &'a [String],
    /// Whether the user excludes a folder. Nothing is said there, and its sessions answer nowhere.
    pub is_excluded: &'a (dyn Fn(&str) -> bool + Sync),
    /// Lookups end at this time, and nothing is said.
    pub deadline: Instant,
}

impl HookHistory<'_> {
    /// Returns what to say to `input`; `None` to say nothing, which is also the answer if the store
    /// cannot be read.
    pub fn answer(&self, input: &HookInput, before: &ServedBefore) -> Option<HookAnswer> {
        if before.bytes >= MAX_SESSION_BYTES {
            return None;
        }
        let answer = match self.find_answer(input) {
            Ok(answer) => answer?,
            Err(error) => {
                tracing::warn!(%error, "a hook could not be answered");
                return None;
            }
        };
        let is_known =
            before.ids.contains(&answer.key) || answer.ids.iter().all(|id| before.ids.contains(id));
        if is_known || self.is_late() { None } else { Some(answer) }
    }

    /// Returns what the history of the project says to `input`.
    fn find_answer(&self, input: &HookInput) -> Result<Option<HookAnswer>, ToolError> {
        let question = ProjectQuestion {
            cwd: &input.cwd,
            home: self.home,
            current: input.session_id.as_deref(),
            until: self.until,
            machines: self.machines,
            is_excluded: self.is_excluded,
        };
        let history = find_project_history(self.snapshot, &question);
        if history.quoted.sessions.is_empty() {
            return Ok(None);
        }
        match input.hook {
            HookName::SessionStart => self.begin_session(input, &history.quoted),
            HookName::Prompt => self.answer_prompt(input, &history),
            HookName::PreTool => self.warn_of_call(input, &history.own),
            HookName::PostToolFailure => self.explain_failure(input, &history.own),
            HookName::PreCompact | HookName::SessionEnd => Ok(None),
        }
    }

    /// Returns true if the time for an answer is over.
    fn is_late(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// Says where the last sessions ended. A session that continues has its own history.
    fn begin_session(
        &self,
        input: &HookInput,
        scope: &HistoryScope,
    ) -> Result<Option<HookAnswer>, ToolError> {
        if input.source.as_deref().is_some_and(|source| matches!(source, "resume" | "compact")) {
            return Ok(None);
        }
        self.describe_end(input, scope, "a session began in this project")
    }

    fn describe_end(
        &self,
        input: &HookInput,
        scope: &HistoryScope,
        reason: &str,
    ) -> Result<Option<HookAnswer>, ToolError> {
        let recap = describe_last_sessions(self.snapshot, scope, &input.cwd, &|| self.is_late())?;
        Ok(recap.map(|recap| HookAnswer {
            text: fence(&format!(
                "Where the last sessions in this project ended:\n{}get_session_details(session_id) shows one, get_event_details(event_ids=[..]) a full text.",
                recap.text
            )),
            ids: recap.ids,
            key: "recap".to_owned(),
            reason: reason.to_owned(),
        }))
    }

    /// Answers a question about the past, and a pasted error.
    fn answer_prompt(
        &self,
        input: &HookInput,
        history: &ProjectHistory,
    ) -> Result<Option<HookAnswer>, ToolError> {
        let Some(prompt) = input.prompt.as_deref() else { return Ok(None) };
        match find_past_question(prompt) {
            Some(PastQuestion::WhereWeStopped) => {
                let reason = "the prompt asks where the last session ended";
                self.describe_end(input, &history.quoted, reason)
            }
            Some(PastQuestion::About(sentence)) => self.answer_question(&sentence, &history.quoted),
            None if prompt.trim().lines().count() >= MIN_PASTED_LINES => {
                let failure = LiveFailure {
                    tool: None,
                    command: None,
                    folder: input.cwd.to_str(),
                    output: prompt,
                    is_certain: true,
                };
                let stop = || self.is_late();
                let fix = find_known_fix(self.snapshot, &history.own, &failure, &stop)?;
                Ok(fix.map(|fix| {
                    self.describe_fix(
                        &fix,
                        "The error in this prompt was fixed before",
                        "the prompt contains an error that was fixed before",
                    )
                }))
            }
            None => Ok(None),
        }
    }

    /// Answers a question with the best sessions, if one event of each has most of its words.
    fn answer_question(
        &self,
        sentence: &str,
        scope: &HistoryScope,
    ) -> Result<Option<HookAnswer>, ToolError> {
        let question = SessionQuestion::parse(sentence);
        let mut words = question.words();
        words.retain(|word| !is_time_word(word));
        if words.len() < MIN_FOUND_WORDS {
            return Ok(None);
        }
        let request = SessionRequest {
            question: &question,
            sessions: Some(scope.sessions.clone()),
            limit: MAX_SESSIONS,
            after: None,
            until: Some(self.until),
            continues_passages: false,
            deadline: self.deadline,
        };
        let Ok(found) = search_sessions(self.snapshot, &request, &|| self.is_late()) else {
            return Ok(None);
        };
        let mut text = String::new();
        let mut ids = Vec::new();
        for session in &found.sessions {
            let passages = self.read_passages(session, &words)?;
            let covered = passages.iter().map(|passage| passage.words).max().unwrap_or(0);
            if covered < MIN_FOUND_WORDS || covered * 100 < words.len() * MIN_FOUND_PERCENT {
                continue;
            }
            let row = &self.snapshot.sessions()[session.session];
            let title = quote(row.title.as_deref().unwrap_or_default(), 80);
            let day = day_of(row.ended_at.map(|ended| ended.min(self.until)));
            text.push_str(&format!(
                "- session {} ({}, {day}{}, title {title})\n",
                row.session_id,
                row.provider,
                describe_machine(row.origin.machine.as_deref())
            ));
            ids.push(row.session_id.clone());
            let mut recalled = RecalledSession { session: session.session, passages: Vec::new() };
            for passage in passages.iter().take(MAX_PASSAGES) {
                text.push_str(&format!(
                    "  [{}]: {}\n",
                    passage.id,
                    quote(&passage.text, MAX_PASSAGE_BYTES)
                ));
                ids.push(passage.id.clone());
                recalled.passages.push((passage.event_index, &passage.text));
            }
            text.push_str(&since_line(self.snapshot, recalled, scope)?);
        }
        if ids.is_empty() {
            return Ok(None);
        }
        Ok(Some(HookAnswer {
            text: fence(&format!(
                "What this project's history says about the question:\n{text}\
                 search_sessions(query) finds more, \
                 get_event_details(event_ids=[..]) shows the full text."
            )),
            ids,
            key: hash_key(sentence),
            reason: "the prompt asks about the past, and one passage has most of its words"
                .to_owned(),
        }))
    }

    /// Reads the events in which a session was found, those with the most words of the question
    /// first.
    fn read_passages(
        &self,
        session: &FoundSession,
        words: &[String],
    ) -> Result<Vec<QuotedPassage>, ToolError> {
        let row = &self.snapshot.sessions()[session.session];
        let mut passages = Vec::new();
        for passage in &session.passages {
            let index = passage.event_index;
            let Some(event) =
                read_events(self.snapshot, session.session, index, index + 1)?.into_iter().next()
            else {
                continue;
            };
            // Commands of other machines are not repeated.
            if row.origin.machine.is_some() && event.event_type == EventType::ToolCall {
                continue;
            }
            let text = clean_text(&event.text);
            passages.push(QuotedPassage {
                id: schemas::EventId::format(&row.session_id, index),
                event_index: index,
                words: count_words(cut_around(&text, &passage.text, COUNTED_BYTES), words),
                text: cut_around(&text, &passage.text, MAX_PASSAGE_BYTES).to_owned(),
            });
        }
        passages.sort_by_key(|passage| std::cmp::Reverse(passage.words));
        Ok(passages)
    }

    /// Says what worked instead of a command that always failed.
    fn warn_of_call(
        &self,
        input: &HookInput,
        scope: &HistoryScope,
    ) -> Result<Option<HookAnswer>, ToolError> {
        let Some(command) = input.command.as_deref() else { return Ok(None) };
        let stop = || self.is_late();
        let fix = find_failing_call(self.snapshot, scope, command, input.cwd.to_str(), &stop)?;
        Ok(fix.map(|fix| {
            self.describe_fix(
                &fix,
                "This command failed every time it ran in earlier sessions of this project",
                "the same command failed before, and another one worked",
            )
        }))
    }

    /// Says how the same failure was fixed before.
    fn explain_failure(
        &self,
        input: &HookInput,
        scope: &HistoryScope,
    ) -> Result<Option<HookAnswer>, ToolError> {
        let Some(failed) = &input.failure else { return Ok(None) };
        let failure = LiveFailure {
            tool: input.tool.as_deref(),
            command: input.command.as_deref(),
            folder: input.cwd.to_str(),
            output: &failed.output,
            is_certain: failed.is_certain,
        };
        let fix = find_known_fix(self.snapshot, scope, &failure, &|| self.is_late())?;
        Ok(fix.map(|fix| {
            self.describe_fix(
                &fix,
                "The same error was fixed before in this project",
                "the same error was fixed before",
            )
        }))
    }

    /// Describes a fix.
    fn describe_fix(&self, fix: &KnownFix, headline: &str, reason: &str) -> HookAnswer {
        let row = &self.snapshot.sessions()[fix.session];
        let mut text = format!(
            "{headline} (session {}, {}, {}):\nerror: {}\nfailed [{}]: {}\n",
            row.session_id,
            row.provider,
            day_of(Some(fix.time)),
            quote(&fix.error_line, 240),
            fix.failed_id,
            quote(&fix.failed_call, 240),
        );
        let when = match fix.calls_between {
            0 => "right afterwards".to_owned(),
            1 => "after 1 other call".to_owned(),
            calls => format!("after {calls} other calls"),
        };
        let worked = match fix.matched {
            FixMatch::SameCall => "the same command".to_owned(),
            FixMatch::SimilarCommand | FixMatch::SameFile | FixMatch::SameTool => {
                quote(&fix.worked_call, 300)
            }
        };
        text.push_str(&format!("worked [{}] {when}: {worked}\n", fix.worked_id));
        if fix.matched == FixMatch::SameCall {
            for command in &fix.between {
                text.push_str(&format!("ran in between: {}\n", quote(command, 200)));
            }
            for edit in fix.edits.iter().rev().take(MAX_EDITS) {
                let files: Vec<String> = edit.files.iter().map(|file| quote(file, 120)).collect();
                text.push_str(&format!(
                    "edited in between [{}]: {}\n",
                    edit.event_id,
                    files.join(", ")
                ));
                text.push_str(&quote_lines(
                    edit.diff.as_deref().unwrap_or_default(),
                    MAX_EDIT_BYTES,
                ));
            }
        }
        text.push_str("get_event_details(event_ids=[..]) shows the full texts.");
        HookAnswer {
            text: fence(&text),
            ids: vec![fix.failed_id.clone(), fix.worked_id.clone()],
            key: hash_key(&fix.error_line),
            reason: reason.to_owned(),
        }
    }
}

/// A part of an event that is quoted.
struct QuotedPassage {
    id: String,
    event_index: u32,
    text: String,
    /// Words of the question that are in it or near it.
    words: usize,
}

/// Returns the number of words that a text has, in any form that begins alike.
fn count_words(text: &str, words: &[String]) -> usize {
    let text = text.to_lowercase();
    let is_in_text = |word: &&String| {
        let word = word.to_lowercase();
        let end = word.len().saturating_sub(WORD_ENDING_BYTES).max(MIN_WORD_BYTES).min(word.len());
        text.contains(&word[..word.floor_char_boundary(end)])
    };
    words.iter().filter(is_in_text).count()
}

/// Returns about `bytes` bytes of a text around one of its passages.
fn cut_around<'t>(text: &'t str, passage: &str, bytes: usize) -> &'t str {
    let at = text.find(passage.trim_matches('…').trim()).unwrap_or(0);
    let start = text.floor_char_boundary(at.saturating_sub(bytes / 4));
    let end = text.floor_char_boundary(start + bytes);
    &text[start..end]
}

/// Returns the day of a time, in UTC.
fn day_of(micros: Option<i64>) -> String {
    micros
        .map(|micros| Timestamp(micros).to_string().chars().take(10).collect())
        .unwrap_or_default()
}

/// Returns a hash by which a thing is remembered without its text.
fn hash_key(text: &str) -> String {
    format!("{:016x}", xxh3_64(text.as_bytes()))
}
