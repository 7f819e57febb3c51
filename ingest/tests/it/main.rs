//! Ingest as a whole, into memory: golden files, cuts of growing logs, traps of the formats.

mod aliases;
mod arrival;
mod batches;
mod claude;
mod codex;
mod codex_forks;
mod cuts;
mod databases;
mod drift;
mod earlier;
mod exports;
mod flips;
mod golden;
mod gone;
mod hermes;
#[path = "../../../tests/it/left_out.rs"]
mod left_out;
mod memory;
mod openhands;
mod others;
mod prompts;
mod redact;
mod redact_services;
mod reported;
mod rewritten;
mod roots;
#[path = "../../../tests/it/rounds.rs"]
mod rounds;
#[cfg(target_os = "linux")]
mod sparse;
mod traps;
mod unread;
mod usage;
