//! Ranked search: scores the events that match a question, best first.

mod estimate;
mod ranked_search;
mod score;
mod terms;
mod weigh;
mod weight_tables;
mod word_presence;

pub use ranked_search::{RankedPage, RankedPosition, can_rank, search_ranked};
pub(super) use terms::question_stem;
