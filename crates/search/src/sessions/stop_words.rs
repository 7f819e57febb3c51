//! Words of questions that say nothing about what is looked for.

/// English words that most texts have, in alphabetical order. The list is that of the Natural
/// Language Toolkit without apostrophes.
const STOP_WORDS: &[&str] = &[
    "about",
    "above",
    "after",
    "again",
    "against",
    "all",
    "and",
    "any",
    "are",
    "aren",
    "because",
    "been",
    "before",
    "being",
    "below",
    "between",
    "both",
    "but",
    "can",
    "could",
    "couldn",
    "did",
    "didn",
    "does",
    "doesn",
    "doing",
    "don",
    "down",
    "during",
    "each",
    "few",
    "for",
    "from",
    "further",
    "had",
    "hadn",
    "has",
    "hasn",
    "have",
    "haven",
    "having",
    "her",
    "here",
    "hers",
    "herself",
    "him",
    "himself",
    "his",
    "how",
    "into",
    "isn",
    "its",
    "itself",
    "just",
    "mightn",
    "more",
    "most",
    "must",
    "mustn",
    "myself",
    "need",
    "needn",
    "nor",
    "not",
    "now",
    "off",
    "once",
    "only",
    "other",
    "our",
    "ours",
    "ourselves",
    "out",
    "over",
    "own",
    "same",
    "shan",
    "she",
    "should",
    "shouldn",
    "some",
    "such",
    "than",
    "that",
    "the",
    "their",
    "theirs",
    "them",
    "themselves",
    "then",
    "there",
    "these",
    "they",
    "this",
    "those",
    "through",
    "too",
    "under",
    "until",
    "very",
    "was",
    "wasn",
    "were",
    "weren",
    "what",
    "when",
    "where",
    "which",
    "while",
    "who",
    "whom",
    "why",
    "will",
    "with",
    "won",
    "would",
    "wouldn",
    "you",
    "your",
    "yours",
    "yourself",
    "yourselves",
];

/// Words of the questions themselves, in alphabetical order: "do you remember the time when we
/// talked about ...".
const QUESTION_WORDS: &[&str] = &[
    "describe",
    "discuss",
    "ever",
    "kind",
    "mention",
    "remember",
    "said",
    "say",
    "someone",
    "something",
    "sort",
    "talk",
    "tell",
    "thing",
    "time",
    "type",
    "way",
];

/// Words with which a question about a session begins before it comes to the matter, in alphabetical
/// order: "find the chat where", "some weeks ago there was", "I think we".
const OPENING_WORDS: &[&str] = &[
    "ago",
    "asked",
    "believe",
    "chat",
    "conversation",
    "days",
    "dealt",
    "discussion",
    "find",
    "looked",
    "months",
    "recall",
    "session",
    "think",
    "thought",
    "thread",
    "weeks",
];

/// True if a lowercase word says nothing about what is looked for if the question begins with it.
pub(super) fn is_opening_word(word: &str) -> bool {
    OPENING_WORDS.binary_search(&word).is_ok()
}

/// True if a lowercase word, or its stem, says nothing about what is looked for.
pub(super) fn is_stop_word(word: &str, stem: &str) -> bool {
    let is_listed = |list: &[&str], word: &str| list.binary_search(&word).is_ok();
    is_listed(STOP_WORDS, word)
        || is_listed(QUESTION_WORDS, word)
        || is_listed(QUESTION_WORDS, stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted() {
        assert!(STOP_WORDS.is_sorted() && QUESTION_WORDS.is_sorted());
        assert!(OPENING_WORDS.is_sorted() && is_opening_word("dealt"));
        assert!(is_stop_word("the", "the") && is_stop_word("talked", "talk"));
        assert!(!is_stop_word("cache", "cach"));
    }
}
