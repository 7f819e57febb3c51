// The data of a file that a command wrote: a report, or the transcript of a session. A report has
// its conversations compressed, and reads each when it is shown. A transcript has its events as
// elements that can be read without this script.

import { isFrozen, isTranscript } from "./address";
import type { Event } from "./event";

/** A session with its events. */
export interface Talk {
  events: Event[];
  /** The cost of each turn, in US dollars. */
  costs: [number, number][];
  /** The tools, the end and the children of what `get_session_details` says of the session. */
  details?: any;
}

/** The rows of a report that are not the answer of one call. */
export interface FileData {
  version: string;
  generated_at: string;
  timezone: string;
  prices_as_of: string;
  since?: string;
  until?: string;
  provider?: string;
  project?: string;
  /** The rows of `list_sessions`. */
  sessions: any[];
  /** Logs without a conversation. Their tokens count. */
  others?: any[];
  /** The first file of the report, in a file with further conversations. */
  home?: string;
  /** The groups of `session_stats` by day, session and model. */
  days?: any[];
  /** By session, model and tool. */
  tools?: any[];
  /** By tool, with the spread of the durations. */
  spreads?: any[];
  /** The findings of `analyze_session`. */
  findings?: any[];
  /** Events of each hour: the position of the session, hours since 1970, number. */
  hours?: [number, number, number][];
  /** The ids of the latest calls that changed a file, with their models. */
  edits?: [string, string | null][];
  /** The results that name subagents, by the ids of these. */
  spawned?: Record<string, string>;
  /** The other files with conversations, and the number of the file of each session. */
  files?: string[];
  places?: Record<string, number>;
  costs?: [number, number][];
  details?: any;
}

function readData(): FileData {
  return JSON.parse(document.getElementById("data")!.textContent!);
}

/** The data of the file. */
export const file: FileData = isFrozen ? readData() : { version: "", generated_at: "", timezone: "", prices_as_of: "", sessions: [] };

const rows = new Map<string, any>([...file.sessions, ...(file.others ?? [])].map((session) => [session.session_id, session]));

/** Returns the row of a session, by its id or the beginning of it. */
export function rowOf(id: string): any {
  return rows.get(id) ?? file.sessions.find((session) => session.session_id.startsWith(id));
}

/** Number of conversations that are kept. Each may take some megabytes. */
const MAX_KEPT = 12;

const kept = new Map<string, Promise<Talk>>();

/** The elements with the compressed conversations. */
const packed = new Map([...document.querySelectorAll<HTMLElement>("[data-talk]")].map((element) => [element.dataset.talk!, element]));

/** Returns true if the conversation of a session is in this file. */
export const hasTalk = (id: string) => (isTranscript ? rows.has(id) : packed.has(id));

/** Returns the name of the file with the conversation of a session; empty for this file. */
export function fileOf(id: string): string | undefined {
  if (hasTalk(id)) return "";
  const place = file.places?.[id];
  return place === undefined ? undefined : file.files?.[place];
}

/** Reads the conversation of a session. One that is not in the file is empty. */
export function readTalk(id: string): Promise<Talk> {
  const known = kept.get(id);
  if (known) return known;
  const talk = isTranscript ? Promise.resolve(plainTalk) : unpack(id);
  kept.set(id, talk);
  if (kept.size > MAX_KEPT) kept.delete(kept.keys().next().value!);
  return talk;
}

async function unpack(id: string): Promise<Talk> {
  const text = packed.get(id)?.textContent;
  if (!text) return { events: [], costs: [] };
  const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const talk: Talk = await new Response(plain).json();
  // The ids are the same for all events but for the index.
  for (const event of talk.events) Object.assign(event, { session_id: id, event_id: `${id}:${event.event_index}` });
  return talk;
}

/** Reads the events of a transcript from the elements that show them without a script. */
function readElements(): Event[] {
  return [...document.querySelectorAll<HTMLElement>("[data-fields]")].map((element) => {
    const event: Event = JSON.parse(element.dataset.fields!);
    const pre = element.querySelector("pre");
    if (event.diff && pre?.classList.contains("diff")) event.diff.text = pre.textContent;
    else if (pre) event.text = pre.textContent;
    const images = [...element.querySelectorAll("img")].map((image) => image.src);
    if (images.length) event.images = images;
    return event;
  });
}

const plainTalk: Talk = isTranscript ? { events: readElements(), costs: file.costs ?? [], details: file.details } : { events: [], costs: [] };
