// A conversation of any length. Events are loaded in chunks around what is on the screen; a chunk
// that is far away is an empty box of its height.

import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { isFrozen } from "./address";
import { call } from "./api";
import { type Event, type Item, joinItems } from "./event";
import { EventItem, type Switches } from "./events";
import { plural } from "./format";
import { isShown } from "./kinds";
import { sessionLink } from "./links";
import { type Place, setPlaceReader, takePlace } from "./route";
import { Run, runsOf } from "./runs";

/** Number of events of a chunk: as many as a call of the tool takes. */
const CHUNK = 50;
/** Characters of text of a page of events. The tool ends a page at about 96 KB. */
const PAGE_CHARS = 40_000;
/** Height of a chunk that was never shown, in pixels. */
const GUESSED_HEIGHT = 1200;

/** A subagent that a call started. */
export interface Subagent {
  session_id: string;
  title?: string;
  events?: number;
  spawned_by_event_id?: string;
}

interface LoadedChunk {
  items: Item[];
  /** Which events it was loaded for; empty if some may be missing. */
  tag: string;
}

/** The events that a conversation has room for, in chunks. */
class Chunks {
  readonly number: number;
  /** `positions` are those of the events; without them it is all events. */
  constructor(readonly session: string, readonly total: number, readonly positions?: number[]) {
    this.number = Math.ceil((positions?.length ?? total) / CHUNK);
  }

  /** Returns the positions of the events of a chunk. */
  positionsIn(chunk: number): number[] {
    const first = chunk * CHUNK;
    if (this.positions) return this.positions.slice(first, first + CHUNK);
    return Array.from({ length: Math.max(0, Math.min(CHUNK, this.total - first)) }, (_, at) => first + at);
  }

  /** Returns what changes when a chunk gets other events. */
  tagOf(chunk: number): string {
    const here = this.positionsIn(chunk);
    return `${here.length} ${here.at(-1)}`;
  }

  /** Returns the chunk with an event, or with the next one that is shown. */
  chunkOf(event: number): number {
    if (!this.positions) return Math.floor(event / CHUNK);
    const found = this.positions.findIndex((position) => position >= event);
    return found < 0 ? Math.max(0, this.number - 1) : Math.floor(found / CHUNK);
  }
}

/**
 * Loads events by their positions, page after page. What an answer cuts off is in the next one.
 * Events stay as they are while the session has `total` of them.
 */
async function* loadEvents(ids: string[], total: number, signal: AbortSignal): AsyncGenerator<Event[]> {
  const fields = ["text", "tool", "context", "shown"];
  let rest = ids;
  while (rest.length) {
    const answer = await call("get_event_details", { event_ids: rest, fields, max_chars: PAGE_CHARS }, signal, `events ${total}`);
    const page: Event[] = answer.data.events;
    yield page;
    const taken = page.length + (answer.data.not_found?.length ?? 0);
    if (!taken || !answer.pagination?.has_more) return;
    rest = rest.slice(taken);
  }
}

/** Loads a chunk. `onPart` is called with what is there so far. */
async function loadChunk(chunks: Chunks, chunk: number, signal: AbortSignal, onPart: (part: LoadedChunk) => void): Promise<LoadedChunk> {
  const { session, total } = chunks;
  const ids = chunks.positionsIn(chunk).map((position) => `${session}:${position}`);
  const events: Event[] = [];
  const results = new Map<string, Event>();
  for await (const page of loadEvents(ids, total, signal)) {
    events.push(...page);
    if (events.length < ids.length) onPart({ items: joinItems(events, results), tag: "" });
  }
  const here = new Set(events.map((event) => event.event_id));
  const missing = events
    .filter((event) => event.event_type === "tool_call" && event.linked_event_id && !here.has(event.linked_event_id))
    .map((event) => event.linked_event_id!);
  for await (const page of loadEvents(missing.slice(0, CHUNK), total, signal)) page.forEach((event) => results.set(event.event_id, event));
  return { items: joinItems(events, results), tag: chunks.tagOf(chunk) };
}

/** Where what covers the top of the window ends, in pixels. */
const TOP_LINE = 120;
/** Where an event is that a link leads to. */
const GOAL_LINE = 140;

/** Returns the first event that ends below a line. */
function eventBelow(line: number): { element: HTMLElement; box: DOMRect } | undefined {
  for (const element of document.querySelectorAll<HTMLElement>("[data-event]")) {
    const box = element.getBoundingClientRect();
    if (box.bottom > line) return { element, box };
  }
  return undefined;
}

/** The event that a key or a click led to, until the reader scrolls on. */
let ledTo: HTMLElement | undefined;

