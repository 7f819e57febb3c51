//! `--engine spark://HOST:PORT`: answers over a lake through Spark Connect (docs/team.md).
//!
//! This program reads what is small: the listings, the rows of sessions and the skip indexes. It
//! decides by them which objects can have matches. Spark reads the events: it filters, counts and
//! orders them, and returns the rows of the few sessions that an answer shows. These go into a store,
//! from which the tools answer as from any other.

mod answers;
mod condition;
mod connection;
mod engine;
mod failure;
mod loader;
mod matches;
mod pruning;
mod query;
mod relation;
mod statement;
mod windows;

pub use engine::{EngineLimits, SparkEngine};
