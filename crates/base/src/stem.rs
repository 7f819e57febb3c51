//! Removes the endings of English words.

/// Returns the word without its English ending. Returns the whole word if it is not ASCII letters,
/// has no such ending, or would keep fewer than four letters.
pub fn stem(word: &str) -> &str {
    if !word.bytes().all(|b| b.is_ascii_alphabetic()) {
        return word;
    }
    let endings = [
        "ations", "ation", "ingly", "ments", "ment", "ings", "ing", "ies", "edly", "ed", "es",
        "ly", "s", "e", "y",
    ];

    let stems = endings.iter().filter_map(|ending| word.strip_suffix(ending));
    stems.map(|stem| stem.trim_end_matches("s")).find(|stem| stem.len() >= 4).unwrap_or(word)
}
