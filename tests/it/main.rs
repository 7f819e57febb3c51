//! The real command line and the real server, driven as a user and a client would.
//!
//! One binary: every further one would link DuckDB again. Tests on real logs need
//! `SESSIONS_REAL_LOGS`; without it they say that they were left out.

mod aliases;
mod analyze;
mod answers;
mod archive;
#[cfg(feature = "cloud")]
mod buckets;
mod checks;
mod citations;
mod cli;
mod compact;
mod contract;
mod corruption;
mod costs;
mod crash;
#[cfg(unix)]
mod daily_jobs;
mod damage;
#[cfg(unix)]
mod dist;
mod docs;
mod earlier;
mod env;
mod environment;
mod event_order;
mod exclude;
mod export;
mod find;
#[cfg(unix)]
mod first_week;
mod forget;
mod forget_copies;
mod freshness;
mod fuzz;
mod golden;
mod help;
mod hooks;
mod hostile_ids;
mod hostile_names;
mod http;
mod http_probes;
mod identity;
mod images;
mod interchange;
mod lake;
mod lake_compact;
mod lake_instants;
mod lake_odd;
mod lake_parted;
mod lake_tombstones;
mod large_segments;
mod layers;
mod left_out;
mod limits;
mod local_server;
mod log;
mod logging;
mod mcp;
mod native;
mod odd_queries;
mod oracle;
mod outcome;
mod outputs;
mod packages;
#[cfg(unix)]
mod pictures;
mod plugin;
mod printed;
mod profile;
mod quiet;
mod quota;
mod readers;
mod readers_counts;
mod readers_http;
mod reading;
mod real;
mod real_coordinates;
mod redaction;
mod removed_files;
mod report;
mod responses;
mod restore;
mod restore_file;
mod resume;
mod rounds;
mod samples;
#[cfg(unix)]
mod screens;
mod scrub;
mod scrub_databases;
mod secrets;
#[cfg(unix)]
mod shell_completion;
mod shell_terminal;
mod shells;
mod shown;
mod since;
mod sizes;
#[cfg(all(unix, feature = "spark"))]
mod spark;
mod sql;
mod sql_escapes;
mod stats;
mod stdio;
mod store_safety;
mod surface;
mod tasks;
#[cfg(unix)]
mod terminal;
mod tool_schemas;
mod travel;
mod web;
mod work;
mod zones;
