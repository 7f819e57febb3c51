//! Splits a question about sessions into the words and the dates to look for.

use std::collections::HashSet;

use super::dates::{NamedDate, find_dates, is_time_word};
use super::named::{NamedProjects, take_agents, take_sessions};
use super::stop_words::{
    is_ambiguous_stop_word, is_foreign_stop_word, is_opening_word, is_stop_word,
};
use base::fold::{fold_text, nfc_if_different};
use base::word_form::{common_form, irregular_forms};
use schemas::Provider;
use store::{SHORTEST_WORD, Snapshot};

/// Most words of a question that count; further words are ignored.
const MAX_TERMS: usize = 32;

/// Letters and digits of the shortest code, such as `E0502`.
const SHORTEST_CODE: usize = 4;

/// Digits of the shortest number that is looked for as a part of a code, such as `PR4711`.
const SHORTEST_NUMBER: usize = 3;

/// Number of letters from which other words that begin alike count as related.
const RELATED_LETTERS: usize = 5;

/// A question about sessions.
#[derive(Debug, Clone)]
pub struct SessionQuestion {
    pub(crate) terms: Vec<QuestionTerm>,
    pub(crate) dates: Vec<NamedDate>,
    /// The sessions whose ids it has, by position in `Snapshot::sessions`.
    pub(super) sessions: Vec<usize>,
    /// The agents with which it says that something happened.
    pub(super) agents: Vec<Provider>,
    pub(super) projects: NamedProjects,
}

/// One word of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QuestionTerm {
    /// The word as it was written.
    pub(crate) word: String,
    /// Folded, and in its [`common_form`] if it is a word of ASCII letters.
    pub(crate) stem: String,
    /// True if the word lists of the index can have it: three or more ASCII letters.
    pub(crate) is_indexed: bool,
    /// The stem of the identifier of several words that this word is, or is a part of.
    pub(crate) identifier: Option<String>,
    /// What words of interest begin with: the regular forms of this word and related words, and each
    /// irregular form. Empty if it is not indexed.
    pub(crate) prefixes: Vec<String>,
}

impl QuestionTerm {
    /// True if `word`, in lower case, is this word in any form.
    pub(crate) fn is_form_of(&self, word: &str) -> bool {
        let may_be_form = self.prefixes.iter().any(|prefix| word.starts_with(prefix.as_str()));
        may_be_form && common_form(word) == self.stem
    }

    /// True if `word`, in lower case, begins like this one for long enough to have to do with it.
    pub(crate) fn is_related_to(&self, word: &str) -> bool {
        let beginning = self.stem.get(..RELATED_LETTERS);
        let is_alike = beginning.is_some_and(|beginning| word.starts_with(beginning));
        // `sessionMetadata` has little to do with every `session`.
        self.is_indexed && is_alike && !self.is_identifier()
    }

    fn is_hiragana(&self) -> bool {
        self.word.chars().all(|c| matches!(c, '\u{3040}'..='\u{309f}'))
    }

    /// True if this word is an identifier of several words as a whole.
    pub(crate) fn is_identifier(&self) -> bool {
        self.identifier.as_ref() == Some(&self.stem)
    }
}

/// The letters with which the words of a question begin that the word lists have, in any form: most words
/// of a text begin with another one.
pub(super) struct FirstLetters([bool; 256]);

impl FirstLetters {
    /// True if a word that begins with this byte may be one of the question.
    pub(super) fn may_begin(&self, first: u8) -> bool {
        self.0[usize::from(first)]
    }
}

impl SessionQuestion {
    pub(super) fn first_letters(&self) -> FirstLetters {
        let mut letters = [false; 256];
        for prefix in self.terms.iter().flat_map(|term| &term.prefixes) {
            let first = prefix.as_bytes()[0];
            letters[usize::from(first)] = true;
            letters[usize::from(first.to_ascii_uppercase())] = true;
        }
        FirstLetters(letters)
    }

    /// True if it has words that the word lists cannot have.
    pub(super) fn has_unlisted_terms(&self) -> bool {
        self.terms.iter().any(|term| !term.is_indexed)
    }

    /// Splits `question`, and finds the sessions, agents and projects that it names. What names a
    /// session, an agent or a day is no word to look for, unless there is nothing else.
    pub fn parse_naming(snapshot: &Snapshot, question: &str) -> Self {
        let mut words = question.to_owned();
        let sessions = take_sessions(snapshot, &mut words);
        let with_agents = words.clone();
        let has_sessions =
            |agent| snapshot.sessions().iter().any(|session| session.provider == agent);
        let agents = take_agents(&mut words, &has_sessions);
        let mut named = Self { sessions, agents, ..Self::parse(&words) };
        named.remove_time_words();
        named.projects = NamedProjects::new(&words);
        if named.is_empty() {
            named.terms = Self::parse(&with_agents).terms;
        }
        named
    }