/** Returns the event that is read now: one that a key or a link led to, or the first one in sight. */
function readEvent(): { element: HTMLElement; box: DOMRect } | undefined {
  const box = ledTo?.isConnected ? ledTo.getBoundingClientRect() : undefined;
  if (ledTo && box && box.bottom > GOAL_LINE && box.top < innerHeight) return { element: ledTo, box };
  return eventBelow(GOAL_LINE + 5);
}

/** Returns the place of the event that is read now. */
function currentPlace(): Partial<Place> {
  const found = readEvent();
  return found ? { event: Number(found.element.dataset.event), offset: found.box.top } : {};
}

/** An event in sight, and where it is in the document. */
interface Anchor {
  event: number;
  y: number;
}

/** Returns the event that stays where it is when chunks around it change their heights. */
function findAnchor(): Anchor | undefined {
  const found = eventBelow(TOP_LINE);
  if (!found || found.box.top >= innerHeight) return undefined;
  return { event: Number(found.element.dataset.event), y: found.box.top + scrollY };
}

/** Passes on which event is read now. */
function reportPosition(onPosition: (event: number) => void) {
  const found = readEvent();
  if (found) onPosition(Number(found.element.dataset.event));
}

/** Scrolls by as much as an event moved. */
function keepAnchor(anchor: Anchor | undefined) {
  const element = anchor && document.querySelector(`[data-event="${anchor.event}"]`);
  if (!element) return;
  const moved = element.getBoundingClientRect().top + scrollY - anchor.y;
  if (Math.abs(moved) >= 1) scrollBy(0, moved);
}

