//! Record types and fields that the Claude Code decoder knows, as found in real logs
//! (docs/formats.md#claude-code). Anything else counts as drift of the format. The lists are
//! sorted.

/// Types of Claude's records.
#[rustfmt::skip]
pub(super) const RECORDS: &[&str] = &[
    "agent-name", "ai-title", "assistant", "atis-latch", "attachment", "bridge-session",
    "custom-title", "file-history-delta", "file-history-snapshot", "frame-link", "last-prompt",
    "mode", "permission-mode", "pr-link", "progress", "queue-operation", "relocated", "result",
    "started", "summary", "system", "user", "worktree-state",
];

/// Top-level fields of Claude's records.
#[rustfmt::skip]
pub(super) const FIELDS: &[&str] = &[
    "advisorModel", "agentId", "agentName", "aiTitle", "apiErrorIsTransient", "apiErrorStatus",
    "apiRefusalCategory", "apiRefusalExplanation", "atis", "attachment", "attributionAgent",
    "attributionMcpServer", "attributionMcpTool", "attributionPlugin", "attributionSkill",
    "backup", "bridgeSessionId", "cause", "classifierMetaLines", "compactMetadata", "content",
    "customTitle", "cwd", "data", "direction", "durationMs", "effort", "entrypoint", "error",
    "errorDetails", "fallbackModel", "forkedFrom", "frameUrl", "gitBranch", "hasOutput",
    "hookAdditionalContext", "hookCount", "hookErrors", "hookInfos", "imagePasteIds",
    "interruptedByShutdown", "interruptedMessageId", "isAbortedMidStream", "isApiErrorMessage",
    "isCompactSummary", "isMeta", "isSidechain", "isSnapshotUpdate", "isVisibleInTranscriptOnly",
    "key", "lastPrompt", "lastSequenceNum", "leafUuid", "level", "logicalParentUuid", "maxRetries",
    "mcpMeta", "message", "messageCount", "messageId", "microcompactMetadata", "mode", "name",
    "operation", "origin", "originalModel", "ownerAccountUuid", "ownerOrganizationUuid",
    "parentToolUseID", "parentUuid", "path", "pendingBackgroundAgentCount", "pendingWorkflowCount",
    "permissionMode", "planContent", "prNumber", "prRepository", "prUrl", "preventedContinuation",
    "promptId", "promptSource", "queuePriority", "refusedUserMessageUuid", "relocatedCwd",
    "requestId", "result", "retractedMessageUuids", "retryAttempt", "retryInMs", "scheduledTaskId",
    "scope", "sessionId", "sessionKind", "session_id", "slug", "snapshot", "snapshotMessageId",
    "source", "sourceToolAssistantUUID", "sourceToolUseID", "stopReason", "subtype", "summary",
    "supersedesUuids", "teamName", "thinkingMetadata", "timestamp", "title", "todos",
    "toolDenialKind", "toolEndsTurn", "toolUseID", "toolUseResult", "trackingPath", "trigger",
    "turnCompanion", "turnOrigin", "type", "url", "userFeedback", "userType", "uuid", "version",
    "worktreeSession",
];

/// Fields of the message of a response.
#[rustfmt::skip]
pub(super) const MESSAGE_FIELDS: &[&str] = &[
    "container", "content", "context_management", "diagnostics", "id", "model", "role",
    "stop_details", "stop_reason", "stop_sequence", "type", "usage",
];

/// Fields of the token counts of a response.
#[rustfmt::skip]
pub(super) const USAGE_FIELDS: &[&str] = &[
    "cache_creation", "cache_creation_input_tokens", "cache_read_input_tokens", "inference_geo",
    "input_tokens", "iterations", "output_tokens", "output_tokens_details", "server_tool_use",
    "service_tier", "speed",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted() {
        for list in [RECORDS, FIELDS, MESSAGE_FIELDS, USAGE_FIELDS] {
            assert!(list.is_sorted());
        }
    }
}
