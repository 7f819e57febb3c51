//! OpenClaw: `~/.openclaw/agents/<agent>/sessions/<uuid>.jsonl` (docs/formats.md#openclaw). The
//! entries are those of Pi (`pi/`). This file holds the differences: the folders of the logs, and
//! the text that the gateway puts around words that a user sends through a messenger.
//!
//! The folder of a session also holds copies of it (`.jsonl.reset.<time>`, `.jsonl.deleted.<time>`,
//! `.jsonl.bak-<pid>-<ms>`, `.checkpoint.<uuid>.jsonl`). A copy has the same header and claims the
//! same session, so its repeated events are copies. `.trajectory.jsonl` has no such header and is
//! not a transcript.

pub(super) mod gateway;
pub(super) mod place;

use std::path::PathBuf;

use schemas::Provider;

use self::place::{FOLDERS, is_ours};
use super::pi;
use crate::provider::format::{Claim, Format, Head, Places, Quirks, Reader};

/// Entries are identified by id and time, as for Pi.
pub(super) const FORMAT: Format = Format {
    provider: Provider::OpenClaw,
    unique_ids: true,
    roots,
    sniff,
    quirks: Quirks { is_log_name: Some(is_log_name), ..Quirks::NONE },
    reader: Reader::Lines(pi::open),
};

/// Returns whether a file is a log although its name continues after the extension, as those of
/// copies do, or none although it has the extension of a log: trajectories repeat the log in another
/// schema.
fn is_log_name(name: &str) -> Option<bool> {
    let is_copy =
        [".jsonl.reset.", ".jsonl.deleted.", ".jsonl.bak"].iter().any(|mark| name.contains(mark));
    let is_trajectory = name.ends_with(".trajectory.jsonl");
    (is_copy || is_trajectory).then_some(is_copy)
}

/// Returns only the folders of sessions, because the keys of the agents are stored next to them.
fn roots(places: &Places<'_>) -> Vec<PathBuf> {
    let moved = places.set("OPENCLAW_STATE_DIR");
    let states = moved.into_iter().chain(FOLDERS.iter().map(|folder| places.home(folder)));
    let agents: Vec<PathBuf> = states.map(|state| state.join("agents")).collect();
    let mut roots: Vec<PathBuf> = agents
        .iter()
        .filter_map(|agents| std::fs::read_dir(agents).ok())
        .flatten()
        .filter_map(|agent| Some(agent.ok()?.path().join("sessions")))
        .collect();
    roots.sort();
    // If no folder exists yet, the doctor shows where one would be.
    let first = agents.into_iter().take(usize::from(roots.is_empty()));
    roots.extend(first.map(|agents| agents.join("main/sessions")));
    roots
}

fn sniff(head: &Head<'_>) -> Option<Claim> {
    if is_ours(head) { pi::claim(head, Provider::OpenClaw) } else { None }
}
