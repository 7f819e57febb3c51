//! Machine text in the user's role as OpenClaw writes it (docs/formats.md#openclaw).

use crate::provider::shared::machine_text::MachineText;

/// Messages that no user wrote, without the envelope around them.
#[rustfmt::skip]
pub(crate) const TEXTS: &[MachineText] = &[
    MachineText { start: "A new session was started via /new or /reset", end: "", subtype: "session_reset", seen: "docs" },
    MachineText { start: "Read HEARTBEAT.md", end: "", subtype: "heartbeat", seen: "docs" },
    MachineText { start: "[OpenClaw heartbeat poll]", end: "", subtype: "heartbeat", seen: "docs" },
    MachineText { start: "Follow the heartbeat monitor scratch context", end: "", subtype: "heartbeat", seen: "docs" },
    MachineText { start: "[OpenClaw exec completion]", end: "", subtype: "exec_completion", seen: "docs" },
    MachineText { start: "An async command you ran earlier has completed.", end: "", subtype: "exec_completion", seen: "docs" },
    MachineText { start: "An async command completion event was triggered", end: "", subtype: "exec_completion", seen: "docs" },
    MachineText { start: "[OpenClaw cron wake]", end: "", subtype: "cron", seen: "docs" },
    MachineText { start: "[cron:", end: "", subtype: "cron", seen: "docs" },
    MachineText { start: "A scheduled reminder has been triggered.", end: "", subtype: "cron", seen: "docs" },
    MachineText { start: "A scheduled cron event was triggered", end: "", subtype: "cron", seen: "docs" },
    MachineText { start: "[OpenClaw session event]", end: "", subtype: "session_event", seen: "docs" },
    MachineText { start: "Pre-compaction memory flush", end: "", subtype: "memory_flush", seen: "docs" },
    MachineText { start: "Continue where you left off. The previous", end: "", subtype: "retry", seen: "docs" },
    MachineText { start: "[Retry after", end: "", subtype: "retry", seen: "docs" },
    MachineText { start: "[Queue overflow]", end: "", subtype: "queue_overflow", seen: "docs" },
    MachineText { start: "[Queued announce messages while agent was busy]", end: "", subtype: "inter_session", seen: "docs" },
    MachineText { start: "[System] ", end: "", subtype: "interrupted", seen: "docs" },
    MachineText { start: "[Subagent Context]", end: "", subtype: "subagent_context", seen: "docs" },
    MachineText { start: "[Inter-session message]", end: "", subtype: "inter_session", seen: "docs" },
    MachineText { start: "[Internal task completion event]", end: "", subtype: "task_completion", seen: "docs" },
];
