// The kinds of events of a conversation, and which of them the reader chose to see.

import type { Event, Item } from "./event";

/** A kind that the reader can show and hide. `failed` is a part of `calls`. */
export type Kind = "prompts" | "answers" | "calls" | "failed" | "reasoning" | "notices";

/** The kinds with their names, in the order of the page and of its keys. */
export const KINDS: [Kind, string][] = [
  ["prompts", "Prompts"], ["answers", "Answers"], ["calls", "Calls"], ["failed", "Failed calls"], ["reasoning", "Reasoning"], ["notices", "Notices"],
];

/** What is shown at first. */
export const DEFAULT: Kind[] = ["prompts", "answers", "calls"];

/** Returns the kinds that an address names. */
export function parseShown(text: string | null): Set<Kind> {
  if (text === null) return new Set(DEFAULT);
  return new Set(KINDS.map(([kind]) => kind).filter((kind) => text.split(" ").includes(kind)));
}

/** Returns what the address names after a kind was shown or hidden. The default is not named. */
export function toggleShown(shown: Set<Kind>, kind: Kind): string | undefined {
  const next = new Set(shown);
  if (!next.delete(kind)) next.add(kind);
  // All calls, or only those that failed.
  if (kind === "calls") next.delete("failed");
  if (kind === "failed") next.delete("calls");
  if (next.size === DEFAULT.length && DEFAULT.every((one) => next.has(one))) return undefined;
  return KINDS.map(([one]) => one).filter((one) => next.has(one)).join(" ") || "none";
}

/** The letter of an event that repeats an earlier one of its session. It is never shown. */
export const REPEAT = "=";

/** Returns true if only a part of the prompts, answers and calls is shown. */
const isNarrow = (shown: Set<Kind>) => !DEFAULT.every((kind) => shown.has(kind));

/** The notifications that are drawn as compactions, and those that say why an agent stopped. */
export const COMPACTION = /compact/;
export const STOP = /^(interrupted|aborted|turn_aborted|cancelled|api_error|error|stream_error)$/;

export const isCompaction = (event: Event) => COMPACTION.test(event.subtype ?? "");

/** Returns true for a notification that belongs to the conversation, whatever the reader chose. */
export const isLandmark = (event: Event) =>
  event.event_type === "notification" && (isCompaction(event) || STOP.test(event.subtype ?? "") || !!event.is_error);

/**
 * The letter of an item in the map of a session: the first one of its kind; `l` for a landmark, and `.`
 * for what is never an item by itself.
 */
function letterOf({ event, result }: Item): string {
  switch (event.event_type) {
    case "user": return "p";
    case "message": return "a";
    case "reasoning": return "r";
    case "tool_call":
    case "tool_result": return event.is_error || result?.is_error ? "f" : "c";
    case "notification": return isLandmark(event) ? "l" : "n";
    case "token_usage": return ".";
  }
}

function isLetterShown(letter: string, shown: Set<Kind>): boolean {
  switch (letter) {
    case "p": return shown.has("prompts");
    case "a": return shown.has("answers");
    case "c": return shown.has("calls");
    case "f": return shown.has("calls") || shown.has("failed");
    case "r": return shown.has("reasoning");
    case "n": return shown.has("notices");
    default: return letter === "l";
  }
}

/** Returns true if an item is shown. */
export function isShown(item: Item, shown: Set<Kind>): boolean {
  const { event_type, text } = item.event;
  if ((event_type === "message" || event_type === "reasoning") && !text?.trim()) return false;
  return isLetterShown(letterOf(item), shown);
}

/** Returns the map of the events of a session: a letter for each. */
export function mapOf(events: Event[]): string {
  const calls = new Set(events.filter((event) => event.event_type === "tool_call").map((event) => event.event_id));
  const results = new Map(events.filter((event) => event.event_type === "tool_result").map((event) => [event.event_id, event]));
  return events.map((event) => {
    if (event.event_type === "tool_result" && calls.has(event.linked_event_id ?? "")) return ".";
    return letterOf({ event, result: results.get(event.linked_event_id ?? "") });
  }).join("");
}

/** Returns the number of events of a kind. */
export function countKind(letters: string, kind: Kind): number {
  const only = new Set([kind]);
  let found = 0;
  for (const letter of letters) if (letter !== "l" && isLetterShown(letter, only)) found += 1;
  return found;
}

/**
 * Returns the positions of the events that may be shown, in order; `undefined` for all. Events that
 * came after the map was made are among them. `target` is shown, whatever its kind.
 */
export function positionsOf(letters: string | undefined, shown: Set<Kind>, total: number, target: number | undefined): number[] | undefined {
  if (letters === undefined || (!isNarrow(shown) && !letters.includes(REPEAT))) return undefined;
  const positions: number[] = [];
  for (let at = 0; at < total; at += 1) {
    if (at >= letters.length || isLetterShown(letters[at]!, shown) || at === target) positions.push(at);
  }
  return positions;
}
