// A conversation of any length. Events are loaded in chunks around what is on the screen; a chunk
// that is far away is an empty box of its height.

import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { isFrozen } from "./address";
import { call } from "./api";
import { type Event, EventItem, type Item, type Switches, isShown, joinItems } from "./events";
import { plural } from "./format";
import { sessionLink } from "./links";
import { type Place, setPlaceReader, takePlace } from "./route";

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
  /** Number of events that were there when it was loaded. */
  size: number;
}

/**
 * Loads events by their positions, page after page. What an answer cuts off is in the next one.
 * Events stay as they are while the session has `total` of them.
 */
async function* loadEvents(ids: string[], total: number, signal: AbortSignal): AsyncGenerator<Event[]> {
  const fields = ["text", "tool", "context"];
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
async function loadChunk(session: string, chunk: number, total: number, signal: AbortSignal, onPart: (part: LoadedChunk) => void): Promise<LoadedChunk> {
  const first = chunk * CHUNK;
  const end = Math.min(first + CHUNK, total);
  const ids = Array.from({ length: end - first }, (_, at) => `${session}:${first + at}`);
  const events: Event[] = [];
  const results = new Map<string, Event>();
  for await (const page of loadEvents(ids, total, signal)) {
    events.push(...page);
    if (events.length < ids.length) onPart({ items: joinItems(events, results), size: -1 });
  }
  const here = new Set(events.map((event) => event.event_id));
  const missing = events
    .filter((event) => event.event_type === "tool_call" && event.linked_event_id && !here.has(event.linked_event_id))
    .map((event) => event.linked_event_id!);
  for await (const page of loadEvents(missing.slice(0, CHUNK), total, signal)) page.forEach((event) => results.set(event.event_id, event));
  return { items: joinItems(events, results), size: end - first };
}

/** Returns the event at the top of the window. */
function topEvent(): Partial<Place> {
  const line = 120;
  for (const element of document.querySelectorAll<HTMLElement>("[data-event]")) {
    const box = element.getBoundingClientRect();
    if (box.bottom > line) return { event: Number(element.dataset.event), offset: box.top };
  }
  return {};
}

/** An event in sight, and where it is in the document. */
interface Anchor {
  event: number;
  y: number;
}

/** Returns the event that stays where it is when chunks around it change their heights. */
function findAnchor(): Anchor | undefined {
  for (const element of document.querySelectorAll<HTMLElement>("[data-event]")) {
    const { top, bottom } = element.getBoundingClientRect();
    if (bottom > 120 && top < innerHeight) return { event: Number(element.dataset.event), y: top + scrollY };
  }
  return undefined;
}

/** Scrolls by as much as an event moved. */
function keepAnchor(anchor: Anchor | undefined) {
  const element = anchor && document.querySelector(`[data-event="${anchor.event}"]`);
  if (!element) return;
  const moved = element.getBoundingClientRect().top + scrollY - anchor.y;
  if (Math.abs(moved) >= 1) scrollBy(0, moved);
}

/** Shows the events of a session. `target` is the event that a link names. */
export function Conversation({ session, total, target, switches, subagents, onPosition }: {
  session: string;
  total: number;
  target?: number;
  switches: Switches;
  subagents: Subagent[];
  onPosition: (event: number) => void;
}) {
  const chunks = Math.ceil(total / CHUNK);
  const [loaded, setLoaded] = useState<Map<number, LoadedChunk>>(new Map());
  const [visible, setVisible] = useState<Set<number>>(new Set());
  const [open, setOpen] = useState<Set<number>>(new Set());
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
    else if (target !== undefined) goal.current = { y: 0, event: target, offset: 140 };
    const event = goal.current?.event;
    if (event !== undefined) {
      const chunk = Math.floor(event / CHUNK);
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
  }, [session, chunks]);

  // Loads what is near, and stops what is no longer.
  useEffect(() => {
    const timer = setTimeout(() => {
      for (const [chunk, controller] of loading.current) {
        if (!visible.has(chunk)) {
          controller.abort();
          loading.current.delete(chunk);
        }
      }
      const wanted = goal.current?.event === undefined ? undefined : Math.floor(goal.current.event / CHUNK);
      for (const chunk of visible) {
        // The event that a link names comes before everything around it.
        if (wanted !== undefined && chunk !== wanted && !loaded.has(wanted)) continue;
        const size = Math.min(CHUNK, total - chunk * CHUNK);
        if (loading.current.has(chunk) || loaded.get(chunk)?.size === size || size <= 0) continue;
        const controller = new AbortController();
        loading.current.set(chunk, controller);
        const show = (part: LoadedChunk) => setLoaded((old) => new Map(old).set(chunk, part));
        // What was there before stays until the whole chunk is there again.
        loadChunk(session, chunk, total, controller.signal, loaded.has(chunk) ? () => undefined : show).then(
          show,
          () => undefined,
        ).finally(() => loading.current.delete(chunk));
      }
    }, 40);
    return () => clearTimeout(timer);
  }, [visible, total, session, loaded]);

  // Results that arrived late: a call without a result is loaded again when the session grows.
  useEffect(() => {
    setLoaded((old) => {
      const next = new Map(old);
      for (const [chunk, { items }] of old) {
        if (items.some((item) => item.event.event_type === "tool_call" && !item.result)) next.set(chunk, { items, size: -1 });
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
      else keepAnchor(anchor.current);
      anchor.current = findAnchor();
      return;
    }
    const element = nearest(place.event);
    const chunk = loaded.get(Math.floor(place.event / CHUNK));
    const isThere = Number(element?.dataset.event) >= place.event;
    // Of a chunk that is still loading, the event may be missing.
    if (!element || !chunk || (chunk.size < 0 && !isThere)) return;
    scrollBy(0, element.getBoundingClientRect().top - (place.offset ?? 140));
    const settled = setTimeout(() => {
      const again = nearest(place.event!);
      if (again) scrollBy(0, again.getBoundingClientRect().top - (place.offset ?? 140));
      if (target === place.event) again?.focus({ preventScroll: true });
      goal.current = undefined;
      anchor.current = findAnchor();
    }, 300);
    return () => clearTimeout(settled);
  }, [loaded, visible, guess]);

  useEffect(() => {
    setPlaceReader(topEvent);
    let frame = 0;
    const report = () => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => {
        anchor.current = findAnchor();
        isAtEnd.current = scrollY > 200 && innerHeight + scrollY > document.documentElement.scrollHeight - 80;
        if (anchor.current) onPosition(anchor.current.event);
      });
    };
    const stop = () => { goal.current = undefined; };
    addEventListener("scroll", report, { passive: true });
    addEventListener("wheel", stop, { passive: true });
    return () => {
      setPlaceReader(undefined);
      removeEventListener("scroll", report);
      removeEventListener("wheel", stop);
      loading.current.forEach((controller) => controller.abort());
    };
  }, [session]);

  // What is printed is the whole conversation. A file has it at hand.
  useEffect(() => {
    if (!isFrozen) return;
    const showAll = () => {
      const all = Array.from({ length: chunks }, (_, chunk) => chunk);
      setVisible(new Set(all));
      const controller = new AbortController();
      for (const chunk of all) {
        const show = (part: LoadedChunk) => setLoaded((old) => new Map(old).set(chunk, part));
        void loadChunk(session, chunk, total, controller.signal, () => undefined).then(show, () => undefined);
      }
    };
    addEventListener("beforeprint", showAll);
    return () => removeEventListener("beforeprint", showAll);
  }, [session, chunks, total]);

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
      {Array.from({ length: chunks }, (_, chunk) => {
        const done = visible.has(chunk) ? loaded.get(chunk) : undefined;
        const height = done ? undefined : `${heights.current.get(chunk) ?? guess ?? GUESSED_HEIGHT}px`;
        return (
          <div key={chunk} id={`chunk${chunk}`} data-chunk={chunk} style={{ minHeight: height }}>
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
  const { reasoning, notices, focus, open: isAllOpen } = switches;
  return useMemo(() => (
    <>{items.map((item) => {
      const index = item.event.event_index;
      const isTarget = target !== undefined && (index === target || item.result?.event_index === target);
      if (!isTarget && !isShown(item, switches)) return null;
      const child = spawned.get(item.event.event_id) ?? (item.result && spawned.get(item.result.event_id));
      // The address may name the result of the call.
      const result = item.result?.event_index ?? index;
      const change = (isOpen: boolean) => {
        toggle(index, isOpen);
        if (!isOpen) toggle(result, false);
      };
      return <EventItem key={index} item={item} isTarget={isTarget} isOpen={isAllOpen || open.has(index) || open.has(result)} onToggle={isAllOpen ? () => undefined : change}
        subagent={child && <Nested child={child} switches={switches} />} />;
    })}</>
  ), [items, reasoning, notices, focus, isAllOpen, target, open, spawned, toggle]);
}

/** Returns the element of an event, or of the next one that is shown. */
function nearest(event: number): HTMLElement | undefined {
  const all = [...document.querySelectorAll<HTMLElement>("[data-event]")];
  return all.find((element) => Number(element.dataset.event) >= event) ?? all[all.length - 1];
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
    loadChunk(child.session_id, chunk, total, controller.signal, () => undefined).then(
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
        {items.filter((item) => isShown(item, switches)).map((item) => {
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
