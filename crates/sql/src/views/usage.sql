-- A request may be counted in pieces, which add up; its first piece has the prompt.
SELECT
    u.* EXCLUDE (prompt), u.timestamp::DATE AS day,
    CASE WHEN p.model IS NOT NULL AND coalesce(
        u.input_tokens, u.output_tokens, u.cache_read_tokens, u.cache_write_tokens,
        u.cache_write_1h_tokens, u.reasoning_tokens) IS NOT NULL THEN (
      -- A rate that is not known matters only where it is needed.
      CASE WHEN u.input_tokens <> 0 THEN u.input_tokens * p.input ELSE 0 END
      + CASE WHEN u.output_tokens <> 0 THEN u.output_tokens * p.output ELSE 0 END
      + CASE WHEN u.cache_read_tokens <> 0 THEN u.cache_read_tokens * p.cache_read ELSE 0 END
      + CASE WHEN u.cache_write_tokens <> coalesce(u.cache_write_1h_tokens, 0)
          THEN (u.cache_write_tokens - coalesce(u.cache_write_1h_tokens, 0)) * p.cache_write_5m
          ELSE 0 END
      + CASE WHEN u.cache_write_1h_tokens <> 0
          THEN u.cache_write_1h_tokens * p.cache_write_1h ELSE 0 END
      + CASE WHEN u.web_search_requests <> 0
          THEN u.web_search_requests * p.web_search_per_1000 * 1000 ELSE 0 END
    ) / 1e6 END AS cost_usd
FROM (
    SELECT
        concat(session_id, ':', min(event_index)) AS event_id, session_id, request_id,
        min(turn_index) AS turn_index, min(step_index) AS step_index,
        min(timestamp) AS timestamp, any_value(provider) AS provider,
        arg_min(model, event_index) AS model, arg_min(git_branch, event_index) AS git_branch,
        sum(input_tokens)::BIGINT AS input_tokens,
        sum(output_tokens)::BIGINT AS output_tokens,
        sum(cache_read_tokens)::BIGINT AS cache_read_tokens,
        sum(cache_write_tokens)::BIGINT AS cache_write_tokens,
        sum(cache_write_1h_tokens)::BIGINT AS cache_write_1h_tokens,
        sum(reasoning_tokens)::BIGINT AS reasoning_tokens,
        sum(web_search_requests)::BIGINT AS web_search_requests,
        arg_min(service_tier, event_index) AS service_tier,
        arg_min(speed, event_index) AS speed,
        arg_min(inference_geo, event_index) AS inference_geo,
        -- Sums of many requests: none of them is known to have been long.
        max(CASE WHEN coalesce(subtype, '') NOT IN ('shutdown', 'turn_sum') THEN
            coalesce(input_tokens, 0) + coalesce(cache_read_tokens, 0)
            + coalesce(cache_write_tokens, 0) ELSE 0 END) AS prompt
    FROM events
    WHERE event_type = 'token_usage' AND NOT is_replay
    GROUP BY session_id, request_id, CASE WHEN request_id IS NULL THEN event_index END
) u
-- Words for the normal price are those of `schemas::price`; `_prices` has them as empty text.
LEFT JOIN _prices p ON p.model = u.model AND u.prompt > p.above AND u.prompt <= p.up_to
    AND coalesce(u.timestamp::DATE, DATE '9999-12-31') > p.after
    AND coalesce(u.timestamp::DATE, DATE '9999-12-31') <= p.until
    AND p.service_tier = CASE
        WHEN coalesce(u.service_tier, '') IN ('', 'auto', 'default', 'standard') THEN ''
        ELSE u.service_tier END
    AND p.speed = CASE
        WHEN coalesce(u.speed, '') IN ('', 'standard') THEN '' ELSE u.speed END
    AND p.inference_geo = CASE
        WHEN coalesce(u.inference_geo, '') IN ('', 'global', 'not_available') THEN ''
        ELSE u.inference_geo END