    /// Splits `question`, and leaves out words that say nothing about what is looked for.
    pub fn parse(question: &str) -> Self {
        let text = QuestionText::new(question);
        let runs = text.runs();
        let is_foreign = runs.iter().any(|run| is_foreign_stop_word(&run.to_lowercase()));
        let is_wanted = |term: &QuestionTerm| {
            let word = term.word.to_lowercase();
            let is_stop = is_stop_word(&word, &term.stem);
            !(is_stop || is_foreign && is_ambiguous_stop_word(&word))
        };
        let mut terms = collect_terms(&runs[count_opening_runs(&runs)..], is_wanted);
        if terms.is_empty() {
            terms = collect_terms(&runs, is_wanted);
        }
        Self::from_words(terms, text.dates)
    }

    /// The same without words that say when something happened, unless there is nothing else.
    pub(crate) fn parse_matter(question: &str) -> Self {
        let mut parsed = Self::parse(question);
        parsed.remove_time_words();
        if parsed.terms.is_empty() { Self::parse(question) } else { parsed }
    }

    fn remove_time_words(&mut self) {
        self.terms.retain(|term| !is_time_word(&self.dates, &term.word.to_lowercase()));
    }

    /// Splits `question`.
    pub(crate) fn parse_every_word(question: &str) -> Self {
        let text = QuestionText::new(question);
        let terms = collect_terms(&text.runs(), |_| true);
        Self::from_words(terms, text.dates)
    }

    fn from_words(terms: Vec<QuestionTerm>, dates: Vec<NamedDate>) -> Self {
        let sessions = Vec::new();
        let agents = Vec::new();
        Self { terms, dates, sessions, agents, projects: NamedProjects::default() }
    }

    /// Makes the words at these positions match anywhere in a longer word, too.
    pub(crate) fn search_parts(&mut self, positions: &[usize]) {
        for position in positions {
            self.terms[*position] = text_term(&self.terms[*position].word);
        }
    }

    /// Returns the words to look for, as they were written.
    pub fn words(&self) -> Vec<String> {
        self.terms.iter().map(|term| term.word.clone()).collect()
    }

    /// True if there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty() && self.dates.is_empty() && self.sessions.is_empty()
    }
}

/// A question without the dates in it.
struct QuestionText {
    /// The question without endings of the genitive and numbers of dates.
    plain: String,
    dates: Vec<NamedDate>,
}

impl QuestionText {
    fn new(question: &str) -> Self {
        // A mark that follows its letter is not a letter, and would split the word.
        let composed = nfc_if_different(question);
        let question = composed.as_deref().unwrap_or(question);
        let mut plain = question.replace('\u{2019}', "'").replace("'s ", " ").replace("'s?", "?");
        let dates = find_dates(&plain);
        // The numbers of a date would be looked for in the texts, which rarely repeat them.
        for numbers in dates.iter().flat_map(|mention| &mention.numbers) {
            plain.replace_range(numbers.clone(), &" ".repeat(numbers.len()));
        }
        Self { plain, dates: dates.into_iter().map(|mention| mention.date).collect() }
    }

    /// Returns the runs of letters and digits.
    fn runs(&self) -> Vec<&str> {
        let runs = self.plain.split(|c: char| !c.is_alphanumeric());
        runs.filter(|run| !run.is_empty()).collect()
    }
}

/// Returns the words of some runs that `is_wanted` accepts, each one once.
fn collect_terms(runs: &[&str], is_wanted: impl Fn(&QuestionTerm) -> bool) -> Vec<QuestionTerm> {
    let mut terms: Vec<QuestionTerm> = Vec::new();
    let mut known = HashSet::new();
    for term in runs.iter().flat_map(|run| split_run(run)) {
        if is_wanted(&term) && known.insert(term.stem.clone()) {
            terms.push(term);
        }
    }
    // Pairs of Hiragana are the grammar of Japanese.
    if !terms.iter().all(QuestionTerm::is_hiragana) {
        terms.retain(|term| !term.is_hiragana());
    }
    terms.truncate(MAX_TERMS);
    terms
}

/// Returns the number of runs with which a question opens before it comes to the matter: "which chat was
/// it where". The word before the matter belongs to it, as in "session cookies".
fn count_opening_runs(runs: &[&str]) -> usize {
    let kinds: Vec<RunKind> = runs.iter().map(|run| RunKind::of(run)).collect();
    let mut count = 0;
    for (position, kind) in kinds.iter().enumerate() {
        let is_followed_by_matter = kinds.get(position + 1) == Some(&RunKind::Matter);
        if *kind == RunKind::Matter || *kind == RunKind::Opening && is_followed_by_matter {
            break;
        }
        count += 1;
    }
    count
}

