-- The first result of a call is its result: some logs repeat results, and none of them joins twice.
SELECT
    c.event_id, r.event_id AS result_event_id, c.session_id, c.event_index, c.turn_index,
    c.step_index, c.timestamp, c.provider, c.model, c.git_branch, c.tool_call_id, c.tool_name,
    c.tool_kind, c.files[1] AS path, c.files, c.command, r.is_error, r.exit_code, r.duration_ms,
    c.text_bytes AS input_bytes, r.text_bytes AS output_bytes, r.spawned_agent_id
FROM (SELECT * FROM events WHERE event_type = 'tool_call' AND NOT is_replay) c
LEFT JOIN (
    SELECT * FROM events WHERE event_type = 'tool_result' AND NOT is_replay
    QUALIFY row_number() OVER (PARTITION BY session_id, tool_call_id ORDER BY event_index) = 1
) r ON r.session_id = c.session_id AND r.tool_call_id = c.tool_call_id
