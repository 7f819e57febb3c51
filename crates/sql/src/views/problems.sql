-- Problems found before a log was re-read describe the log as it was. A database holds many sessions.
SELECT p.path, p.line, p.byte, p.kind, p.message, s.session_id
FROM _problems p
LEFT JOIN (
    SELECT
        source_path, min(live_from) AS live_from,
        CASE WHEN count(*) = 1 THEN any_value(session_id) END AS session_id
    FROM _sessions
    GROUP BY source_path
) s ON s.source_path = p.path
WHERE s.live_from IS NULL OR p.segment >= s.live_from
