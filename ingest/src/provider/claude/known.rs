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

/// Types of attachments.
#[rustfmt::skip]
pub(super) const ATTACHMENTS: &[&str] = &[
    "agent_listing_delta", "attachment", "auto_mode", "batching_reminder_sent", "budget_usd",
    "command_permissions", "compact_file_reference", "date_change", "deferred_tools_delta",
    "dynamic_skill", "edited_text_file", "file", "hook_additional_context", "hook_blocking_error",
    "hook_non_blocking_error", "hook_success", "invoked_skills", "mcp_instructions_delta",
    "nested_memory", "plan_mode", "plan_mode_exit", "queued_command", "read_truncation_notice",
    "silent_turn_reminder", "skill_listing", "task_reminder", "task_status", "todo_reminder",
    "total_tokens_reminder", "ultra_effort_enter", "ultra_effort_exit",
];

/// Types of records of the system.
#[rustfmt::skip]
pub(super) const SYSTEM: &[&str] = &[
    "api_error", "api_refusal", "compact_boundary", "error", "local_command",
    "microcompact_boundary", "model_refusal_fallback", "session_start", "stop_hook_summary",
    "system", "turn_duration",
];

/// Types of progress.
#[rustfmt::skip]
pub(super) const PROGRESS: &[&str] = &[
    "agent_progress", "bash_progress", "hook_progress", "mcp_progress", "progress", "query_update",
    "search_results_received", "waiting_for_task",
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
