-- Whoever asks after a subagent again and again names it in every result: the first one started it.
SELECT
    s.session_id, s.parent_session_id, s.relation, s.agent_id, s.provider, s.title, s.started_at,
    e.event_id AS spawned_by_event_id, e.turn_index AS spawned_in_turn, e.tool_call_id
FROM sessions s
LEFT JOIN (
    SELECT * FROM events WHERE spawned_agent_id IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY session_id, spawned_agent_id ORDER BY event_index) = 1
) e ON e.session_id = s.parent_session_id AND e.spawned_agent_id = s.agent_id
WHERE s.parent_session_id IS NOT NULL
