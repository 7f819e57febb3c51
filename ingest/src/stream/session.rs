//! What a log tells of its session as a whole: title, place, branch, model, trust, abandoned
//! branches. Nothing of it is kept with a secret in it.

use std::borrow::Cow;

use schemas::Confidence;

use super::Stream;
use crate::redact::{Counts, Redactor};
use crate::repository;

/// Titles taken from a prompt are cut to this many characters.
const TITLE_CHARS: usize = 120;

/// Bytes of a name: of a tool, a model, a branch, a folder, an id. Answers repeat names, and a log
/// may hold anything.
const NAME_BYTES: usize = 1024;

/// A title's source; a higher one wins, among equals the later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TitleFrom {
    Prompt = 1,
    Summary = 2,
    Agent = 3,
    Person = 4,
}

impl Stream {
    /// Offers a title.
    pub fn title(&mut self, from: TitleFrom, text: &str) {
        let rank = from as u8;
        let first_prompt = from == TitleFrom::Prompt && self.state.title_rank >= rank;
        if rank < self.state.title_rank || first_prompt {
            return;
        }
        let text = self.masked(text);
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if line.is_empty() {
            return;
        }
        self.state.title_rank = rank;
        let cut = line.char_indices().nth(TITLE_CHARS).map_or(line.len(), |(at, _)| at);
        let ellipsis = if cut < line.len() { "…" } else { "" };
        self.session.title = Some(format!("{}{ellipsis}", &line[..cut]));
    }

    /// Sets the working directory, and the project named after it, once: the first one names the
    /// session even when the agent changes directory later.
    pub fn set_cwd(&mut self, cwd: Option<&str>) {
        let Some(cwd) = cwd.filter(|cwd| !cwd.is_empty()) else { return };
        if self.session.cwd.is_none() {
            let cwd = short(&self.masked(cwd)).to_owned();
            let repository = repository::of(&cwd);
            let name = repository::name(repository.as_deref().unwrap_or(&cwd));
            self.session.project = name.map(str::to_owned);
            if self.session.repository.is_none() {
                self.session.repository = repository;
            }
            self.session.cwd = Some(cwd);
        }
    }

    /// A text as it may be kept: without its secrets.
    pub fn masked<'t>(&self, text: &'t str) -> Cow<'t, str> {
        mask(self.redactor.as_deref(), text, &mut Counts::default())
    }

    /// The same for a text that is shown; its secrets are counted.
    pub(super) fn mask<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        let mut counts = Counts::default();
        let masked = mask(self.redactor.as_deref(), text, &mut counts);
        self.ledger.redacted(counts);
        masked
    }

    /// Sets the repository that the working directory belongs to, unless its folder is known.
    pub fn set_repository(&mut self, repository: Option<&str>) {
        if self.session.repository.is_none() {
            replace(&mut self.session.repository, repository, self.redactor.as_deref());
        }
    }

    /// Says how far the token counts can be trusted, where that is not plain from the events: the
    /// least trust counts.
    pub fn set_confidence(&mut self, confidence: Confidence) {
        let known = self.state.confidence;
        self.state.confidence = Some(known.map_or(confidence, |known| known.max(confidence)));
    }

    /// Says that counts are missing as long as the log ends here, as before a shutdown that sums up.
    pub fn set_open(&mut self, open: bool) {
        self.state.counts_open = open;
    }

    /// Counts what the decoder did not know: `kind` is record, field or block.
    pub fn drift(&mut self, kind: &str, name: &str) {
        self.ledger.drift(kind, name);
    }

    /// The present record hangs on `parent`; a prompt in it may begin a branch.
    pub fn hangs_on(&mut self, parent: Option<u64>) {
        self.parent = parent;
    }

    /// The record that follows hangs on `parent`. When another one hung on it already, a person
    /// went back there: the events since then are an abandoned branch.
    pub fn branch(&mut self, parent: u64) {
        let now = self.state.next_index;
        let since = self.state.branches.hang(parent, now);
        if let Some(since) = since.filter(|since| *since < now) {
            self.ledger.abandon(since, now - 1);
        }
    }

    /// Sets the git branch in force.
    pub fn set_branch(&mut self, branch: Option<&str>) {
        replace(&mut self.session.git_branch, branch, self.redactor.as_deref());
    }

    /// Sets the model in force.
    pub fn set_model(&mut self, model: Option<&str>) {
        replace(&mut self.session.model, model, self.redactor.as_deref());
    }

    /// Sets the version of the agent.
    pub fn set_version(&mut self, version: Option<&str>) {
        replace(&mut self.session.agent_version, version, self.redactor.as_deref());
    }
}

/// Replaces a value that changed; absent and empty ones change nothing.
fn replace(current: &mut Option<String>, new: Option<&str>, redactor: Option<&Redactor>) {
    if let Some(new) = new.filter(|new| !new.is_empty())
        && current.as_deref() != Some(new)
    {
        *current = Some(short(&mask(redactor, new, &mut Counts::default())).to_owned());
    }
}

/// A name as far as it is kept.
pub(crate) fn short(name: &str) -> &str {
    &name[..name.floor_char_boundary(NAME_BYTES)]
}

fn mask<'t>(redactor: Option<&Redactor>, text: &'t str, counts: &mut Counts) -> Cow<'t, str> {
    redactor.map_or(Cow::Borrowed(text), |redactor| redactor.mask(text, counts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_an_end() {
        assert_eq!(short("main"), "main");
        assert_eq!(short(&"é".repeat(600)), "é".repeat(512));
    }
}
