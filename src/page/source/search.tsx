// The view of sessions: all of them, or those with a text, as the reader types.

import { useEffect, useMemo, useState } from "preact/hooks";
import { linkTo } from "./address";
import { type Answer, call } from "./api";
import { Chip, Failure, Skeleton } from "./parts";
import type { Event } from "./event";
import { ago, cost, count, duration, plural, shortNotes, time } from "./format";
import { useClock, useTool } from "./hooks";
import { sessionLink } from "./links";
import { keepList, listedSession } from "./list";
import { marked, patternOf } from "./marks";
import { type Route, addressOf, useRestoredPlace } from "./route";
import { scopeOf } from "./scope";

/** Most matches that one answer has. */
const PAGE = 50;
/** Matches of a session that are shown at first. */
const SHOWN_MATCHES = 4;

/** The query with the filters that are qualifiers of the query language. */
function queryOf(params: URLSearchParams): string {
  const quoted = (text: string) => (/[\s"]/.test(text) ? `"${text.replace(/["\\]/g, "\\$&")}"` : text);
  const parts = [params.get("q") ?? ""];
  const model = params.get("model");
  const label = params.get("label");
  // Some agents leave out the first word of the name.
  if (model) parts.push(`model:${quoted(model.replace(/^claude-(?=opus|sonnet|haiku)/, ""))}`);
  if (label) parts.push(`label:${quoted(label)}`);
  if (params.has("failed")) parts.push("is:error");
  return parts.join(" ").trim();
}

export function SearchView({ route }: { route: Route }) {
  const { params } = route;
  const query = params.get("q") ?? "";
  useEffect(() => { document.title = query ? `${query} · sessions` : "sessions"; }, [query]);
  // A text, a model or a failure is found in events; the rest chooses sessions.
  const isSearch = query.trim() || params.has("model") || params.has("failed");
  return <><h1 class="sr">Sessions</h1>{isSearch ? <Results params={params} /> : <SessionList params={params} />}</>;
}

/** Returns the position of the event of a match. */
const indexOf = (match: any): string => match.event_id.slice(match.event_id.lastIndexOf(":") + 1);

interface Found {
  session: string;
  matches: any[];
}

function Results({ params }: { params: URLSearchParams }) {
  const query = queryOf(params);
  const sort = params.get("sort") ?? undefined;
  const args = { query, ...scopeOf(params), limit: PAGE, sort };
  const first = useTool("search_events", args);
  const [more, setMore] = useState<{ key: string; matches: any[]; cursor?: string }>();
  const key = JSON.stringify(args);
  const pages = more?.key === key ? more : undefined;
  const matches: any[] = useMemo(() => [...(first.data?.matches ?? []), ...(pages?.matches ?? [])], [first.data, pages]);
  const cursor = pages ? pages.cursor : first.answer?.pagination?.next_cursor;
  const groups: Found[] = useMemo(() => {
    const found = new Map<string, Found>();
    for (const match of matches) {
      const session = match.event_id.slice(0, match.event_id.lastIndexOf(":"));
      if (!found.has(session)) found.set(session, { session, matches: [] });
      found.get(session)!.matches.push(match);
    }
    return [...found.values()];
  }, [matches]);
  const ids = groups.slice(0, 50).map((group) => group.session);
  const listed = useTool("list_sessions", ids.length ? { session_ids: ids, subagents: true, limit: 50 } : null);
  const sessions = useMemo(() => new Map((listed.data?.sessions ?? []).map((session: any) => [session.session_id, session])), [listed.data]);
  const pattern = useMemo(() => patternOf(first.data?.query), [first.data]);
  const calls = useCalls(matches);
  useEffect(() => {
    if (first.answer) keepList(groups.map(({ session, matches }) => listedSession(sessions.get(session) ?? { session_id: session }, sessionLink(session, indexOf(matches[0])))), `${groups.length}${cursor ? "+" : ""}`);
  }, [groups, sessions, cursor]);
  useRestoredPlace(!!first.answer);
  const loadMore = async () => {
    const answer: Answer = await call("search_events", { ...args, cursor });
    setMore({ key, matches: [...(pages?.matches ?? []), ...answer.data.matches], cursor: answer.pagination?.next_cursor });
  };
  if (first.error) return <Failure error={first.error} />;
  const facts = first.answer?.metadata;
  return (
    <div class="results" aria-busy={first.isLoading}>
      <p class="summary" role="status">
        {facts && !matches.length && !first.isLoading && "No matches."}
        {matches.length > 0 && facts && <>
          {facts.results_total_is ? "at least " : ""}{plural(facts.results_total ?? matches.length, "passage")} <span class="dim">in {facts.duration_ms} ms</span>
        </>}
        {matches.length > 0 && <span class="sorts">
          <a href={linkTo(addressOf("search", { q: params.get("q") ?? undefined, sort: undefined }))} aria-current={sort ? undefined : "true"}>newest</a>
          <a href={linkTo(addressOf("search", { q: params.get("q") ?? undefined, sort: "relevance" }))} aria-current={sort ? "true" : undefined}>best</a>
        </span>}
      </p>
      {!first.answer && <Skeleton lines={8} />}
      {(first.answer?.warnings ?? []).filter((one) => one.code === "RANKED_INSTEAD").map((one) => <p key={one.code} class="hint">{one.message}</p>)}
      {groups.map((group) => <Group key={group.session} group={group} session={sessions.get(group.session)} calls={calls} pattern={pattern} />)}
      {cursor && <p class="more"><button type="button" onClick={() => void loadMore()}>Show more matches</button></p>}
    </div>
  );
}

/** Most events that one call of the tool takes. */
const MAX_EVENTS = 50;

/** Reads the calls among matches: a call in one line says more than its arguments. */
function useCalls(matches: any[]): Map<string, Event> {
  const [known, setKnown] = useState<Map<string, Event>>(new Map());
  const missing = matches.filter((match) => match.event_type === "tool_call" && !match.is_diff && !known.has(match.event_id)).slice(0, MAX_EVENTS);
  const { data } = useTool("get_event_details", missing.length ? { event_ids: missing.map((match) => match.event_id), fields: ["tool", "shown"] } : null);
  useEffect(() => {
    if (data) setKnown((old) => new Map([...old, ...data.events.map((event: Event): [string, Event] => [event.event_id, event])]));
  }, [data]);
  return known;
}

/** A passage: a call in one line, with the line of its text that was found, or the text around what was found. */
function Passage({ match, call, pattern }: { match: any; call?: Event; pattern?: RegExp }) {
  const text = shortNotes(match.snippet);
  // Until the call is read, at least the name of its first argument is left out.
  if (!call?.line) return <>{marked(match.event_type === "tool_call" ? text.replace(/^…?[\w.-]+: /, "") : text, pattern)}</>;
  const isFound = (line: string) => !!pattern && line.search(pattern) >= 0;
  const lines = (call.diff?.text || text).split("\n");
  const found = isFound(call.line) ? undefined : lines.find(isFound)?.replace(/^[-+\s]*(?:[\w.-]+: )?/, "");
  return <><code>{marked(call.line, pattern)}</code>{found && <span class="dim"> … {marked(found, pattern)}</span>}</>;
}

const KINDS: Record<string, string> = { user: "prompt", message: "answer", tool_call: "call", tool_result: "result", notification: "notice" };

function Group({ group, session, calls, pattern }: { group: Found; session: any; calls: Map<string, Event>; pattern?: RegExp }) {
  const now = useClock(60_000);
  const [isOpen, setOpen] = useState(false);
  const shown = isOpen ? group.matches : group.matches.slice(0, SHOWN_MATCHES);
  const first = group.matches[0];
  return (
    <section class="group">
      <h2><a href={sessionLink(group.session)}>{session?.title ?? group.session}</a></h2>
      <p class="facts dim">
        <span>{first.project}</span><span>{first.provider}</span>
        {session?.model && <Chip model={session.model} />}
        <span>{ago(session?.ended_at ?? first.timestamp, now)}</span>
        {session && <span>{cost(session.tokens?.cost_usd)}</span>}
      </p>
      <ul>
        {shown.map((match) => {
          return (
            <li key={match.event_id}>
              <a class={`match ${match.is_error ? "failed" : ""}`} data-row href={sessionLink(group.session, indexOf(match))}>
                <span class="kind">{match.tool_name ?? KINDS[match.event_type] ?? match.event_type}</span>
                <span class="snippet"><Passage match={match} call={calls.get(match.event_id)} pattern={pattern} /></span>
                <span class="when dim">{time(match.timestamp)}</span>
              </a>
            </li>
          );
        })}
      </ul>
      {group.matches.length > SHOWN_MATCHES && <p class="more"><button type="button" onClick={() => setOpen(!isOpen)}>
        {isOpen ? "Show less" : `Show ${group.matches.length - SHOWN_MATCHES} more from this session`}
      </button></p>}
    </section>
  );
}

const SORTS = ["recent", "cost", "tokens", "errors", "duration"] as const;

/** Sessions by day. */
function SessionList({ params }: { params: URLSearchParams }) {
  const now = useClock(60_000);
  const sort = params.get("sort") ?? "recent";
  const args = { ...scopeOf(params), label: params.get("label") ?? undefined, limit: 100, sort };
  const first = useTool("list_sessions", args);
  const key = JSON.stringify(args);
  const [more, setMore] = useState<{ key: string; sessions: any[]; cursor?: string }>();
  const pages = more?.key === key ? more : undefined;
  const sessions: any[] = [...(first.data?.sessions ?? []), ...(pages?.sessions ?? [])];
  const cursor = pages ? pages.cursor : first.answer?.pagination?.next_cursor;
  useEffect(() => { if (first.answer) keepList(sessions.map((session) => listedSession(session)), count(first.answer.metadata.results_total)); }, [first.data, pages]);
  useRestoredPlace(!!first.answer);
  if (first.error) return <Failure error={first.error} />;
  const loadMore = async () => {
    const answer: Answer = await call("list_sessions", { ...args, cursor });
    setMore({ key, sessions: [...(pages?.sessions ?? []), ...answer.data.sessions], cursor: answer.pagination?.next_cursor });
  };
  return (
    <div class="results" aria-busy={first.isLoading}>
      <p class="summary" role="status">
        {first.answer && plural(first.answer.metadata.results_total ?? sessions.length, "session")}
        <span class="sorts">{SORTS.map((one) => <a key={one} href={linkTo(addressOf("search", { sort: one === "recent" ? undefined : one }))} aria-current={sort === one ? "true" : undefined}>{one}</a>)}</span>
      </p>
      {!first.answer && <Skeleton lines={8} />}
      <ul class="sessions">
        {sessions.map((session) => (
          <li key={session.session_id}>
            <a class="session-row" data-row href={sessionLink(session.session_id)}>
              <span class="title">{session.title ?? session.session_id}</span>
              <span class="facts dim">
                <span>{session.project}</span><span>{session.provider}</span>
                {session.model && <Chip model={session.model} />}
                <span>{plural(session.counts?.turns ?? 0, "turn")}</span>
                <span>{count(session.counts?.tool_calls)} calls</span>
                {session.counts?.tool_errors > 0 && <span class="bad">{session.counts.tool_errors} failed</span>}
                <span>{duration(session.duration_ms)}</span>
                {(session.labels ?? []).map((label: string) => <span key={label} class="label-chip">{label}</span>)}
              </span>
              <span class="when"><span>{ago(session.ended_at, now)}</span><strong>{cost(session.with_subagents?.tokens?.cost_usd ?? session.tokens?.cost_usd)}</strong></span>
            </a>
          </li>
        ))}
      </ul>
      {cursor && <p class="more"><button type="button" onClick={() => void loadMore()}>Show more sessions</button></p>}
    </div>
  );
}
