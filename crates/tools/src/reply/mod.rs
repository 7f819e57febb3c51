//! Declares what the tools share: the state of a call, and the parts from which replies are built.

pub mod answer;
pub mod budget;
pub mod call;
pub mod caller;
pub mod complete;
pub mod convert;
pub mod cursor;
pub mod event_predicates;
pub mod freshness;
pub mod interface;
pub mod lake_engine;
pub mod pending;
pub mod retention_warning;
pub mod rows;
pub mod scope;
pub mod selection;
mod session_census;
pub mod session_filter;
pub mod session_sums;
pub mod shared_state;
pub mod store_warnings;
pub mod text_share;
pub mod time_range;
pub mod transcript;
pub mod turn_costs;
pub mod usage_warnings;
