// The row of buttons above a conversation: which kinds of events are shown.

import { useMemo } from "preact/hooks";
import { count } from "./format";
import { useQuestion } from "./hooks";
import { COMPACTION, DEFAULT, KINDS, type Kind, REPEAT, STOP, countKind, toggleShown } from "./kinds";
import { keepPlace, setParams } from "./route";

/** Letters of a row of the answer. A cell may have 8,000 bytes. */
const ROW = 4000;

/**
 * Asks for the map of a session. Some agents write rows of a log again, as when they compact it twice.
 * Such a row has the time and the length of the earlier one, and so has the row before or after it.
 */
const mapQuery = (session: string) => `
WITH e AS (SELECT event_index, event_type AS type, coalesce(subtype, '') AS subtype, tool_call_id AS id, coalesce(is_error, false) AS failed,
  is_replay, hash(event_type, subtype, timestamp, text_bytes) AS said FROM events WHERE session_id = ${session}),
pairs AS (SELECT event_index, is_replay, said, lag(said) OVER o AS before, lead(said) OVER o AS after FROM e WINDOW o AS (ORDER BY event_index)),
repeats AS (SELECT event_index FROM pairs QUALIFY is_replay
  AND event_index > least(min(event_index) OVER (PARTITION BY before, said), min(event_index) OVER (PARTITION BY said, after))),
calls AS (SELECT id FROM e WHERE type = 'tool_call' AND id IS NOT NULL),
bad AS (SELECT id FROM e WHERE type = 'tool_result' AND failed AND id IS NOT NULL)
SELECT string_agg(CASE
  WHEN event_index IN (FROM repeats) THEN '${REPEAT}'
  WHEN type = 'user' THEN 'p'
  WHEN type = 'message' THEN 'a'
  WHEN type = 'reasoning' THEN 'r'
  WHEN type = 'tool_call' AND id IN (FROM bad) THEN 'f'
  WHEN type = 'tool_result' AND id IN (FROM calls) THEN '.'
  WHEN type IN ('tool_call', 'tool_result') THEN CASE WHEN failed THEN 'f' ELSE 'c' END
  WHEN type = 'notification' AND (failed OR regexp_matches(subtype, '${COMPACTION.source}') OR regexp_matches(subtype, '${STOP.source}')) THEN 'l'
  WHEN type = 'notification' THEN 'n'
  ELSE '.' END, '' ORDER BY event_index)
FROM e GROUP BY event_index // ${ROW} ORDER BY event_index // ${ROW}`;

/** The map of a session. */
export interface KindMap {
  /** A letter for each event; `undefined` until the map is there. */
  letters?: string;
  isLoading: boolean;
}

/** Asks for the map of a session. `quoted` is the id for SQL. */
export function useKindMap(session: string, quoted: string): KindMap {
  const { data, isLoading } = useQuestion("kinds", { session_id: session }, mapQuery(quoted), 1000);
  return useMemo(() => ({ letters: data?.rows.map(([row]: [string]) => row).join(""), isLoading: isLoading && !data }), [data, isLoading]);
}

/** Changes a parameter of the address. The event that is read now stays where it is. */
function change(name: string, value: string | undefined) {
  keepPlace();
  setParams({ [name]: value }, true);
}

/**
 * The buttons. A kind that the session does not have cannot be chosen. What is hidden at first has its
 * count.
 */
export function KindFilter({ shown, isOpen, letters }: { shown: Set<Kind>; isOpen: boolean; letters?: string }) {
  const counts = useMemo(() => letters === undefined ? undefined : KINDS.map(([kind]) => countKind(letters, kind)), [letters]);
  return (
    <div class="kinds" role="group" aria-label="Events to show">
      {KINDS.map(([kind, name], at) => (
        <button key={kind} type="button" class="switch" data-kind aria-pressed={shown.has(kind)} aria-keyshortcuts={`${at + 1}`} title={`${name} (key ${at + 1})`}
          disabled={counts?.[at] === 0 && !shown.has(kind)} onClick={() => change("show", toggleShown(shown, kind))}>
          {name}{!!counts?.[at] && !DEFAULT.includes(kind) && <span class="dim"> {count(counts[at])}</span>}
        </button>
      ))}
      <button type="button" class="switch unfold" title="Unfold all calls" aria-pressed={isOpen} onClick={() => change("open", isOpen ? undefined : "1")}>Unfold</button>
    </div>
  );
}
