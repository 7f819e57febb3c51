//! Record types and fields that the Codex decoder knows, as found in real logs
//! (docs/formats.md#codex). Anything else counts as drift of the format. The lists are sorted.

/// Types of Codex's records, and of the payloads that they wrap.
#[rustfmt::skip]
pub(super) const RECORDS: &[&str] = &[
    "compacted", "event_msg/agent_message", "event_msg/agent_reasoning",
    "event_msg/agent_reasoning_raw_content", "event_msg/agent_reasoning_section_break",
    "event_msg/collab_agent_interaction_end", "event_msg/collab_agent_spawn_end",
    "event_msg/collab_close_end", "event_msg/collab_waiting_end", "event_msg/context_compacted",
    "event_msg/dynamic_tool_call_request", "event_msg/dynamic_tool_call_response",
    "event_msg/entered_review_mode", "event_msg/error", "event_msg/exec_command_begin",
    "event_msg/exec_command_end", "event_msg/exec_command_output_delta",
    "event_msg/exited_review_mode", "event_msg/guardian_assessment",
    "event_msg/image_generation_end", "event_msg/item_completed", "event_msg/mcp_tool_call_begin",
    "event_msg/mcp_tool_call_end", "event_msg/patch_apply_begin", "event_msg/patch_apply_end",
    "event_msg/sub_agent_activity", "event_msg/task_complete", "event_msg/task_started",
    "event_msg/thread_goal_updated", "event_msg/thread_name_updated",
    "event_msg/thread_rolled_back", "event_msg/thread_settings_applied", "event_msg/token_count",
    "event_msg/turn.completed", "event_msg/turn_aborted", "event_msg/undo_completed",
    "event_msg/user_message", "event_msg/view_image_tool_call", "event_msg/web_search_begin",
    "event_msg/web_search_end", "inter_agent_communication_metadata", "response_item/agent_message",
    "response_item/custom_tool_call", "response_item/custom_tool_call_output",
    "response_item/function_call", "response_item/function_call_output",
    "response_item/ghost_snapshot", "response_item/image_generation_call",
    "response_item/local_shell_call", "response_item/local_shell_call_output",
    "response_item/message", "response_item/reasoning", "response_item/tool_search_call",
    "response_item/tool_search_output", "response_item/web_search_call", "session_meta",
    "token_usage_record", "turn_context", "world_state",
];

/// Types of completed items that become a notification.
pub(super) const ITEMS: &[&str] = &["Plan"];

/// Fields of Codex's records, and of the payloads that they wrap.
#[rustfmt::skip]
pub(super) const FIELDS: &[&str] = &[
    "action", "action_name", "active_permission_profile", "agent_nickname", "agent_path",
    "agent_role", "agent_statuses", "agent_thread_id", "aggregated_output", "app_name",
    "approval_policy", "approvals_reviewer", "arguments", "audio", "author", "base_instructions",
    "callId", "call_id", "changes", "cli_version", "client_id", "codex_error_info",
    "collaboration_mode", "collaboration_mode_kind", "command", "comp_hash",
    "compaction_response_id", "completed_at", "completed_at_ms", "connector_id", "content",
    "content_items", "context_window", "creator_account_id", "creator_user_id", "current_date",
    "cwd", "decision_source", "developer_instructions", "duration", "duration_ms", "dynamic_tools",
    "effort", "encrypted_content", "error", "event_id", "execution", "exit_code",
    "file_system_sandbox_policy", "final_output_json_schema", "first_window_id", "forked_from_id",
    "formatted_output", "full", "ghost_commit", "git", "goal", "history_mode", "id", "images",
    "info", "input", "instructions", "internal_chat_message_metadata_passthrough", "invocation",
    "item", "item_id", "kind", "last_agent_message", "latest_token_usage_record", "link_id",
    "local_audio", "local_images", "memory_citation", "memory_mode", "message", "metadata",
    "model", "model_context_window", "model_provider", "multi_agent_mode", "multi_agent_version",
    "name", "namespace", "network", "new_agent_nickname", "new_agent_role", "new_thread_id",
    "num_turns", "occurred_at_ms", "ordinal", "originator", "output", "parent_thread_id",
    "parsed_cmd", "path", "payload", "permission_profile", "personality", "phase", "plugin_id",
    "previous_window_id", "process_id", "prompt", "query", "rate_limits", "rationale",
    "read_only_hint", "realtime_active", "reason", "reasoning_effort", "receiver_agent_nickname",
    "receiver_agent_role", "receiver_thread_id", "recipient", "record_type", "replacement_history",
    "response_id", "result", "results", "review_output", "revised_prompt", "risk_level", "role",
    "root_turn_id", "runtime_workspace_roots", "sandbox_policy", "saved_path", "sender_thread_id",
    "service_tier", "session_id", "source", "started_at", "started_at_ms", "state", "status",
    "statuses", "stderr", "stdout", "success", "summary", "target", "target_item_id", "text",
    "text_elements", "threadId", "thread_id", "thread_name", "thread_settings", "thread_source",
    "thread_token_usage", "time_to_first_token_ms", "timestamp", "timezone", "tool", "tools",
    "trace_id", "trigger_turn", "truncation_policy", "turnId", "turn_id", "turn_token_usage",
    "type", "usage", "user_authorization", "user_facing_hint", "user_instructions", "window_id",
    "window_number", "workspace_roots",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted() {
        for list in [RECORDS, FIELDS] {
            assert!(list.is_sorted());
        }
    }
}