/** Shows the events of a session. `target` is the event that a link leads to, and never the result of a call. */
export function Conversation({ session, total, positions, target, switches, open, setOpen, subagents, onPosition }: {
  session: string;
  total: number;
  /** The events that may be shown; `undefined` for all. */
  positions?: number[];
  target?: number;
  switches: Switches;
  /** The calls that the reader unfolded. */
  open: Set<number>;
  setOpen: (change: (old: Set<number>) => Set<number>) => void;
  subagents: Subagent[];
  onPosition: (event: number) => void;
}) {
  const chunks = useMemo(() => new Chunks(session, total, positions), [session, total, positions]);
  const [loaded, setLoaded] = useState<Map<number, LoadedChunk>>(new Map());
  const [visible, setVisible] = useState<Set<number>>(new Set());
  const heights = useRef<Map<number, number>>(new Map());
  const loading = useRef<Map<number, AbortController>>(new Map());
  const isAtEnd = useRef(false);
  const anchor = useRef<Anchor | undefined>(undefined);
  const goal = useRef<Place | undefined>(undefined);
  // The height of chunks that were never shown: that of the first one. It stays, or all would move.
  const [guess, setGuess] = useState<number>();
  const root = useRef<HTMLDivElement>(null);

  // A link or the history names the event to begin with.
  useLayoutEffect(() => {
    const place = takePlace();
    if (place?.event !== undefined) goal.current = place;
    else if (place) goal.current = undefined;
    else if (target !== undefined) goal.current = { y: 0, event: target, offset: GOAL_LINE };
    const event = goal.current?.event;
    if (event !== undefined) {
      const chunk = chunks.chunkOf(event);
      document.getElementById(`chunk${chunk}`)?.scrollIntoView();
      setVisible(new Set([chunk]));
    } else if (place) scrollTo(0, place.y);
    if (target !== undefined) setOpen((old) => new Set(old).add(target));
  }, [session, target]);

  // Which chunks are near the window.
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => {
      setVisible((old) => {
        const next = new Set(old);
        for (const entry of entries) {
          const chunk = Number((entry.target as HTMLElement).dataset.chunk);
          if (entry.isIntersecting) next.add(chunk);
          else next.delete(chunk);
        }
        return next;
      });
    // Without a root, a frame of another origin would have no margin.
    }, { root: document, rootMargin: "1500px 0px" });
    root.current?.querySelectorAll("[data-chunk]").forEach((element) => observer.observe(element));
    return () => observer.disconnect();
  }, [session, chunks.number]);

  // Loads what is near, and stops what is no longer.
  useEffect(() => {
    const timer = setTimeout(() => {
      for (const [chunk, controller] of loading.current) {
        if (!visible.has(chunk)) {
          controller.abort();
          loading.current.delete(chunk);
        }
      }
      const wanted = goal.current?.event === undefined ? undefined : chunks.chunkOf(goal.current.event);
      for (const chunk of visible) {
        // The event that a link names comes before everything around it.
        if (wanted !== undefined && chunk !== wanted && !loaded.has(wanted)) continue;
        if (loading.current.has(chunk) || loaded.get(chunk)?.tag === chunks.tagOf(chunk) || chunk >= chunks.number) continue;
        const controller = new AbortController();
        loading.current.set(chunk, controller);
        const show = (part: LoadedChunk) => setLoaded((old) => new Map(old).set(chunk, part));
        // What was there before stays until the whole chunk is there again.
        loadChunk(chunks, chunk, controller.signal, loaded.has(chunk) ? () => undefined : show).then(
          show,
          () => undefined,
        ).finally(() => loading.current.delete(chunk));
      }
    }, 40);
    return () => clearTimeout(timer);
  }, [visible, chunks, loaded]);

  // Results that arrived late: a call without a result is loaded again when the session grows.
  useEffect(() => {
    setLoaded((old) => {
      const next = new Map(old);
      for (const [chunk, { items }] of old) {
        if (items.some((item) => item.event.event_type === "tool_call" && !item.result)) next.set(chunk, { items, tag: "" });
      }
      return next;
    });
  }, [total]);

  // Keeps the heights of the chunks, and goes to the event that a link names once it is there.
  useLayoutEffect(() => {
    root.current?.querySelectorAll<HTMLElement>("[data-chunk]").forEach((element) => {
      const chunk = Number(element.dataset.chunk);
      if (loaded.has(chunk) && visible.has(chunk)) heights.current.set(chunk, element.offsetHeight);
    });
    if (guess === undefined && loaded.size) {
      const [first] = [...loaded][0]!;
      setGuess(Math.max(400, heights.current.get(first) ?? GUESSED_HEIGHT));
      return;
    }
    const place = goal.current;
    if (place?.event === undefined) {
      // A reader at the end follows what is added.
      if (isAtEnd.current) scrollTo(0, document.documentElement.scrollHeight);
      // At the very top nothing moves out of sight.
      else if (scrollY > 0) keepAnchor(anchor.current);
      anchor.current = findAnchor();
      reportPosition(onPosition);
      return;
    }
    const element = goalElement(place.event);
    const chunk = loaded.get(chunks.chunkOf(place.event));
    const isThere = Number(element?.dataset.event) >= place.event;
    // Of a chunk that is still loading, the event may be missing.
    if (!element || !chunk || (!chunk.tag && !isThere)) return;
    scrollToPlace(element, place);
    const settled = setTimeout(() => {
      const again = goalElement(place.event!);
      if (again) scrollToPlace(again, place);
      if (target === place.event) again?.focus({ preventScroll: true });
      goal.current = undefined;
      anchor.current = findAnchor();
    }, 300);
    return () => clearTimeout(settled);
  }, [loaded, visible, guess]);

  useEffect(() => {
    setPlaceReader(currentPlace);
    let frame = 0;
    const report = () => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => {
        anchor.current = findAnchor();
        isAtEnd.current = scrollY > 200 && innerHeight + scrollY > document.documentElement.scrollHeight - 80;
        reportPosition(onPosition);
      });
    };
    const stop = () => {
      goal.current = undefined;
      ledTo = undefined;
    };
    const follow = (event: FocusEvent) => {
      ledTo = (event.target as Element).closest<HTMLElement>(".conversation [data-event]") ?? undefined;
      if (ledTo) report();
    };
    addEventListener("scroll", report, { passive: true });
    addEventListener("wheel", stop, { passive: true });
    addEventListener("touchmove", stop, { passive: true });
    addEventListener("focusin", follow);
    return () => {
      setPlaceReader(undefined);
      removeEventListener("scroll", report);
      removeEventListener("wheel", stop);
      removeEventListener("touchmove", stop);
      removeEventListener("focusin", follow);
      ledTo = undefined;
      loading.current.forEach((controller) => controller.abort());
    };
  }, [session]);

  // What is printed is the whole conversation. A file has it at hand.
  useEffect(() => {
    if (!isFrozen) return;
    const showAll = () => {
      const all = Array.from({ length: chunks.number }, (_, chunk) => chunk);
      setVisible(new Set(all));
      const controller = new AbortController();
      for (const chunk of all) {
        const show = (part: LoadedChunk) => setLoaded((old) => new Map(old).set(chunk, part));
        void loadChunk(chunks, chunk, controller.signal, () => undefined).then(show, () => undefined);
      }
    };
    addEventListener("beforeprint", showAll);
    return () => removeEventListener("beforeprint", showAll);
  }, [chunks]);

  const toggle = useCallback((event: number, isOpen: boolean) => {
    setOpen((old) => {
      if (old.has(event) === isOpen) return old;
      const next = new Set(old);
      if (isOpen) next.add(event);
      else next.delete(event);
      return next;
    });
  }, []);

  const spawned = useMemo(() => new Map(subagents.filter((one) => one.spawned_by_event_id).map((one) => [one.spawned_by_event_id!, one])), [subagents]);
  return (
    <div class="conversation" ref={root}>
      {Array.from({ length: chunks.number }, (_, chunk) => {
        const done = visible.has(chunk) ? loaded.get(chunk) : undefined;
        const height = done ? undefined : `${heights.current.get(chunk) ?? guess ?? GUESSED_HEIGHT}px`;
        return (
          <div key={chunk} id={`chunk${chunk}`} class={done ? undefined : "waiting"} data-chunk={chunk} style={{ minHeight: height }}>
            {done && <ChunkItems items={done.items} switches={switches} target={target} open={open} spawned={spawned} toggle={toggle} />}
          </div>
        );
      })}
    </div>
  );
}

