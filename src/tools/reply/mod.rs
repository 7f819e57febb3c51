//! Declares what the tools share: the state of a call, and the parts from which replies are built.

pub(crate) mod answer;
pub(crate) mod budget;
pub(crate) mod call;
pub(crate) mod caller;
pub(crate) mod complete;
pub(crate) mod convert;
pub(crate) mod cursor;
pub(crate) mod event_predicates;
pub(crate) mod freshness;
pub(crate) mod interface;
pub(crate) mod lake_engine;
pub(crate) mod pending;
pub(crate) mod retention_warning;
pub(crate) mod rows;
pub(crate) mod scope;
pub(crate) mod selection;
mod session_census;
pub(crate) mod session_filter;
pub(crate) mod session_sums;
pub(crate) mod shared_state;
pub(crate) mod store_warnings;
pub(crate) mod text_share;
pub(crate) mod time_range;
pub(crate) mod transcript;
pub(crate) mod turn_costs;
pub(crate) mod usage_warnings;
