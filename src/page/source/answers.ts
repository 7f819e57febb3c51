// Answers the calls of the page from the data of a file, in the form of the tools. What a file does
// not have is empty in its answer.

import type { Event } from "./event";
import { cellGroups, firstDay, isInScope } from "./cells";
import { type Talk, file, readTalk, rowOf } from "./frozen";
import { modelName } from "./format";
import { mapOf } from "./kinds";

type Args = Record<string, any>;

/** Number of events of a page that are looked at before the browser may draw. */
const SEARCH_SLICE = 20;
/** Points of the line of the context. */
const MAX_POINTS = 200;
/** Characters of a text around what was found. */
const SNIPPET = 240;

const failure = (code: string, message: string) => ({ status: "error", error: { code, message } });

const success = (data: any, total?: number, cursor?: string) => ({
  status: "ok",
  data,
  pagination: { has_more: cursor !== undefined, next_cursor: cursor },
  metadata: { duration_ms: 0, results_total: total },
});

/** Answers a call. */
export async function answerFromFile(tool: string, args: Args, signal?: AbortSignal): Promise<any> {
  switch (tool) {
    case "list_sessions": return listSessions(args);
    case "session_stats": return success({ groups: cellGroups(args) });
    case "get_event_details": return eventDetails(args);
    case "get_session_details": return sessionDetails(args);
    case "analyze_session": return analyzeSession(args);
    case "search_events": return searchEvents(args, signal);
    case "query_sql": return answerQuestion(args);
    default: return failure("invalid_argument", `This file cannot answer ${tool}.`);
  }
}

const tokens = (session: any): number => {
  const usage = (session.with_subagents ?? session).tokens?.counted_once ?? {};
  return (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0) + (usage.cache_read_tokens ?? 0) + (usage.cache_write_tokens ?? 0);
};

const ORDERS: Record<string, (session: any) => number> = {
  cost: (session) => (session.with_subagents ?? session).tokens?.cost_usd ?? 0,
  tokens,
  errors: (session) => session.counts?.tool_errors ?? 0,
  duration: (session) => session.duration_ms ?? 0,
};

function listSessions(args: Args) {
  if (args.session_ids) {
    const found = args.session_ids.map(rowOf);
    return success({ sessions: found.filter(Boolean), not_found: args.session_ids.filter((_: string, at: number) => !found[at]) });
  }
  const isShown = (session: any) => (args.subagents || session.relation !== "subagent_of" || !rowOf(session.parent_session_id)) && isInScope(session, args);
  const all = file.sessions.filter(isShown);
  const value = ORDERS[args.sort];
  if (value) all.sort((a, b) => value(b) - value(a));
  const from = Number(args.cursor ?? 0);
  const end = from + (args.limit ?? 20);
  return success({ sessions: all.slice(from, end) }, all.length, end < all.length ? String(end) : undefined);
}

const sessionOf = (id: string) => id.slice(0, id.lastIndexOf(":"));

async function eventDetails(args: Args) {
  const ids: string[] = args.event_ids;
  const events: Event[] = [];
  const missing: string[] = [];
  for (const id of ids) {
    const { events: all } = await readTalk(sessionOf(id));
    const event = all[Number(id.slice(id.lastIndexOf(":") + 1))];
    if (event) events.push(event);
    else missing.push(id);
  }
  return success({ events, not_found: missing });
}

async function sessionDetails(args: Args) {
  const session = rowOf(args.session_id);
  if (!session) return failure("session_not_found", `The session ${args.session_id} is not in this file.`);
  const talk = await readTalk(session.session_id);
  if (args.detail_level !== "turns") return success(talk.details ?? {});
  return success({ turns: turnsOf(talk.events) });
}

/** Returns the turns of a session as `get_session_details` does. */
function turnsOf(events: Event[]): any[] {
  const turns = new Map<number, any>();
  for (const event of events) {
    let turn = turns.get(event.turn_index);
    if (!turn) {
      turn = { turn_index: event.turn_index, event_range: [event.event_index, event.event_index], timestamp: event.timestamp, tool_calls: 0, tool_errors: 0 };
      turns.set(event.turn_index, turn);
    }
    turn.event_range[1] = event.event_index;
    if (event.event_type === "user" && !event.is_sidechain && !turn.prompt) turn.prompt = { text: event.text ?? "" };
    if (event.event_type === "tool_call") turn.tool_calls += 1;
    if (event.event_type === "tool_result" && event.is_error) turn.tool_errors += 1;
  }
  return [...turns.values()].sort((a, b) => a.turn_index - b.turn_index);
}

async function analyzeSession(args: Args) {
  if (args.session_id) return success({ context: contextOf((await readTalk(args.session_id)).events) });
  const findings = (file.findings ?? []).filter((finding) => isInScope(rowOf(sessionOf(finding.event_id)), args));
  return success({ findings: findings.slice(0, args.limit) });
}

