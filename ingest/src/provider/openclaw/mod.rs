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
//! <uuid>.trajectory.jsonl         repeats the session in another form
//! ```
//!
//! A copy claims the same session as the log, so the events that it repeats are replays. A
//! trajectory is read only if there is neither a log nor a copy (`trajectory.rs`).

pub(super) mod gateway;
mod machine;
pub(super) mod place;
mod trajectory;

use std::path::{Path, PathBuf};

use schemas::Provider;
use serde::Deserialize;

use self::place::{STATE_FOLDERS, is_openclaw_log};
use self::trajectory::{TrajectoryDecoder, TrajectoryState, find_session_id};
use super::pi;
use crate::provider::format::{
    AgentFolders, LineDecoder, LogFormat, LogHead, LogReader, Quirks, RecordOutcome, SessionClaim,
};
use crate::stream::{RecordAt, Stream};
use crate::text::json::Value;

/// Entries are identified by id and time, as for Pi.
pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::OpenClaw,
    has_unique_ids: true,
    decoder_version: 5,
    roots: log_roots,
    sniff: claim_log,
    quirks: Quirks {
        is_log_name: Some(is_log_name),
        is_stored_elsewhere: Some(is_trajectory_of_log),
        machine_texts: machine::TEXTS,
        ..Quirks::NONE
    },
    reader: LogReader::Lines(|_, state| {
        let state = state.and_then(|state| TrajectoryState::deserialize(state).ok());
        Box::new(OpenClawDecoder {
            entries: pi::open_decoder(true),
            trajectory: TrajectoryDecoder::new(state.unwrap_or_default()),
        })
    }),
};

/// Returns whether a file is a log, if its name decides against its extension. The names of copies
/// continue after the extension of a log.
fn is_log_name(name: &str) -> Option<bool> {
    let is_copy =
        [".jsonl.reset.", ".jsonl.deleted.", ".jsonl.bak"].iter().any(|mark| name.contains(mark));
    is_copy.then_some(true)
}

/// Returns whether a file is the trajectory of a session whose log, or a copy of it, is in the same
/// folder.
fn is_trajectory_of_log(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some(session) = name.strip_suffix(".trajectory.jsonl") else { return false };
    let log = format!("{session}.jsonl");
    let files = path.parent().and_then(|folder| std::fs::read_dir(folder).ok());
    let mut files = files.into_iter().flatten().flatten();
    files.any(|file| file.file_name().to_string_lossy().starts_with(&log))
}

/// Decodes a log of the engine, or a trajectory.
struct OpenClawDecoder {
    entries: Box<dyn LineDecoder>,
    trajectory: TrajectoryDecoder,
}

impl LineDecoder for OpenClawDecoder {
    fn decode_record(
        &mut self,
        record: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        if trajectory::is_event(record) {
            self.trajectory.decode_event(record, at, out)
        } else {
            self.entries.decode_record(record, raw, at, out)
        }
    }

    fn save_state(&self) -> String {
        self.trajectory.save_state()
    }
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
    if let Some(id) = find_session_id(head) {
        return (!is_trajectory_of_log(head.path))
            .then(|| SessionClaim::new(Provider::OpenClaw, id));
    }
    if is_openclaw_log(head) { pi::claim_engine_log(head, Provider::OpenClaw) } else { None }
}