/// What a run of letters and digits says about what is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunKind {
    /// Nothing, wherever it is.
    Stop,
    /// Nothing if the question begins with it.
    Opening,
    Matter,
}

impl RunKind {
    fn of(run: &str) -> Self {
        let word = run.to_lowercase();
        let stem = common_form(&word);
        let is_short =
            word.len() < SHORTEST_WORD && word.bytes().all(|byte| byte.is_ascii_alphabetic());
        if is_short || is_stop_word(&word, &stem) {
            Self::Stop
        } else if is_opening_word(&word) {
            Self::Opening
        } else {
            Self::Matter
        }
    }
}

/// Splits a run of letters and digits into words: letters at changes of case, and apart from digits. A code,
/// and an identifier of several words, are words themselves, with their parts. A word with letters beyond
/// ASCII, such as `Größe`, stays whole. Chinese, Japanese and Korean text, which has no spaces, is split
/// into pairs of characters.
fn split_run(run: &str) -> Vec<QuestionTerm> {
    if !is_code(run) {
        return split_at_scripts(run);
    }
    let whole = text_term(run);
    let identifier = Some(whole.stem.clone());
    let parts = split_at_scripts(run).into_iter();
    // Short numbers, and those of a hash, are in many texts.
    let parts = parts.filter(|part| part.is_indexed || part.stem.len() >= SHORTEST_NUMBER);
    let terms = [whole].into_iter().chain(parts);
    terms.map(|term| QuestionTerm { identifier: identifier.clone(), ..term }).collect()
}

