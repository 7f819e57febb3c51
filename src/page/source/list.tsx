// The sessions that a session was opened from, next to its conversation, with the ways to the
// previous and the next one.

import { useEffect, useRef, useState } from "preact/hooks";
import { ago, cost, count } from "./format";
import { useClock, useMedia, useTool } from "./hooks";
import { sessionLink } from "./links";
import { moveFocus, reveal } from "./outline";
import { Chosen } from "./parts";

/** A window that has room for the list next to a conversation, and one that needs nothing moved for it. */
const WIDE = "(min-width: 1151px)";
const VERY_WIDE = "(min-width: 1600px)";

/** Whether the reader wants to see the list. */
const choice = new Chosen("list");

/** A row of the list. */
export interface ListedSession {
  id: string;
  /** Leads to the session, or to what was found in it. A file may not have it. */
  href?: string;
  title: string;
  project?: string;
  endedAt?: string;
  cost?: number;
}

interface List {
  rows: ListedSession[];
  /** Number of sessions, with those that were not loaded. */
  total: string;
}

let kept: List | undefined;

/** Keeps the sessions of a view, in its order, for the sessions that are opened from it. */
export function keepList(rows: ListedSession[], total: string) {
  kept = { rows, total };
}

/** Returns the list that a session was opened from. Without one, it is the latest sessions, if `isAsked`. */
function useList(isAsked: boolean): List {
  const { answer } = useTool("list_sessions", kept || !isAsked ? null : { limit: 100 });
  if (kept) return kept;
  return { rows: (answer?.data.sessions ?? []).map((session: any) => listedSession(session)), total: count(answer?.metadata.results_total) };
}

/** Returns the row of a session that `list_sessions` returned. */
export function listedSession(session: any, href = sessionLink(session.session_id)): ListedSession {
  return {
    id: session.session_id,
    href,
    title: session.title ?? session.session_id,
    project: session.project,
    endedAt: session.ended_at,
    cost: session.with_subagents?.tokens?.cost_usd ?? session.tokens?.cost_usd,
  };
}

/** Shows where a session is in the list, and the list itself if there is room. */
export function SessionNav({ current }: { current: string }) {
  const isWide = useMedia(WIDE);
  const isVeryWide = useMedia(VERY_WIDE);
  const [chosen, setChosen] = useState(choice.value);
  const isOpen = isWide && (chosen ? chosen === "open" : isVeryWide);
  const { rows, total } = useList(isOpen);
  const at = rows.findIndex((row) => row.id === current);
  const [before, after] = at < 0 ? [] : [rows[at - 1], rows[at + 1]];
  const nav = useRef<HTMLElement>(null);
  const wantsFocus = useRef(false);
  useEffect(() => {
    const row = nav.current?.querySelector<HTMLElement>("[aria-current]");
    reveal(row, nav.current?.querySelector("ol"));
    if (!wantsFocus.current || !rows.length) return;
    (row ?? nav.current?.querySelector<HTMLElement>("ol a"))?.focus({ preventScroll: true });
    wantsFocus.current = false;
  }, [isOpen, at, rows.length]);
  if (!rows.length && !isWide) return null;
  const toggle = () => {
    wantsFocus.current = !isOpen;
    choice.value = isOpen ? "closed" : "open";
    setChosen(choice.value);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const list = nav.current?.querySelector<HTMLElement>("ol");
    if (!list || !moveFocus(list, event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  };
  const place = !rows.length ? "Sessions" : at < 0 ? `${total} sessions` : `Session ${at + 1} of ${total}`;
  return (
    <nav class="session-nav" aria-label="Sessions" ref={nav} onKeyDown={onKeyDown}>
      <p class="steps">
        {rows.length > 0 && <Step row={before} rel="prev" name="Previous session" sign="←" shortcut="[" />}
        {isWide ? <button type="button" aria-expanded={isOpen} aria-keyshortcuts="l" title="List of sessions (key l)" onClick={toggle}>{place}</button> : <span>{place}</span>}
        {rows.length > 0 && <Step row={after} rel="next" name="Next session" sign="→" shortcut="]" />}
      </p>
      {isOpen && <ol>{rows.map((row, position) => <Row key={row.id} row={row} isCurrent={position === at} />)}</ol>}
    </nav>
  );
}

/** A link to the session before or after the current one. */
function Step({ row, rel, name, sign, shortcut }: { row?: ListedSession; rel: string; name: string; sign: string; shortcut: string }) {
  if (!row?.href) return <span class="step dim" aria-hidden="true">{sign}</span>;
  return <a class="step" rel={rel} href={row.href} aria-label={`${name}: ${row.title}`} aria-keyshortcuts={shortcut} title={`${name}: ${row.title} (key ${shortcut})`}>{sign}</a>;
}

function Row({ row, isCurrent }: { row: ListedSession; isCurrent: boolean }) {
  const now = useClock(60_000);
  return (
    <li>
      <a href={row.href} aria-current={isCurrent ? "page" : undefined}>
        <span class="words">{row.title}</span>
        <span class="dim sums"><span>{row.project}</span><span>{ago(row.endedAt, now)}</span>{row.cost !== undefined && <span>{cost(row.cost)}</span>}</span>
      </a>
    </li>
  );
}
