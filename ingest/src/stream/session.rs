//! Facts about a session as a whole: title, directory, branch, model, confidence, abandoned
//! branches. Secrets in them are masked before they are kept.

use std::borrow::Cow;

use schemas::session::SessionRow;
use schemas::{Confidence, EventType, Usage};

use super::decoded_event::DecodedEvent;
use super::events::Stream;
use super::found_secrets::{FoundSecret, note_found_secrets};
use super::ledger::UnknownItem;
use super::log_folder::find_log_folder;
use super::repository::{self, Repository};
use crate::redact::{MaskedColumns, mask_text};
use crate::text::names::truncate_name;
use crate::text::render::{self, shorten_notification};
use crate::text::sanitize::clean;

/// Maximum number of characters of a title; longer titles are cut.
const MAX_TITLE_CHARS: usize = 120;

/// Maximum number of responses without token counts that are remembered. Further ones change
/// nothing: counts are missing.
const MAX_UNCOUNTED_STEPS: usize = 1024;

/// Maximum number of unknown fields of one record that are searched for token counts.
const MAX_UNKNOWN_ITEMS: usize = 32;

/// Maximum number of names unknown to a decoder whose masked form is remembered.
const MAX_MASKED_NAMES: usize = 256;

/// The source of a title. A higher source wins; among equal sources the later title wins, except
/// that the first prompt stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TitleFrom {
    /// A prompt of another session, from copied history.
    Copy = 1,
    /// A prompt of this session.
    Prompt = 2,
    /// A summary of the session in the log.
    Summary = 3,
    /// A title that the agent gave the session.
    Agent = 4,
    /// A title that the user gave the session.
    User = 5,
}

impl Stream {
    /// Adds a real prompt, which begins a turn and may name the session.
    pub fn push_prompt(&mut self, text: &str) {
        self.begin_turn();
        self.offer_title(TitleFrom::Prompt, text);
        self.push(EventType::User, DecodedEvent { text, ..DecodedEvent::default() });
    }

    /// Adds an event that is nothing but a text to the present step.
    pub fn push_text(&mut self, kind: EventType, text: &str) {
        self.push(kind, DecodedEvent { text, ..DecodedEvent::default() });
    }

    /// Adds an event that is nothing but a text to a given step.
    pub fn push_text_in_step(&mut self, kind: EventType, step: i32, text: &str) {
        self.push_in_step(kind, step, DecodedEvent { text, ..DecodedEvent::default() });
    }

    /// Adds a notification that is nothing but a text of this kind.
    pub fn push_notification(&mut self, subtype: &str, text: &str) {
        self.push_notice(subtype, text, None);
    }

    /// Adds a notification that is nothing but a text of this kind, cut to the length of notifications.
    pub fn push_shortened(&mut self, subtype: &str, text: &str) {
        self.push_notification(subtype, &shorten_notification(text));
    }

    /// Adds a notification that may report an error. `is_error` is `None` if the log does not say.
    pub fn push_notice(&mut self, subtype: &str, text: &str, is_error: Option<bool>) {
        let subtype = Some(subtype);
        let decoded = DecodedEvent { subtype, text, is_error, ..DecodedEvent::default() };
        self.push(EventType::Notification, decoded);
    }

    /// Adds the result of the call with this id. `is_error` and `exit_code` are `None` if the log does
    /// not say.
    pub fn push_result(
        &mut self,
        tool_call_id: Option<&str>,
        text: &str,
        is_error: Option<bool>,
        exit_code: Option<i32>,
    ) {
        let decoded =
            DecodedEvent { text, tool_call_id, is_error, exit_code, ..DecodedEvent::default() };
        self.push(EventType::ToolResult, decoded);
    }

    /// Adds the tokens of a request, unless there are none. Returns whether there are.
    pub fn push_usage(
        &mut self,
        usage: Usage,
        cost: Option<f64>,
        request_id: Option<&str>,
    ) -> bool {
        let has_tokens = usage.total() > 0;
        if has_tokens {
            let decoded = DecodedEvent { usage, cost, request_id, ..DecodedEvent::default() };
            self.push(EventType::TokenUsage, decoded);
        }
        has_tokens
    }

