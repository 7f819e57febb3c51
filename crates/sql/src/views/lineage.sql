-- A call names the session that it started by the agent's name or by the session's own id. The call
-- is in the parent, or in a sibling if all of a family name the same parent. If an agent polls a
-- subagent, every result names it: the first one started it. What a subagent says inside its parent's
-- log names it too, and so do notices of what it does, which the result goes before.
WITH spawns AS (
    SELECT *, session_id AS family FROM events WHERE spawned_agent_id IS NOT NULL
    UNION ALL
    SELECT e.*, p.parent_session_id AS family FROM events e JOIN sessions p USING (session_id)
    WHERE e.spawned_agent_id IS NOT NULL AND p.parent_session_id IS NOT NULL
)
SELECT
    s.session_id, s.parent_session_id, s.relation, s.agent_id, s.provider, s.title, s.started_at,
    e.event_id AS spawned_by_event_id, e.turn_index AS spawned_in_turn, e.tool_call_id
FROM sessions s
LEFT JOIN spawns e ON e.family = s.parent_session_id AND e.session_id <> s.session_id
    AND (e.spawned_agent_id = s.agent_id OR e.spawned_agent_id = s.native_id)
WHERE s.parent_session_id IS NOT NULL
QUALIFY row_number() OVER (
    PARTITION BY s.session_id ORDER BY
        e.session_id <> s.parent_session_id, e.is_sidechain, e.event_type = 'notification', e.event_index
) = 1
