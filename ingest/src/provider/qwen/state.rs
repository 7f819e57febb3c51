//! The state of the decoder between two records of a log.

use serde::{Deserialize, Serialize};

use super::telemetry::QwenTelemetry;

/// Fields of a record's envelope, which no notification repeats.
pub(super) const ENVELOPE: &[&str] = &[
    "type",
    "subtype",
    "uuid",
    "parentUuid",
    "sessionId",
    "timestamp",
    "cwd",
    "version",
    "gitBranch",
    "provenance",
    "promptId",
    "isSidechain",
    "agentId",
    "agentName",
    "agentColor",
    "forkedFrom",
];

/// A slash command. A record with the text that it sent to the model may follow.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SlashCommand {
    /// The command as the user typed it.
    pub(super) raw: String,
    /// The uuid of the command's record, which is the parent of the next record.
    pub(super) uuid: String,
    /// Time of the command in microseconds.
    pub(super) at: Option<i64>,
}

/// The facts about earlier records that later ones need.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct QwenState {
    pub(super) telemetry: QwenTelemetry,
    pub(super) command: Option<SlashCommand>,
    /// The title last set. Logs repeat the title.
    pub(super) title: Option<String>,
    /// The uuid of the last record.
    pub(super) last: Option<String>,
    /// True if the last record of the conversation was a model's.
    pub(super) in_response: bool,
}