    /// Adds token counts of this kind, which are not those of one request as the log reports it.
    pub fn push_counts(&mut self, subtype: &str, usage: Usage, cost: Option<f64>) {
        let subtype = Some(subtype);
        let decoded = DecodedEvent { subtype, usage, cost, ..DecodedEvent::default() };
        self.push(EventType::TokenUsage, decoded);
    }

    /// Offers a title. Prompts of copied history name the session only while it has no title of its
    /// own. Forgotten records offer none, and the title of a forgotten session is not taken.
    pub fn offer_title(&mut self, offered_by: TitleFrom, text: &str) {
        if self.is_forgotten {
            return;
        }
        let is_copy = offered_by == TitleFrom::Prompt && self.is_replay;
        let source = if is_copy { TitleFrom::Copy } else { offered_by };
        let rank = source as u8;
        let has_first_prompt = source <= TitleFrom::Prompt && self.state.title_rank >= rank;
        if rank < self.state.title_rank || has_first_prompt {
            return;
        }

        let text = clean(text);
        let (text, found) = mask_text(self.redactor.as_deref(), &text);
        let title = cut_title(if source <= TitleFrom::Prompt { skip_lead(&text) } else { &text });
        if title.is_empty() || self.forgotten.has_title(&title) {
            return;
        }

        self.state.title_rank = rank;
        self.state.title_at = self.state.next_index;
        if self.session.title.as_ref() != Some(&title) {
            self.secrets.note_column_secrets(found);
            self.session.title = Some(title);
        }
    }

    /// Sets the working directory, and the project named after it. It is the first directory that a
    /// folder of the log is named after, or in which that directory is; without one it is the
    /// first of all. It stays even if the agent changes directory later.
    pub fn set_cwd(&mut self, cwd: Option<&str>) {
        let Some(cwd) = cwd else { return };
        if cwd.is_empty() || self.is_forgotten || self.other_cwd.as_deref() == Some(cwd) {
            return;
        }
        if let Some(known) = &self.session.cwd {
            if self.is_cwd_settled {
                return;
            }
            // A log that is read on.
            if find_log_folder(known, &self.session.source_path) == Some(known) {
                self.is_cwd_settled = true;
                return;
            }
        }

        let folder = find_log_folder(cwd, &self.session.source_path);
        self.is_cwd_settled = folder.is_some();
        if folder.is_none() {
            self.other_cwd = Some(cwd.to_owned());
            if self.session.cwd.is_some() {
                return;
            }
        }

        let cwd = clean(folder.unwrap_or(cwd));
        let (cwd, found) = mask_text(self.redactor.as_deref(), &cwd);
        let cwd = truncate_name(&cwd).to_owned();
        if self.session.cwd.as_ref() == Some(&cwd) {
            return;
        }
        self.secrets.note_column_secrets(found);

        let Repository { folder, origin } = self.repositories.find(&cwd);
        let name = repository::last_path_part(folder.as_deref().unwrap_or(&cwd));
        self.session.project = name.map(str::to_owned);
        if self.session.cwd.is_some() {
            self.session.repository = None;
        }
        self.set_repository(origin.or(folder).as_deref());
        self.session.cwd = Some(cwd);
    }

