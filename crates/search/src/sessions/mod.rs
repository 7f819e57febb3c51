//! Ranks sessions by a half-remembered question, best first.
//!
//! The score of a session adds four parts: its talk (prompts and answers) as one text, its best three
//! consecutive talk events, its best single event or its title, and words that follow each other in
//! the question and are near each other in an event. A date, an agent or a project that the question
//! names adds to its sessions, and a session that it names by its id comes first. Nearly all of this is
//! computed from the word lists and the outlines of the skip index. Text is read for the neighbouring
//! words and for passages, of the few best sessions only.

mod dates;
mod named;
mod passages;
mod postings;
mod question;
mod ranked_session;
mod saturation;
mod score;
mod search;
mod stop_words;
mod text_terms;
mod titles;
mod totals;
mod windows;

pub(super) use passages::{
    TermPair, bound_pairs, find_best_place, find_places, read_texts, weigh_pairs,
};
pub(super) use postings::{AskedRows, SegmentHits};
pub use question::SessionQuestion;
pub use ranked_session::NamedParts;
pub(super) use score::{ScoredEvent, SessionPart, collect_parts, group_parts, place_matches};
pub(super) use search::find_hits;
pub use search::{
    FoundPassage, FoundSession, SessionRank, SessionRequest, SessionResults, search_sessions,
};
pub(super) use totals::{Averages, Totals};
