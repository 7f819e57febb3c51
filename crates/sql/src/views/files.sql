-- A patch says what it does with each file that it names. Otherwise the tool's name and the first
-- words of the result say whether the file is new. A failed call changed nothing.
WITH named AS (SELECT unnest(files) AS file, * FROM tool_calls)
SELECT
    file AS path, event_id, result_event_id, session_id, event_index, turn_index,
    timestamp, provider, tool_name, tool_kind, is_error,
    CASE
        WHEN is_error THEN NULL
        WHEN contains(input, '*** Add File: ' || file || chr(10))
            OR contains(input, file || ':' || chr(10) || '  type: add') THEN 'added'
        WHEN contains(input || chr(10), '*** Delete File: ' || file || chr(10))
            OR contains(input, file || ':' || chr(10) || '  type: delete') THEN 'deleted'
        WHEN tool_kind NOT IN ('edit', 'write') AND NOT contains(input, '*** Begin Patch') THEN NULL
        WHEN regexp_matches(tool_name, '(?i)delete|remove') THEN 'deleted'
        WHEN regexp_matches(tool_name, '(?i)^create')
            OR regexp_matches(
                left(output, CASE WHEN tool_kind = 'write' THEN 200 ELSE 40 END),
                '(?i)(file|successfully|been) created|created (successfully|and|new|file)|new file'
            ) THEN 'added'
        WHEN tool_kind = 'write'
            AND NOT coalesce(regexp_matches(left(output, 600), '(?i)updated|overwr|modified'), false)
            THEN 'written'
        ELSE 'changed'
    END AS change
FROM named
