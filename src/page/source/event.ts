// Events as the tools return them, and calls joined with their results.

/** The change of a call that edits or writes files. */
export interface EditDiff {
  added: number;
  removed: number;
  /** Lines after `+`, `-` or a space; after `@@` a gap, after `***` a file. */
  text: string;
}

/** An event as `get_event_details` returns it. */
export interface Event {
  event_id: string;
  session_id: string;
  event_index: number;
  turn_index: number;
  step_index: number;
  event_type: "user" | "message" | "reasoning" | "tool_call" | "tool_result" | "token_usage" | "notification";
  subtype?: string;
  timestamp?: string;
  text?: string;
  text_chars?: number;
  tool_name?: string;
  tool_kind?: string;
  files?: string[];
  command?: string;
  linked_event_id?: string;
  is_error?: boolean;
  exit_code?: number;
  duration_ms?: number;
  model?: string;
  is_replay?: boolean;
  is_sidechain?: boolean;
  is_abandoned?: boolean;
  usage?: Record<string, number>;
  /** A call or a notice in one line. */
  line?: string;
  diff?: EditDiff;
  /** The images of an event of a transcript, as addresses with their data. */
  images?: string[];
}

/** A call with its result, or any other event by itself. */
export interface Item {
  event: Event;
  result?: Event;
}

/** Joins calls with their results. `results` has results that are further away. */
export function joinItems(events: Event[], results: Map<string, Event>): Item[] {
  const here = new Map(events.map((event) => [event.event_id, event]));
  const items: Item[] = [];
  for (const event of events) {
    if (event.event_type === "tool_result" && event.linked_event_id) continue;
    const linked = event.event_type === "tool_call" ? event.linked_event_id : undefined;
    items.push({ event, result: linked ? (here.get(linked) ?? results.get(linked)) : undefined });
  }
  return items;
}
