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

/// Words of German, French and Spanish that most texts in these languages have, in the order of their
/// bytes. Questions in another language than the sessions are answered by the names in them. Words that
/// are English ones, too, are left out.
const FOREIGN_STOP_WORDS: &[&str] = &[
    "aber", "alle", "als", "auch", "auf", "aus", "avec", "avons", "bei", "beim", "bis", "cela",
    "ces", "cette", "chez", "cual", "cuando", "cómo", "dann", "dans", "das", "dass", "dazu",
    "dein", "denn", "der", "des", "deux", "diese", "dieser", "dieses", "doch", "donc", "donde",
    "dont", "dort", "durch", "ein", "eine", "einem", "einen", "einer", "eines", "elles", "entre",
    "erst", "est", "estaba", "für", "gab", "gegen", "gibt", "habe", "haben", "hatte", "hatten",
    "ich", "ihr", "ihre", "immer", "ist", "jetzt", "kann", "kein", "keine", "les", "leur", "lui",
    "mais", "mit", "muss", "nach", "nicht", "noch", "nos", "notre", "nous", "nur", "oder", "ohne",
    "où", "para", "parce", "pas", "por", "pour", "pourquoi", "quand", "que", "quel", "quelle",
    "quelles", "quels", "qui", "qué", "sans", "sehr", "sein", "seine", "sich", "sie", "sind",
    "sobre", "sont", "sur", "tous", "tout", "toute", "una", "und", "une", "unos", "uns", "unser",
    "unter", "vom", "von", "vor", "vos", "votre", "vous", "wann", "waren", "warum", "weil",
    "welche", "welchem", "welchen", "welcher", "welches", "wenn", "werden", "wie", "wir", "wird",
    "worden", "wurde", "wurden", "zum", "zur", "zwischen", "über",
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
        || is_listed(FOREIGN_STOP_WORDS, word)
        || is_listed(QUESTION_WORDS, word)
        || is_listed(QUESTION_WORDS, stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted() {
        assert!(STOP_WORDS.is_sorted() && QUESTION_WORDS.is_sorted());
        assert!(FOREIGN_STOP_WORDS.is_sorted() && is_stop_word("für", "für"));
        assert!(OPENING_WORDS.is_sorted() && is_opening_word("dealt"));
        assert!(is_stop_word("the", "the") && is_stop_word("talked", "talk"));
        assert!(!is_stop_word("cache", "cach"));
    }
}
