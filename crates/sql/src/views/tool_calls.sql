-- A result belongs to the last call of its id before it, because some models restart the numbers of their calls.
-- The first result of a call is its result, because some logs repeat them. Calls and results are paired
-- by ids alone: a window over their texts would take the memory of all texts.
WITH numbered AS (
    SELECT
        session_id, tool_call_id, event_type, event_index,
        greatest(count(*) FILTER (event_type = 'tool_call') OVER (
            PARTITION BY session_id, tool_call_id ORDER BY event_index), 1) AS nth
    FROM events
    WHERE event_type IN ('tool_call', 'tool_result') AND NOT is_replay AND tool_call_id IS NOT NULL
), pairs AS (
    SELECT
        session_id,
        min(event_index) FILTER (event_type = 'tool_call') AS call_index,
        min(event_index) FILTER (event_type = 'tool_result') AS result_index
    FROM numbered
    GROUP BY session_id, tool_call_id, nth
)
SELECT
    c.event_id, r.event_id AS result_event_id, c.session_id, c.event_index, c.turn_index,
    c.step_index, c.timestamp, c.provider, c.model, c.git_branch, c.tool_call_id, c.tool_name,
    c.tool_kind, c.files[1] AS path, c.files, c.command, r.is_error, r.exit_code, r.duration_ms,
    c.text_bytes AS input_bytes, r.text_bytes AS output_bytes, r.spawned_agent_id,
    c.text AS input, r.text AS output
FROM events c
LEFT JOIN pairs p ON p.session_id = c.session_id AND p.call_index = c.event_index
LEFT JOIN events r
    ON r.event_type = 'tool_result' AND r.session_id = p.session_id AND r.event_index = p.result_index
WHERE c.event_type = 'tool_call' AND NOT c.is_replay
