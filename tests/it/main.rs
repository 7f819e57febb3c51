//! The real command line and the real server, driven as a user and a client would.
//!
//! One binary: every further one would link DuckDB again. Tests on real logs need
//! `SESSIONS_REAL_LOGS`; without it they say that they were skipped.

mod cli;
mod crash;
mod damage;
mod env;
mod layers;
mod mcp;
mod oracle;
mod readers;
mod real;
mod real_coordinates;
mod samples;
mod sql;
mod sql_escapes;
mod stats;
mod work;