/// True for ASCII letters and digits together, such as the code of an error or the hash of a commit.
fn is_code(run: &str) -> bool {
    let digits = run.bytes().filter(u8::is_ascii_digit).count();
    digits >= 2
        && digits < run.len()
        && run.len() >= SHORTEST_CODE
        && run.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Splits a run of letters and digits that is no code.
fn split_at_scripts(run: &str) -> Vec<QuestionTerm> {
    let mut terms = Vec::new();
    let chars: Vec<char> = run.chars().collect();
    for part in chars.chunk_by(|a, b| script_of(*a) == script_of(*b)) {
        match script_of(part[0]) {
            Script::Cjk if part.len() > 1 => {
                terms.extend(part.windows(2).map(|pair| text_term(&String::from_iter(pair))));
            }
            Script::Cased if part.iter().all(char::is_ascii) => {
                let letters = String::from_iter(part);
                let words: Vec<String> = part
                    .chunk_by(|a, b| !(a.is_ascii_lowercase() && b.is_ascii_uppercase()))
                    .map(String::from_iter)
                    .collect();
                let whole = letter_term(&letters);
                if words.len() == 1 {
                    terms.extend(whole);
                    continue;
                }
                let identifier = whole.as_ref().map(|term| term.stem.clone());
                let parts = words.iter().filter_map(|word| letter_term(word));
                terms.extend(
                    whole
                        .into_iter()
                        .chain(parts)
                        .map(|term| QuestionTerm { identifier: identifier.clone(), ..term }),
                );
            }
            // One digit, or one character of another script, is everywhere.
            Script::Digit if part.len() == 1 => {}
            Script::Cased | Script::Cjk | Script::Digit | Script::Other => {
                terms.push(text_term(&String::from_iter(part)));
            }
        }
    }
    terms
}

/// Returns the term of a word of ASCII letters; `None` if it is too short for the index.
fn letter_term(word: &str) -> Option<QuestionTerm> {
    if word.len() < SHORTEST_WORD {
        return None;
    }
    let stem = common_form(&word.to_ascii_lowercase()).into_owned();
    // `study` is also `studies`.
    let beginning = stem.strip_suffix('y').unwrap_or(&stem);
    let mut prefixes = vec![beginning[..beginning.len().min(RELATED_LETTERS)].to_owned()];
    for form in irregular_forms(&stem) {
        if !form.starts_with(&prefixes[0]) {
            prefixes.push((*form).to_owned());
        }
    }
    Some(QuestionTerm { word: word.to_owned(), stem, is_indexed: true, identifier: None, prefixes })
}

/// Returns the term of a text that the word lists cannot have.
fn text_term(text: &str) -> QuestionTerm {
    let composed = nfc_if_different(text).unwrap_or_else(|| text.to_owned());
    QuestionTerm {
        word: text.to_owned(),
        stem: fold_text(&composed).into_owned(),
        is_indexed: false,
        identifier: None,
        prefixes: Vec::new(),
    }
}

#[derive(PartialEq, Eq)]
enum Script {
    /// Letters of the scripts that have two cases.
    Cased,
    Digit,
    Cjk,
    Other,
}

fn script_of(c: char) -> Script {
    match c {
        '0'..='9' => Script::Digit,
        '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}' => Script::Cjk,
        _ if c.is_lowercase() || c.is_uppercase() => Script::Cased,
        _ => Script::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stems(question: &str) -> Vec<String> {
        SessionQuestion::parse(question).terms.into_iter().map(|term| term.stem).collect()
    }

    #[test]
    fn words_lose_endings_and_stop_words_are_left_out() {
        assert_eq!(stems("When did we talk about the caching?"), ["cach"]);
        assert_eq!(stems("What was Anna's decision on retries"), ["anna", "decision", "retry"]);
        assert_eq!(stems("cache, Cached CACHES"), ["cach"]);
        assert!(SessionQuestion::parse("what was that?").is_empty());
    }

    #[test]
    fn the_opening_of_a_question_is_left_out() {
        assert_eq!(stems("which chat was it where we had a deadlock"), ["deadlock"]);
        assert_eq!(stems("Some weeks ago there was something about chats"), ["chat"]);
        assert_eq!(stems("find the chat where you looked at the cache"), ["cach"]);
        assert_eq!(stems("session cookies"), ["session", "cooky"]);
        assert_eq!(stems("42 retries of the cache"), ["42", "retry", "cach"]);
        assert_eq!(stems("what kind of deals did we see"), ["deal", "see"]);
        assert_eq!(stems("the deadlock in the session"), ["deadlock", "session"]);
        assert_eq!(stems("the last session"), ["last", "session"]);
        assert_eq!(stems("chat session"), ["chat", "session"]);
    }

    #[test]
    fn words_of_two_languages_are_stop_words_where_one_is_spoken() {
        assert_eq!(stems("the die war con par"), ["die", "war", "con", "par"]);
        assert_eq!(stems("die Lampe war nicht da"), ["lamp"]);
        assert_eq!(stems("le fil où le commit était par erreur"), ["commit", "erreur"]);
    }

    #[test]
    fn identifiers_are_words_and_their_parts() {
        assert_eq!(stems("parseHttpRequest"), ["parsehttprequest", "pars", "http", "request"]);
        assert_eq!(stems("MAX_RETRY-count2"), ["max", "retry", "count"]);
        assert_eq!(stems("error 404 on port 8"), ["error", "404", "port"]);
        assert_eq!(
            stems("TS2835 in 48fd9f4, cycle72"),
            ["ts2835", "2835", "48fd9f4", "cycle72", "cycl"]
        );
        assert_eq!(stems("port 404 on 7 July 2026"), ["port", "404", "july"]);
    }

    #[test]
    fn forms_and_related_words_are_within_the_prefixes() {
        let question = SessionQuestion::parse("wrote studies configuration");
        let prefixes = |term: usize| question.terms[term].prefixes.clone();
        assert_eq!(prefixes(0), ["writ", "wrote"]);
        assert_eq!(prefixes(1), ["stud"]);
        assert_eq!(prefixes(2), ["confi"]);
        assert!(question.terms[0].is_form_of("written") && question.terms[1].is_form_of("studied"));
        assert!(question.terms[2].is_related_to("configure"));
        assert!(!question.terms[1].is_related_to("student"));
        let identifier = SessionQuestion::parse("sessionMetadata");
        assert!(!identifier.terms[0].is_related_to("sessions"));
        assert!(identifier.terms[1].is_related_to("sessionid"));
    }

    #[test]
    fn text_without_spaces_is_pairs() {
        assert_eq!(stems("悬空指针 bug"), ["悬空", "空指", "指针", "bug"]);
        assert_eq!(stems("ไทยAPI"), ["ไทย", "api"]);
        assert_eq!(
            stems("Phoenix をやめたセッション"),
            ["phoenix", "たセ", "セッ", "ッシ", "ショ", "ョン"]
        );
        assert_eq!(stems("やめた"), ["やめ", "めた"]);
    }

    #[test]
    fn stop_words_of_other_languages_are_left_out() {
        assert_eq!(
            stems("in welcher Sitzung haben wir die Größe gesetzt"),
            ["sitzung", "größe", "gesetzt"]
        );
        assert_eq!(stems("quand avons-nous fusionné le guide"), ["fusionné", "guid"]);
    }

    #[test]
    fn words_with_letters_beyond_ascii_stay_whole() {
        assert_eq!(stems("Überlauf"), ["überlauf"]);
        assert_eq!(stems("la Größe 12 réserver"), ["größe", "12", "réserver"]);
        assert_eq!(stems("re\u{301}server"), ["réserver"]);
        assert_eq!(stems("настройки API"), ["настройки", "api"]);
    }
}
