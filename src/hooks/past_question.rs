//! Recognizes prompts that ask about earlier sessions.
//!
//! Only sentences that can hardly mean the current conversation count: "what did we decide",
//! "last week", "did we ever". A request such as "did you run the tests?" does not.

use std::sync::LazyLock;

use regex::Regex;

/// A pattern, compiled on first use; `None` if it is invalid, which a test excludes.
type Pattern = LazyLock<Option<Regex>>;

/// Maximum size in bytes of the part of a prompt that is examined.
const MAX_EXAMINED_BYTES: usize = 4000;

/// Maximum size in bytes of a sentence that is a question. A longer one is a pasted text.
const MAX_SENTENCE_BYTES: usize = 400;

/// Matches sentences about what was said or done in earlier sessions.
static PAST: Pattern = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)\b(?:",
        // What was done together.
        r"(?:what|which|why|how|when|where)(?: \w+){0,3} (?:did|had|have|was|were) we\b",
        r"|(?:did|have|had|haven't|didn't) (?:we|i) (?:ever|already|once|previously|not already)\b",
        r"|(?:we|i) (?:had|have)? ?(?:previously|already once|last time)\b",
        r"|we (?:decided|agreed|settled on|discussed|talked about|figured out)\b",
        r"|(?:we|i) (?:recently|previously) \w+",
        // What was otherwise before.
        r"|(?:previously|formerly) (?:worked|was|were|had|used|passed|ran)\b|used to (?:work|be|pass|run|have)\b",
        r"|(?:worked|passed|ran) (?:fine |well )?(?:previously|yesterday|last (?:time|week|month))\b",
        r"|(?:is|are|was|were) our (?:[\w-]+ ){1,6}still\b",
        // When it was.
        r"|(?:the )?(?:last|previous|earlier|other|past) (?:session|sessions|chat|conversation|time we|time i|time you)\b",
        r"|(?:like|as|than|since|from) last time\b",
        r"|(?:last|the other) (?:week|month|night|year|day|monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b",
        r"|yesterday(?:'s)?\b",
        r"|(?:a few|a couple of|two|three|some|several|[0-9]+) (?:days|weeks|months) ago\b",
        // Memory.
        r"|(?:do|can|did) you (?:still |even )?remember\b",
        r"|remember (?:when|how|what|why|which|where) (?:we|you|i)\b",
        r"|(?:do|can) you recall\b",
        // Other languages: German, Spanish, French, Vietnamese.
        r"|(?:beim )?letzten? mal|neulich|gestern|letzte woche|hatten wir|haben wir (?:schon|jemals|damals)",
        r"|la última vez|ayer|la semana pasada|la dernière fois|hier,|la semaine dernière",
        r"|lần trước|hôm qua|tuần trước",
        r")",
        r"|上次|之前我们|昨天|上周|还记得|前回|この前|昨日|先週",
    ))
    .ok()
});

/// Matches sentences that ask to continue earlier work.
static CONTINUE: Pattern = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)\bwe (?:left|leave) off\b|\b(?:pick|picking) (?:it |this |things )?up (?:again )?where\b",
        r"|\bcontinue (?:where|from (?:last|yesterday|the (?:last|previous)))",
        r"|\bwo (?:waren|sind) wir (?:stehen)?geblieben\b|\bwhere were we\b",
    ))
    .ok()
});

/// Words of such sentences that say when something was or that it was done, in alphabetical order. An
/// answer need not have them.
const TIME_WORDS: &[&str] = &[
    "agreed",
    "already",
    "before",
    "change",
    "changed",
    "changes",
    "chat",
    "conversation",
    "currently",
    "day",
    "days",
    "decide",
    "decided",
    "discussed",
    "earlier",
    "ever",
    "fine",
    "formerly",
    "last",
    "made",
    "make",
    "month",
    "months",
    "once",
    "passed",
    "previous",
    "previously",
    "recall",
    "recently",
    "remember",
    "session",
    "sessions",
    "settled",
    "still",
    "talked",
    "time",
    "week",
    "weeks",
    "work",
    "worked",
    "working",
    "year",
    "yesterday",
];

/// Returns true if a word of a question about the past only says when something was, or that it was
/// done.
pub(super) fn is_time_word(word: &str) -> bool {
    TIME_WORDS.binary_search(&word.to_lowercase().as_str()).is_ok()
}

/// What a prompt asks of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PastQuestion {
    /// Where the last sessions ended.
    WhereWeStopped,
    /// A thing of the past, in the words of this sentence.
    About(String),
}

/// Returns what a prompt asks of the history; `None` if it does not ask about the past.
pub(super) fn find_past_question(prompt: &str) -> Option<PastQuestion> {
    let prompt = prompt.trim();
    // Agents pass their own notes and slash commands as prompts, too.
    if prompt.starts_with(['/', '!', '<', '#', '{', '[']) {
        return None;
    }
    let examined = &prompt[..prompt.floor_char_boundary(MAX_EXAMINED_BYTES)];
    let sentences = examined.split_inclusive(['.', '?', '!', '\n', '。', '？', '！']);
    for sentence in sentences.map(str::trim).filter(|text| text.len() <= MAX_SENTENCE_BYTES) {
        if is_match(&CONTINUE, sentence) {
            return Some(PastQuestion::WhereWeStopped);
        }
        if is_match(&PAST, sentence) {
            return Some(PastQuestion::About(sentence.to_owned()));
        }
    }
    None
}

fn is_match(pattern: &Pattern, text: &str) -> bool {
    match &**pattern {
        Some(pattern) => pattern.is_match(text),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patterns_compile() {
        assert!(PAST.is_some() && CONTINUE.is_some());
        assert!(TIME_WORDS.is_sorted() && is_time_word("Recently") && !is_time_word("cache"));
    }

    #[test]
    fn questions_about_the_past_are_recognized() {
        for prompt in [
            "What did we decide about the retry budget?",
            "why exactly did we drop the cache",
            "Did we ever fix the flaky login test?",
            "do you remember how the importer broke",
            "In the last session you changed the parser. Show me that file.",
            "we recently made changes to the pier client. did we do this properly",
            "the import previously worked, is it the new limit?",
            "The upload used to work without a token",
            "So is our retry work with the feature flags still valid?",
            "The build is slow. Yesterday it was fast, what changed in the config?",
            "Was hatten wir beim letzten Mal entschieden?",
            "上次我们怎么修的",
        ] {
            assert!(matches!(find_past_question(prompt), Some(PastQuestion::About(_))), "{prompt}");
        }
        for prompt in
            ["Continue where we left off", "let's pick up where we stopped", "where were we?"]
        {
            assert_eq!(find_past_question(prompt), Some(PastQuestion::WhereWeStopped), "{prompt}");
        }
    }

    #[test]
    fn requests_about_now_are_not() {
        for prompt in [
            "Run the tests before you commit",
            "Did you run the linter?",
            "Remember to update the changelog",
            "also remember the notes in a.md",
            "Why does this fail?",
            "Add a column with the last login",
            "we should cache this",
            "/resume yesterday",
            "fix the previous commit",
            "continue",
            "This test is used to check the parser",
            "is the build still running",
            "show the text as it was",
            "",
        ] {
            assert_eq!(find_past_question(prompt), None, "{prompt}");
        }
        let pasted = format!("fix this: {} yesterday", "x ".repeat(300));
        assert_eq!(find_past_question(&pasted), None);
    }
}