/** Returns the size of the prompt of each response. */
function contextOf(events: Event[]) {
  const series: [number, number][] = [];
  let compactions = 0;
  for (const event of events) {
    if (event.event_type === "notification" && event.subtype === "compact_boundary") compactions += 1;
    const usage = event.usage;
    if (!usage || event.is_sidechain) continue;
    const size = (usage.input_tokens ?? 0) + (usage.cache_read_tokens ?? 0) + (usage.cache_write_tokens ?? 0);
    if (size > 0) series.push([event.event_index, size]);
  }
  const step = Math.max(1, Math.ceil(series.length / MAX_POINTS));
  return {
    series: series.filter((_, at) => at % step === 0 || at === series.length - 1),
    peak_tokens: series.reduce((most, [, size]) => Math.max(most, size), 0),
    compactions,
  };
}

interface Query {
  words: string[];
  model?: string;
  label?: string;
  isError: boolean;
}

/** Parses words, quoted words, and the qualifiers that the filters of the page give. */
function parseQuery(text: string): Query {
  const query: Query = { words: [], isError: false };
  for (const [, name, quoted, bare] of text.matchAll(/(?:(model|label|is):)?(?:"((?:\\.|[^"\\])*)"|(\S+))/g)) {
    const value = (quoted?.replace(/\\(.)/g, "$1") ?? bare ?? "").toLowerCase();
    if (name === "model") query.model = value;
    else if (name === "label") query.label = value;
    else if (name === "is") query.isError ||= value === "error";
    else if (value) query.words.push(value);
  }
  return query;
}

function matchOf(event: Event, query: Query, session: any): any {
  const text = event.text ?? event.diff?.text ?? "";
  const folded = text.toLowerCase();
  const isFound = query.words.every((word) => folded.includes(word))
    && (!query.isError || event.is_error)
    && (!query.model || modelName((event.model ?? "").toLowerCase()).includes(modelName(query.model)));
  if (!isFound || event.event_type === "token_usage") return undefined;
  const at = query.words.length ? folded.indexOf(query.words[0]!) : 0;
  const start = Math.max(0, at - 60);
  const { event_id, event_type, turn_index, timestamp, tool_name, is_error } = event;
  const snippet = `${start > 0 ? "…" : ""}${text.slice(start, start + SNIPPET)}`;
  return { event_id, event_type, turn_index, timestamp, tool_name, is_error, snippet, project: session.project, provider: session.provider };
}

/** Looks through the conversations, the latest first. The cursor is the position of a session. */
async function searchEvents(args: Args, signal?: AbortSignal) {
  const query = parseQuery(args.query);
  const limit = args.limit ?? 20;
  const sessions = args.session_id ? [rowOf(args.session_id)] : file.sessions;
  const matches: any[] = [];
  let at = Number(args.cursor ?? 0);
  for (; at < sessions.length && matches.length < limit; at += 1) {
    const session = sessions[at];
    if (!isInScope(session, { ...args, label: query.label })) continue;
    const { events } = await readTalk(session.session_id);
    for (const event of events) {
      const match = matchOf(event, query, session);
      if (match) matches.push(match);
      if (matches.length >= limit && args.session_id) break;
    }
    if (at % SEARCH_SLICE === 0) await new Promise((done) => setTimeout(done));
    signal?.throwIfAborted();
  }
  const isDone = at >= sessions.length;
  const answer = success({ matches, query: { all_of: query.words } }, matches.length, isDone || args.session_id ? undefined : String(at));
  return { ...answer, metadata: { ...answer.metadata, results_total_is: isDone ? undefined : "at_least" } };
}

/** Answers what the page asks a server by SQL. */
async function answerQuestion(args: Args) {
  switch (args.question) {
    case "turn_costs": {
      const talk: Talk = await readTalk(args.session_id);
      return success({ rows: talk.costs.map(([turn, cost]) => [turn, cost]) });
    }
    case "kinds": return success({ rows: [[mapOf((await readTalk(args.session_id)).events)]] });
    case "subagents": {
      const children = file.sessions.filter((one) => one.parent_session_id === args.session_id && one.relation === "subagent_of");
      return success({ rows: children.map((one) => [one.session_id, one.title, one.counts?.events ?? 0, file.spawned?.[one.session_id]]) });
    }
    case "hours": {
      const first = firstDay(args.since);
      const isInTime = (seconds: number) => (!first || seconds >= Date.parse(first) / 1000) && (!args.until || seconds < Date.parse(args.until) / 1000);
      const isCounted = ([at, hour]: number[]) => isInScope(file.sessions[at!], args) && isInTime(hour! * 3600);
      return success({ rows: (file.hours ?? []).filter(isCounted).map(([, hour, events]) => [hour * 3600, events]) });
    }
    case "edits": {
      const edits = (file.edits ?? []).filter(([id, model]) => isInScope(rowOf(sessionOf(id)), args) && (!args.model || modelName(model ?? "") === args.model));
      return success({ rows: edits.slice(0, 24).map(([id]) => [id]) });
    }
    default: return success({ rows: [] });
  }
}
