//! Ranked search: scores the events that have words of a question, best first.
//!
//! Words are found in the word lists of the skip index, as for sessions. An event is scored by its own
//! words, those of the talk next to it and those of its session. Text is read only for what the query
//! requires, and of the best events, for words that are near each other.

mod candidates;
mod event_scorer;
mod ranked_search;
mod seen_events;
mod terms;

pub use ranked_search::{RankedPage, search_ranked};
pub use seen_events::RankedPosition;
pub use terms::can_rank;
pub(super) use terms::{question_stem, words_of};
