-- A result is of the last call of its id before it, as some models count their calls anew; of the
-- results of a call the first is its result, as some logs repeat them: none of them joins twice.
WITH joined AS (
    SELECT *, greatest(count(*) FILTER (event_type = 'tool_call') OVER (
        PARTITION BY session_id, tool_call_id ORDER BY event_index), 1) AS nth
    FROM events WHERE event_type IN ('tool_call', 'tool_result') AND NOT is_replay
)
SELECT
    c.event_id, r.event_id AS result_event_id, c.session_id, c.event_index, c.turn_index,
    c.step_index, c.timestamp, c.provider, c.model, c.git_branch, c.tool_call_id, c.tool_name,
    c.tool_kind, c.files[1] AS path, c.files, c.command, r.is_error, r.exit_code, r.duration_ms,
    c.text_bytes AS input_bytes, r.text_bytes AS output_bytes, r.spawned_agent_id,
    c.text AS input, r.text AS output
FROM (SELECT * FROM joined WHERE event_type = 'tool_call') c
LEFT JOIN (
    SELECT * FROM joined WHERE event_type = 'tool_result'
    QUALIFY row_number() OVER (PARTITION BY session_id, tool_call_id, nth ORDER BY event_index) = 1
) r ON r.session_id = c.session_id AND r.tool_call_id = c.tool_call_id AND r.nth = c.nth
