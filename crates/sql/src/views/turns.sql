SELECT
    session_id, turn_index, any_value(provider) AS provider,
    min(timestamp) AS started_at, max(timestamp) AS ended_at,
    date_diff('millisecond', min(timestamp), max(timestamp)) AS duration_ms,
    session_id || ':' || min(event_index) FILTER (event_type = 'user') AS prompt_event_id,
    arg_min(text, event_index) FILTER (event_type = 'user') AS prompt,
    count(*) AS events,
    count(DISTINCT nullif(step_index, 0)) AS steps,
    count(*) FILTER (event_type = 'message') AS messages,
    count(*) FILTER (event_type = 'tool_call') AS tool_calls,
    count(*) FILTER (event_type = 'tool_result' AND is_error) AS tool_errors,
    sum(input_tokens)::BIGINT AS input_tokens,
    sum(output_tokens)::BIGINT AS output_tokens,
    sum(cache_read_tokens)::BIGINT AS cache_read_tokens,
    sum(cache_write_tokens)::BIGINT AS cache_write_tokens,
    sum(reasoning_tokens)::BIGINT AS reasoning_tokens
FROM events
WHERE NOT is_replay
GROUP BY session_id, turn_index
