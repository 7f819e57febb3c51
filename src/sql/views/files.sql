SELECT
    unnest(files) AS path, event_id, result_event_id, session_id, event_index, turn_index,
    timestamp, provider, tool_name, tool_kind, is_error
FROM tool_calls