    /// Returns a text cleaned and with its secrets masked. The secrets are not counted.
    pub fn clean_and_mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match clean(text) {
            Cow::Borrowed(text) => mask_text(self.redactor.as_deref(), text).0,
            Cow::Owned(text) => {
                Cow::Owned(mask_text(self.redactor.as_deref(), &text).0.into_owned())
            }
        }
    }

    /// Returns a name such as `task_complete` as words. A name with a secret is masked and not
    /// split, because the words no longer have the shape of the secret.
    pub fn words_of_name(&self, name: &str) -> String {
        let masked = self.clean_and_mask(name);
        if masked == name { name.replace('_', " ") } else { masked.into_owned() }
    }

    /// Collects the secrets of the events that follow.
    pub(crate) fn collect_secrets(&mut self) {
        self.found_secrets = Some(Vec::new());
    }

    /// Takes the secrets collected, in the order of the events.
    pub(crate) fn take_found_secrets(&mut self) -> Vec<FoundSecret> {
        self.found_secrets.take().unwrap_or_default()
    }

    /// Masks the secrets in the text, command and files of an event, and counts them. `answered_call`
    /// is the id of the call whose result the text is.
    pub(super) fn mask_columns<'t>(
        &mut self,
        text: &'t str,
        command: &'t str,
        files: &[String],
        answered_call: Option<&str>,
    ) -> MaskedColumns<'t> {
        let printed_by = answered_call.and_then(|id| self.state.open_calls.command_of(id));
        let printed_by = printed_by.unwrap_or_default();
        if let (Some(found), Some(redactor)) = (&mut self.found_secrets, &self.redactor) {
            note_found_secrets(found, redactor, self.record, (text, printed_by), command, files);
        }
        self.secrets.mask_event(self.redactor.as_deref(), text, command, files, printed_by)
    }

    /// Sets the repository that the working directory belongs to. An address replaces a folder;
    /// otherwise the first value stays.
    pub fn set_repository(&mut self, repository: Option<&str>) {
        let Some(repository) = repository.filter(|_| !self.is_forgotten) else { return };
        if let Some(known) = &self.session.repository
            && (repository::is_address(known) || !repository::is_address(repository))
        {
            return;
        }
        let address = repository::normalize_address(repository);
        self.replace_changed(|row| &mut row.repository, Some(&address));
    }

    /// Reports how far the token counts can be trusted, if the events do not show it. The lowest
    /// confidence reported counts.
    pub fn set_confidence(&mut self, confidence: Confidence) {
        let known = self.state.confidence;
        self.state.confidence = Some(known.map_or(confidence, |known| known.max(confidence)));
    }

    /// Sets whether counts are missing if the log ends here, as before a shutdown record that sums
    /// up.
    pub fn set_counts_open(&mut self, is_open: bool) {
        self.state.counts_open = is_open;
    }

    /// Counts an item unknown to the decoder; `kind` is record, field, block or iteration.
    pub fn count_unknown(&mut self, kind: &str, name: &str) {
        if self.is_forgotten {
            return;
        }
        let name = truncate_name(name);
        // A record that is not known as a whole matters more than its fields.
        let is_known = !matches!(self.unknown_items[..], [UnknownItem::Record(_)]);
        let has_room = self.unknown_items.len() < MAX_UNKNOWN_ITEMS;
        match kind {
            "record" | "iteration" => {
                self.unknown_items.clear();
                self.unknown_items.push(UnknownItem::Record(name.to_owned()));
            }
            "field" if is_known && has_room => {
                self.unknown_items.push(UnknownItem::Field(name.to_owned()));
            }
            // The counts of a response are next to its blocks.
            _ => {}
        }
        if let Some(masked) = self.masked_names.get(name) {
            self.ledger.count_unknown(kind, masked);
        } else {
            let masked = self.clean_and_mask(name).into_owned();
            self.ledger.count_unknown(kind, &masked);
            if self.masked_names.len() < MAX_MASKED_NAMES {
                self.masked_names.insert(name.to_owned(), masked);
            }
        }
        if kind == "record" {
            self.limit_unknown_records();
        }
    }

    /// Counts the types of the content blocks that were rendered and that no decoder knows.
    pub(crate) fn count_unknown_blocks(&mut self) {
        for kind in render::take_unknown_blocks() {
            self.count_unknown("block", &kind);
        }
    }

    /// Takes the items of the present record that its decoder did not know.
    pub(crate) fn take_unknown_items(&mut self) -> Vec<UnknownItem> {
        std::mem::take(&mut self.unknown_items)
    }

    /// Notes that an unknown item has token counts, which are missing in the sums.
    pub(crate) fn note_uncounted_usage(&mut self, item: &UnknownItem) {
        let (UnknownItem::Field(name) | UnknownItem::Record(name)) = item;
        let name = self.clean_and_mask(name);
        self.ledger.count_unknown("usage", &name);
        self.set_confidence(Confidence::Partial);
    }

    /// Notes that a response has begun, whose tokens are not counted yet.
    pub(super) fn note_uncounted_step(&mut self) {
        if self.state.uncounted_steps.len() < MAX_UNCOUNTED_STEPS {
            self.state.uncounted_steps.insert(self.state.step);
        }
    }

    /// Notes that the tokens of a response are counted. Counts without a request may be those of
    /// several responses.
    pub(super) fn note_counted_step(&mut self, step: i32, request_id: Option<&str>) {
        match request_id {
            Some(_) => {
                self.state.uncounted_steps.remove(&step);
            }
            None => self.state.uncounted_steps.clear(),
        }
    }

    /// Notes that the next counts include those of all responses before them.
    pub fn count_earlier_steps(&mut self) {
        self.state.uncounted_steps.clear();
    }

    /// Sets the parent of the present record. A prompt in this record may begin a branch.
    pub fn set_parent(&mut self, parent: Option<u64>) {
        self.parent = parent;
    }

    /// Links the next record to `parent`. If another record already had this parent, the user went
    /// back there, and the events since then are an abandoned branch.
    pub fn link_to_parent(&mut self, parent: u64) {
        let now = self.state.next_index;
        if let Some(since) = self.state.branches.link_record(parent, now) {
            self.abandon_from(since);
        }
    }

    /// Adds the next entry `id` below `parent`, in a log that is a tree. Events that are not on the
    /// path from the root to this entry are an abandoned branch.
    pub fn add_tree_entry(&mut self, id: u64, parent: u64) {
        if self.is_repeated {
            return;
        }
        let Some(ranges) = self.state.tree.add_entry(id, parent, self.state.next_index) else {
            return;
        };
        self.ledger.replace_abandoned(&ranges);
        let title_at = self.state.title_at;
        if ranges.iter().any(|(first, end)| (*first..*end).contains(&title_at)) {
            self.forget_title();
        }
    }

    /// Lets any other title replace a prompt that was typed on an abandoned branch.
    fn forget_title(&mut self) {
        if self.state.title_rank <= TitleFrom::Prompt as u8 {
            self.state.title_rank = 0;
        }
    }

    /// Marks the events from index `first` on as an abandoned branch.
    pub fn abandon_from(&mut self, first: i32) {
        if first < self.state.next_index {
            self.ledger.add_abandoned(first, self.state.next_index - 1);
            if self.state.title_at >= first {
                self.forget_title();
            }
        }
    }

    /// Sets the current git branch.
    pub fn set_branch(&mut self, branch: Option<&str>) {
        let branch = branch.filter(|_| !self.is_forgotten);
        self.replace_changed(|row| &mut row.git_branch, branch);
    }

    /// Sets the current model.
    pub fn set_model(&mut self, model: Option<&str>) {
        self.replace_changed(|row| &mut row.model, model);
    }

    /// Sets the agent's version.
    pub fn set_version(&mut self, version: Option<&str>) {
        self.replace_changed(|row| &mut row.agent_version, version);
    }

    /// Replaces a value that changed. Absent and empty values change nothing.
    fn replace_changed(
        &mut self,
        column: fn(&mut SessionRow) -> &mut Option<String>,
        new: Option<&str>,
    ) {
        let current = column(&mut self.session);
        let Some(new) = new else { return };
        if new.is_empty() || current.as_deref() == Some(new) {
            return;
        }

        let new = clean(new);
        let (masked, found) = mask_text(self.redactor.as_deref(), &new);
        let masked = truncate_name(&masked);
        // Compared again after masking: the unmasked value never equals the masked one that was
        // kept.
        if current.as_deref() != Some(masked) {
            *current = Some(masked.to_owned());
            self.secrets.note_column_secrets(found);
        }
    }
}

