//! Reads the session logs of OpenClaw from `~/.openclaw/agents/<agent>/sessions/`
//! (docs/formats.md#openclaw).
//!
//! The entries are those of Pi (`pi/`). This folder holds the differences: the folders of the logs,
//! and the text that the gateway puts around words that a user sends through a messenger.
//!
//! ```text
//! <uuid>.jsonl                    the log
//! <uuid>.jsonl.reset.<time>       copies of the log: the header is the same
//! <uuid>.jsonl.deleted.<time>
//! <uuid>.jsonl.bak-<pid>-<ms>
//! <uuid>.checkpoint.<uuid>.jsonl
//! <uuid>.trajectory.jsonl         repeats the session in another form; not read
//! ```
//!
//! A copy claims the same session as the log, so the events that it repeats are replays.

pub(super) mod gateway;
mod machine;
pub(super) mod place;

use std::path::PathBuf;

use schemas::Provider;

use self::place::{STATE_FOLDERS, is_openclaw_log};
use super::pi;
use crate::provider::format::{AgentFolders, LogFormat, LogHead, LogReader, Quirks, SessionClaim};

/// Entries are identified by id and time, as for Pi.
pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::OpenClaw,
    has_unique_ids: true,
    decoder_version: 1,
    roots: log_roots,
    sniff: claim_log,
    quirks: Quirks {
        is_log_name: Some(is_log_name),
        machine_texts: machine::TEXTS,
        ..Quirks::NONE
    },
    reader: LogReader::Lines(pi::open_decoder),
};

/// Returns whether a file is a log, if its name decides against its extension. The names of copies
/// continue after the extension of a log, and trajectories have that extension but are not logs.
fn is_log_name(name: &str) -> Option<bool> {
    let is_copy =
        [".jsonl.reset.", ".jsonl.deleted.", ".jsonl.bak"].iter().any(|mark| name.contains(mark));
    let is_trajectory = name.ends_with(".trajectory.jsonl");
    (is_copy || is_trajectory).then_some(is_copy)
}

/// Returns the folders of sessions of all agents, and no folder above them, because the keys of the
/// agents are stored there.
fn log_roots(places: &AgentFolders<'_>) -> Vec<PathBuf> {
    let mut states: Vec<PathBuf> = Vec::new();
    states.extend(places.env_path("OPENCLAW_STATE_DIR"));
    states.extend(STATE_FOLDERS.iter().map(|folder| places.home_path(folder)));

    let mut roots = Vec::new();
    for state in &states {
        let Ok(agents) = std::fs::read_dir(state.join("agents")) else { continue };
        roots.extend(agents.flatten().map(|agent| agent.path().join("sessions")));
    }
    roots.sort();

    // If no folder exists yet, the doctor shows where one would be.
    if roots.is_empty() {
        roots.extend(states.first().map(|state| state.join("agents/main/sessions")));
    }
    roots
}

fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    if is_openclaw_log(head) { pi::claim_engine_log(head, Provider::OpenClaw) } else { None }
}
