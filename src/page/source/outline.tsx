// The list of the turns of a session. The one that is read now is marked, and stays in sight.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { cost, date, moment, plural, shortNotes, time } from "./format";
import { useMedia, useTool } from "./hooks";
import { sessionLink } from "./links";
import { marked, patternOf } from "./marks";

/** Is called with the event that is read now. */
export type PositionListener = (event: number) => void;

/** A window that has room for the list next to the conversation. */
const WIDE = "(min-width: 1151px)";

/** Characters of a prompt in the list. */
const PROMPT = 160;

const wordsOf = (turn: any): string => (turn.prompt?.text && shortNotes(turn.prompt.text).replace(/\s+/g, " ").slice(0, PROMPT)) || "Before the first prompt";

/** Scrolls what has the list, and never the page, until a turn is in the middle of it. */
export function reveal(turn?: HTMLElement | null, box?: HTMLElement | null) {
  if (!turn || !box) return;
  const { top, bottom } = turn.getBoundingClientRect();
  const around = box.getBoundingClientRect();
  if (top < around.top + 30 || bottom > around.bottom - 30) box.scrollTop += (top + bottom - around.top - around.bottom) / 2;
}

/** Moves the focus to another row of a list. Returns false if the key does something else. */
export function moveFocus(list: HTMLElement, key: string): boolean {
  const by = ({ ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 } as Record<string, number>)[key];
  const links = [...list.querySelectorAll<HTMLElement>("a[href]")];
  const at = links.indexOf(document.activeElement as HTMLElement);
  if (by === undefined || at < 0) return false;
  links[at + by]?.focus();
  return true;
}

export function Outline({ turns, costs, session, listeners }: { turns?: any[]; costs: Map<number, number>; session: string; listeners: Set<PositionListener> }) {
  const isWide = useMedia(WIDE);
  const [isOpen, setOpen] = useState(false);
  const [current, setCurrent] = useState(0);
  const position = useRef(0);
  const nav = useRef<HTMLElement>(null);
  useEffect(() => {
    const listener = (event: number) => {
      position.current = event;
      setCurrent(Math.max(0, (turns ?? []).findLastIndex((turn) => turn.event_range[0] <= event)));
    };
    listener(position.current);
    listeners.add(listener);
    return () => { listeners.delete(listener); };
  }, [listeners, turns]);
  useEffect(() => {
    reveal(nav.current?.querySelector<HTMLElement>(".current"), nav.current?.querySelector<HTMLElement>("ol"));
  }, [current, isOpen, isWide]);
  // A list over the conversation closes when the reader returns to it.
  useEffect(() => {
    if (isWide || !isOpen) return;
    const close = (event: Event) => { if (!nav.current?.contains(event.target as Node)) setOpen(false); };
    addEventListener("pointerdown", close);
    return () => removeEventListener("pointerdown", close);
  }, [isWide, isOpen]);
  const rows = useMemo(() => (turns ?? []).map((turn, at) => <Turn key={turn.turn_index} turn={turn} before={turns![at - 1]} cost={costs.get(turn.turn_index)} session={session} />), [turns, costs, session]);
  if (!turns?.length) return <nav class="outline" aria-label="Turns" />;

  const number = turns.filter((turn) => turn.turn_index > 0).length;
  const now = turns[Math.min(current, turns.length - 1)];
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape" && !isWide && isOpen) {
      setOpen(false);
      nav.current?.querySelector<HTMLElement>("summary")?.focus();
    } else if (!moveFocus(nav.current!, event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <nav class="outline" aria-label="Turns" ref={nav} onKeyDown={onKeyDown}>
      <details open={isWide || isOpen} onToggle={(toggled) => setOpen(toggled.currentTarget.open)}>
        <summary>{isWide ? plural(number, "turn") : <><span class="at">Turn {now.turn_index} of {number}</span> <span class="words">{wordsOf(now)}</span></>}</summary>
        <div class="panel">
          <Find session={session} />
          <ol onClick={() => { if (!isWide) setOpen(false); }}>
            {rows.map((row, at) => at === current ? <Turn key={now.turn_index} turn={now} before={turns[at - 1]} cost={costs.get(now.turn_index)} session={session} isCurrent /> : row)}
          </ol>
        </div>
      </details>
    </nav>
  );
}

/** A turn of the list. A day is named where it begins. */
function Turn({ turn, before, cost: spent, session, isCurrent }: { turn: any; before?: any; cost?: number; session: string; isCurrent?: boolean }) {
  const day = date(turn.timestamp);
  return (
    <li class={isCurrent ? "current" : ""}>
      <a data-first={turn.event_range[0]} href={sessionLink(session, turn.event_range[0])} aria-current={isCurrent ? "true" : undefined}>
        <span class="number">{turn.turn_index}</span>
        <span class="words">{wordsOf(turn)}</span>
        <span class="dim sums">
          {turn.timestamp && <time dateTime={turn.timestamp} title={moment(turn.timestamp)}>{date(before?.timestamp) === day ? "" : `${day} `}{time(turn.timestamp)}</time>}
          {turn.tool_calls > 0 && <span>{plural(turn.tool_calls, "call")}</span>}
          {turn.tool_errors > 0 && <span class="bad">{turn.tool_errors} failed</span>}
          {(spent ?? 0) > 0 && <span>{cost(spent)}</span>}
        </span>
      </a>
    </li>
  );
}

/** Finds passages in this session. */
function Find({ session }: { session: string }) {
  const [text, setText] = useState("");
  const found = useTool("search_events", text.trim() ? { query: text, session_id: session, sort: "oldest", limit: 50 } : null);
  const matches: any[] = found.data?.matches ?? [];
  const pattern = useMemo(() => patternOf(found.data?.query), [found.data]);
  return (
    <div class="find">
      <input type="search" value={text} placeholder="Find in this session" aria-label="Find in this session" onInput={(event) => setText(event.currentTarget.value)} />
      {text.trim() && <ul>
        {found.error && <li class="bad">{found.error.message}</li>}
        {found.answer && !found.error && !matches.length && <li class="dim">No matches.</li>}
        {matches.map((match) => (
          <li key={match.event_id}><a href={sessionLink(session, match.event_id.slice(match.event_id.lastIndexOf(":") + 1))}>
            <span class="number">{match.turn_index}</span><span class="words">{marked(shortNotes(match.snippet).replace(/\s+/g, " ").slice(0, 160), pattern)}</span>
          </a></li>
        ))}
      </ul>}
    </div>
  );
}
