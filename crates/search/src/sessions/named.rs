//! Finds what a question names besides words: sessions by their ids, agents, and projects.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use schemas::Provider;

use base::fold::fold_text;
use store::Snapshot;

/// Most sessions that the beginning of an id names. What more of them begin with is a word.
const MAX_SESSIONS_OF_AN_ID: usize = 10;

/// Most words of a question that are looked up as ids.
const MAX_LOOKUPS: usize = 256;

/// Fewest letters of the name of a project that a question names. Shorter ones are words.
const MIN_PROJECT_LETTERS: usize = 4;

/// What may be the id of a session or its beginning, with the index of an event: first UUIDs, which
/// names of logs contain, too.
static IDS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let patterns = [
        r"(?i)([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:~[0-9a-z]+)?)(?::\d+)?",
        r"([A-Za-z0-9][A-Za-z0-9_~-]{7,})(?::\d+)?",
    ];
    patterns.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect()
});

/// An agent as the place where something happened: "with Gemini", "the Codex session".
static AGENTS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let names: Vec<&str> = Provider::ALL.iter().map(|provider| provider.as_str()).collect();
    let agent = format!(r"(?: {} ) (?: \s+ (?:code|cli) )*", names.join("|"));
    Regex::new(&format!(
        r"(?ix)
        \b (?: with | in | by | using | via | from ) \s+ ({agent}) \s* (?: [.,;:?!] | $ )
        | \b ({agent} \s+ (?: sessions? | chats? | conversations? )) \b"
    ))
    .ok()
});

/// Replaces the ids of sessions and of events in a question by blanks. Returns the positions of these
/// sessions.
pub(super) fn take_sessions(snapshot: &Snapshot, question: &mut String) -> Vec<usize> {
    let mut named = Vec::new();
    for pattern in &*IDS {
        let mut ids = Vec::new();
        for words in pattern.captures_iter(question).take(MAX_LOOKUPS) {
            let (Some(whole), Some(id)) = (words.get(0), words.get(1)) else { continue };
            let found = sessions_with_id(snapshot, id.as_str());
            if (1..=MAX_SESSIONS_OF_AN_ID).contains(&found.len()) {
                named.extend(found);
                ids.push(whole.range());
            }
        }
        blank(question, &ids);
    }
    named
}

/// Returns the positions of the sessions whose id, or id in their log, is `id`, or begins with it.
fn sessions_with_id(snapshot: &Snapshot, id: &str) -> Vec<usize> {
    let lower = id.to_ascii_lowercase();
    for id in [id, &lower] {
        if let Some(position) = snapshot.session_position(id) {
            return vec![position];
        }
    }
    // The beginning of an id without a digit is a word.
    if !id.bytes().any(|byte| byte.is_ascii_digit()) {
        return Vec::new();
    }
    for id in [id, &lower] {
        let found = snapshot.sessions_with_prefix(id);
        if !found.is_empty() {
            return found.collect();
        }
    }
    let sessions = snapshot.sessions().iter().enumerate();
    let found = sessions.filter(|(_, session)| session.native_id().starts_with(id));
    found.map(|(position, _)| position).collect()
}

/// Replaces the names of agents with which something happened by blanks, and returns them. The name
/// of an agent without sessions is a word: some are words of everyday.
pub(super) fn take_agents(
    question: &mut String,
    has_sessions: &dyn Fn(Provider) -> bool,
) -> Vec<Provider> {
    let Some(pattern) = &*AGENTS else { return Vec::new() };
    let mut agents = Vec::new();
    let mut names = Vec::new();
    for found in pattern.captures_iter(question) {
        let Some(place) = found.get(1).or_else(|| found.get(2)) else { continue };
        let name = place.as_str().split_whitespace().next().unwrap_or_default();
        if let Ok(agent) = name.to_ascii_lowercase().parse::<Provider>()
            && has_sessions(agent)
        {
            agents.push(agent);
            names.push(place.range());
        }
    }
    blank(question, &names);
    agents
}

/// Replaces parts of a text by blanks. The other parts stay where they are.
fn blank(text: &mut String, parts: &[Range<usize>]) {
    for part in parts {
        text.replace_range(part.clone(), &" ".repeat(part.len()));
    }
}

/// The words of a question, in which names of projects are looked for.
#[derive(Debug, Clone, Default)]
pub(super) struct NamedProjects(String);

impl NamedProjects {
    pub(super) fn new(question: &str) -> Self {
        Self(spaced_words(question))
    }

    /// True if the question names a project.
    pub(super) fn has(&self, project: &str) -> bool {
        let name = spaced_words(project);
        name.trim().chars().count() >= MIN_PROJECT_LETTERS && self.0.contains(&name)
    }
}

/// True if a word is one of those of the name of a project.
pub(super) fn is_word_of_project(word: &str, project: &str) -> bool {
    spaced_words(project).contains(&spaced_words(word))
}

/// Returns the folded words of a text, with a space before and after each.
fn spaced_words(text: &str) -> String {
    let mut words = String::from(" ");
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        words.push_str(&fold_text(word));
        words.push(' ');
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_taken_where_they_say_with_what_something_was_done() {
        let agents = |question: &str| {
            let mut rest = question.to_owned();
            let agents = take_agents(&mut rest, &|agent| agent != Provider::Kimchi);
            (agents, rest.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        let what = "what did I do with Gemini?";
        assert_eq!(agents(what), (vec![Provider::Gemini], "what did I do with ?".to_owned()));
        let fixed = agents("the codex session that fixed it in Claude Code");
        let agents_of_it = vec![Provider::Codex, Provider::Claude];
        assert_eq!(fixed, (agents_of_it, "the that fixed it in".to_owned()));
        // Here they are what the session is about.
        for matter in [
            "the gemini api key",
            "resume in codex desktop",
            "move the cursor",
            "what goes with kimchi?",
        ] {
            assert_eq!(agents(matter), (Vec::new(), matter.to_owned()));
        }
    }

    #[test]
    fn projects_are_named_by_their_words() {
        let question = spaced_words("port Oh-my-posh to Zig");
        assert!(question.contains(&spaced_words("oh-my-posh")));
        assert!(!question.contains(&spaced_words("posh-git")));
    }
}