/// The words of a first line that leads to the heading of a plan.
const PLAN_WORDS: &[&str] = &["design", "plan", "spec", "specification"];

/// Returns the Markdown heading to which the first line of a prompt leads, or the prompt: "Implement
/// this plan:" begins many sessions, the heading of the plan one. A heading of one word, such as
/// "Context", is followed by the rest.
fn skip_lead(text: &str) -> &str {
    let Some((lead, rest)) = text.trim_start().split_once('\n') else { return text };
    let lead = lead.trim_end().to_lowercase();
    let names_plan = lead.split(|c: char| !c.is_alphanumeric()).any(|w| PLAN_WORDS.contains(&w));
    let rest = rest.trim_start();
    let marked = rest.trim_start_matches('#');
    if !(names_plan && lead.ends_with(':') && rest.starts_with('#') && marked.starts_with(' ')) {
        return text;
    }
    let heading = marked.lines().next().unwrap_or("").trim();
    if heading.contains(' ') { heading } else { marked.trim_start() }
}

/// Returns the title that a prompt gives its session, whose secrets are masked. `None` if the prompt is
/// blank.
pub(super) fn prompt_title(text: &str) -> Option<String> {
    Some(cut_title(skip_lead(text))).filter(|title| !title.is_empty())
}

/// Returns the beginning of a text as a title, in one line.
fn cut_title(text: &str) -> String {
    let line = first_words(text);
    let cut = line.char_indices().nth(MAX_TITLE_CHARS).map_or(line.len(), |(at, _)| at);
    let ellipsis = if cut < line.len() { "…" } else { "" };
    [&line[..cut], ellipsis].concat()
}