/** The items of a chunk. They are made again only if something that they show changed. */
function ChunkItems({ items, switches, target, open, spawned, toggle }: {
  items: Item[];
  switches: Switches;
  target?: number;
  open: Set<number>;
  spawned: Map<string, Subagent>;
  toggle: (event: number, isOpen: boolean) => void;
}) {
  const { shown, open: isAllOpen } = switches;
  return useMemo(() => {
    const childOf = ({ event, result }: Item) => spawned.get(event.event_id) ?? (result && spawned.get(result.event_id));
    const show = (item: Item) => {
      const index = item.event.event_index;
      const child = childOf(item);
      return <EventItem key={index} item={item} isTarget={index === target} isOpen={isAllOpen || open.has(index)} onToggle={(isOpen) => { if (!isAllOpen) toggle(index, isOpen); }}
        subagent={child && <Nested child={child} switches={switches} />} />;
    };
    const visible = items.filter((item) => item.event.event_index === target || isShown(item, shown));
    // Failed calls by themselves are what the reader looks for.
    const folds = (item: Item) => shown.has("calls") && item.event.event_type === "tool_call" && !childOf(item);
    return <>{runsOf(visible, (first, next) => folds(first) && folds(next)).map((run) => {
      if (run.length < 2) return run.map(show);
      const isOpen = isAllOpen || run.some(({ event }) => event.event_index === target);
      return <Run key={`run${run[0]!.event.event_index}`} items={run} isOpen={isOpen}>{run.map(show)}</Run>;
    })}</>;
  }, [items, shown, isAllOpen, target, open, spawned, toggle]);
}

/** Scrolls an event to its place. If it is the next one that is shown, it goes where a link leads. */
function scrollToPlace(element: HTMLElement, place: Place) {
  const offset = Number(element.dataset.event) === place.event ? place.offset : undefined;
  scrollBy(0, element.getBoundingClientRect().top - (offset ?? GOAL_LINE));
}

/** Returns the element of an event, or of the next one that is shown. */
function goalElement(event: number): HTMLElement | undefined {
  const all = [...document.querySelectorAll<HTMLElement>("[data-event]")];
  // A run of calls has the number of its first one.
  return all.findLast((element) => Number(element.dataset.event) === event)
    ?? all.find((element) => Number(element.dataset.event) > event) ?? all[all.length - 1];
}

/** The conversation of a subagent, inside the call that started it. */
function Nested({ child, switches }: { child: Subagent; switches: Switches }) {
  const [isOpen, setOpen] = useState(false);
  const [items, setItems] = useState<Item[]>([]);
  const [chunk, setChunk] = useState(0);
  const [open, setOpen2] = useState<Set<number>>(new Set());
  const total = child.events ?? 0;
  useEffect(() => {
    if (!isOpen) return;
    const controller = new AbortController();
    loadChunk(new Chunks(child.session_id, total), chunk, controller.signal, () => undefined).then(
      (done) => setItems((old) => (chunk === 0 ? done.items : [...old, ...done.items])),
      () => undefined,
    );
    return () => controller.abort();
  }, [isOpen, chunk, total]);
  const remaining = total - (chunk + 1) * CHUNK;
  return (
    <details class="nested" onToggle={(toggled) => setOpen(toggled.currentTarget.open)}>
      <summary>Subagent: {child.title ?? child.session_id} <span class="dim">{plural(total, "event")}</span></summary>
      {isOpen && <>
        <p class="more"><a href={sessionLink(child.session_id)}>Open as a session</a></p>
        {items.filter((item) => isShown(item, switches.shown)).map((item) => {
          const index = item.event.event_index;
          return <EventItem key={index} item={item} isNested isTarget={false} isOpen={open.has(index)} onToggle={(now) => setOpen2((old) => {
            const next = new Set(old);
            if (now) next.add(index);
            else next.delete(index);
            return next;
          })} />;
        })}
        {remaining > 0 && <p class="more"><button type="button" onClick={() => setChunk(chunk + 1)}>Show {Math.min(CHUNK, remaining)} more</button></p>}
      </>}
    </details>
  );
}
