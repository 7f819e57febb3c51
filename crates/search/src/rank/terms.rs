//! Splits a query into the words by which results are ranked.

use crate::query::Query;
use crate::query::pattern::QueryPattern;
use crate::sessions::SessionQuestion;
use base::fold::{fold_text, nfc_if_different};
use base::word_form::common_form;

/// Returns the words of a query by which results are ranked: those of its bare words, and those of the
/// phrases that it requires.
pub(super) fn ranked_question(query: &Query) -> SessionQuestion {
    let mut text = String::new();
    for clause in query.clauses.iter().filter(|clause| !clause.is_excluded) {
        for pattern in &clause.any {
            let QueryPattern::Text(words) = pattern else { continue };
            text.push_str(words);
            text.push(' ');
        }
    }
    let question = SessionQuestion::parse_matter(&text);
    if question.terms.is_empty() { SessionQuestion::parse_every_word(&text) } else { question }
}

/// Returns true if a query has a word to rank by.
pub fn can_rank(query: &Query) -> bool {
    !ranked_question(query).terms.is_empty()
}

/// Returns the words by which a ranked search looks for a bare word or a phrase of the query.
pub(crate) fn words_of(text: &str) -> Vec<String> {
    SessionQuestion::parse(text).words()
}

/// Returns the text by which events are searched for a bare word of a ranked query: the beginning that
/// its regular forms share.
pub(crate) fn question_stem(word: &str) -> String {
    let folded = fold_text(&nfc_if_different(word).unwrap_or_else(|| word.to_owned())).into_owned();
    let common = common_form(&folded);
    // `query` is also `queries`; a short word keeps its last letter, or it would be in every text.
    let beginning = common.strip_suffix('y').filter(|rest| rest.len() > 3).unwrap_or(&common);
    if folded.starts_with(beginning) { beginning.to_owned() } else { folded }
}

#[cfg(test)]
mod tests {
    use schemas::Timestamp;

    use super::*;

    fn words(query: &str) -> Vec<String> {
        ranked_question(&Query::parse(query, Timestamp(0)).expect("parses")).words()
    }

    #[test]
    fn words_of_the_query_rank_and_stop_words_only_if_alone() {
        assert_eq!(words("Why did the builds fail, and where?"), ["builds", "fail"]);
        assert_eq!(words("why was that"), ["why", "was", "that"]);
        assert_eq!(words("the builds of 3 June in the morning"), ["builds"]);
        assert_eq!(words("in June"), ["June"]);
        assert_eq!(words("\"The Builds\" tool:Bash -frozen"), ["Builds"]);
        assert_eq!(words("连接失败 main.rs"), ["连接", "接失", "失败", "main"]);
        assert!(!can_rank(&Query::parse("/builds/", Timestamp(0)).expect("parses")));
    }

    #[test]
    fn a_word_is_searched_for_without_its_ending() {
        assert_eq!(question_stem("Builds"), "build");
        assert_eq!(question_stem("queries"), "quer");
        assert_eq!(question_stem("key"), "key");
        // An irregular form is searched for as it is.
        assert_eq!(question_stem("took"), "took");
        assert_eq!(question_stem("main.rs"), "main.rs");
    }
}