/// Returns whether a title may be the beginning of a text.
pub(crate) fn is_title_of(title: &str, text: &str) -> bool {
    let title = title.trim_end_matches('…');
    !title.is_empty()
        && (first_words(text).starts_with(title) || first_words(skip_lead(text)).starts_with(title))
}

/// Returns the words of a text on one line, up to a little more than a title can hold.
fn first_words(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > MAX_TITLE_CHARS * char::MAX_LEN_UTF8 {
            break;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use schemas::Provider;

    use super::*;
    use crate::redact::{Redactor, UserRule};
    use crate::stream::replay::CopiedHistory;
    use crate::stream::state::StreamState;

    #[test]
    fn a_title_is_the_first_words() {
        assert_eq!(first_words(" a\n\tb  "), "a b");
        let long = "𝄞 ".repeat(2 * MAX_TITLE_CHARS);
        assert!(long.starts_with(&first_words(&long)));
        assert!(first_words(&long).chars().count() > MAX_TITLE_CHARS);
    }

    #[test]
    fn a_heading_that_the_first_line_leads_to_is_the_title() {
        let title = |text: &str| first_words(skip_lead(text));
        assert_eq!(title("Build this plan:\n\n# Retry uploads\n\nThey fail."), "Retry uploads");
        assert_eq!(title("Plan:\r\n## Retry uploads"), "Retry uploads");
        assert_eq!(title("The spec:\n# Context\n\nUploads fail."), "Context Uploads fail.");
        for text in [
            "Fix this plan:\n#12 fails",
            "# Plan: \nuploads",
            "Look at the plan\n# here",
            "This explanation:\n# npm test",
            "Plan:\n#",
            "Plan:",
        ] {
            assert_eq!(skip_lead(text), text);
        }
    }

    /// A stream to which birds are secrets.
    fn among_birds(row: SessionRow, state: StreamState) -> Stream {
        let rule = |name: &str| UserRule { name: name.to_owned(), regex: name.to_owned() };
        let rules = ["heron", "osprey", "plover", "dunlin", "curlew", "godwit"].map(rule);
        let redactor = Redactor::new(&rules).expect("rules");
        let (own, history, batch) = (None, CopiedHistory::default(), Box::default());
        Stream::new(Provider::Generic, row, state, own, history, Some(Arc::new(redactor)), batch)
    }

    #[test]
    fn every_column_that_is_masked_is_counted_once() {
        let mut stream = among_birds(SessionRow::default(), StreamState::default());
        stream.set_cwd(Some("/home/mira/heron"));
        let tell = |stream: &mut Stream| {
            stream.set_branch(Some("osprey"));
            stream.set_model(Some("plover"));
            stream.offer_title(TitleFrom::User, "Of dunlin and godwit");
        };
        tell(&mut stream);
        tell(&mut stream);
        let call = DecodedEvent {
            command: "count curlew",
            files: &["curlew.md".to_owned()],
            ..DecodedEvent::default()
        };
        stream.push(EventType::ToolCall, call);
        stream.push(
            EventType::Notification,
            DecodedEvent { text: "a godwit", ..DecodedEvent::default() },
        );
        let row = stream.session_row();
        let all = r#"{"curlew":1,"dunlin":1,"godwit":1,"heron":1,"osprey":1,"plover":1}"#;
        assert_eq!(row.redactions.as_deref(), Some(all));
        assert_eq!(row.git_branch.as_deref(), Some("[REDACTED:osprey]"));
        // A log that is gone on with says the same again.
        let mut later = among_birds(row, stream.state().clone());
        tell(&mut later);
        assert_eq!(later.session_row().redactions.as_deref(), Some(all));
    }

    #[test]
    fn names_that_a_decoder_does_not_know_are_masked() {
        let mut stream = among_birds(SessionRow::default(), StreamState::default());
        stream.count_unknown("field", "nest_of_osprey");
        let drift = stream.session_row().drift;
        assert_eq!(drift.as_deref(), Some(r#"{"field:nest_of_[REDACTED:osprey]":1}"#));
    }
}
