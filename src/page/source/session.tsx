// The view of one session: its turns, its conversation, and what it cost.

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { isEmbedded, isFrozen, isTranscript, linkTo } from "./address";
import { call, forgetAnswers } from "./api";
import { Chip, CopyButton, EventLink, Failure, Skeleton } from "./parts";
import { Conversation, type Subagent } from "./conversation";
import type { Event } from "./event";
import { count, cost, date, duration, plural, shellWord, short, shortNotes, shortPath, time, tokensOf } from "./format";
import { hasTalk } from "./frozen";
import { useAllPages, useMedia, useQuestion, useTool } from "./hooks";
import { sessionAddress, sessionLink } from "./links";
import { SessionNav } from "./list";
import { addressOf, type Route } from "./route";
import { Line } from "./charts";
import { KindFilter, useKindMap } from "./filter";
import { parseShown, positionsOf } from "./kinds";
import { Outline, type PositionListener } from "./outline";
import { quote } from "./scope";

/** Shows a session. The id may be that of an event: `SESSION:INDEX`. */
export function SessionView({ route }: { route: Route }) {
  const [, name = route.id, index] = /^(.*?)(?::(\d+))?$/.exec(route.id) ?? [];
  const named = route.params.get("event") ?? index;
  const linked = useShownEvent(name, named);
  const listed = useTool("list_sessions", { session_ids: [name], format: "full", subagents: true }, "soon");
  const session = listed.data?.sessions?.[0];
  useEffect(() => {
    document.title = session ? `${session.title ?? session.session_id} · sessions` : "sessions";
  }, [session?.title, session?.session_id]);
  if (listed.error) return <Failure error={listed.error} />;
  if (!session && !listed.isLoading) return <p class="hint">There is no session {name}.</p>;
  // The answer of another session stays until that of this one is there. "last" is a name, too.
  const isThere = session && (session.session_id.startsWith(name) || !listed.isLoading) && !(linked.isLoading && linked.session !== session.session_id);
  // While another event of the same session is looked up, the conversation stays where it is.
  const shown = isThere ? <Session key={session.session_id} session={session} target={linked.event} params={route.params} /> : <Skeleton lines={8} />;
  if (isTranscript || isEmbedded) return shown;
  return <div class="with-sessions"><SessionNav current={isThere ? session.session_id : name} /><div>{shown}</div></div>;
}

/** The event that a link leads to. */
interface LinkedEvent {
  session?: string;
  event?: number;
  isLoading: boolean;
}

/**
 * Looks up the event that a link names. A result is shown with its call, which may be hundreds of
 * events before it.
 */
function useShownEvent(session: string, named: string | undefined): LinkedEvent {
  const { data, isLoading } = useTool("get_event_details", named === undefined ? null : { event_ids: [`${session}:${named}`], fields: ["tool"] });
  if (named === undefined) return { isLoading: false };
  const found: Event | undefined = data?.events[0];
  if (!found) return { event: Number(named), isLoading };
  const call = found.event_type === "tool_result" ? found.linked_event_id : undefined;
  const event = call === undefined ? found.event_index : Number(call.slice(call.lastIndexOf(":") + 1));
  return { session: found.session_id, event, isLoading };
}

function Session({ session, target, params }: { session: any; target?: number; params: URLSearchParams }) {
  const id: string = session.session_id;
  const turns = useAllPages("get_session_details", { session_id: id, detail_level: "turns", limit: 500 }, "turns");
  const { data: details } = useTool("get_session_details", { session_id: id });
  const { data: context } = useTool("analyze_session", { session_id: id, checks: "context", limit: 1 });
  const spent = useQuestion("turn_costs", { session_id: id },
    `SELECT turn_index, sum(cost_usd) AS cost, max(coalesce(input_tokens,0)+coalesce(cache_read_tokens,0)+coalesce(cache_write_tokens,0)) AS context FROM usage WHERE session_id = ${quote(id)} GROUP BY 1 ORDER BY 1`,
    1000);
  const family = useQuestion("subagents", { session_id: id },
    `SELECT l.session_id, l.title, s.events, l.spawned_by_event_id FROM lineage l JOIN sessions s USING (session_id) WHERE l.parent_session_id = ${quote(id)} AND l.relation = 'subagent_of' ORDER BY l.started_at LIMIT 200`,
    200);
  const subagents: Subagent[] = useMemo(() => (family.data?.rows ?? []).map(([session_id, title, events, spawned_by_event_id]: any[]) =>
    ({ session_id, title: title && shortNotes(title), events: Number(events), spawned_by_event_id })), [family.data]);
  const costs: Map<number, number> = useMemo(() => new Map((spent.data?.rows ?? []).filter(([, value]: any[]) => value != null).map(([turn, value]: any[]) => [Number(turn), Number(value)])), [spent.data]);
  const show = params.get("show");
  const shown = useMemo(() => parseShown(show), [show]);
  const switches = { shown, open: params.has("open") };
  const [open, setOpen] = useState<Set<number>>(new Set());
  const [listeners] = useState(() => new Set<PositionListener>());
  const total: number = isFrozen && !hasTalk(id) ? 0 : (session.counts?.events ?? 0);
  const map = useKindMap(id, quote(id));
  const positions = useMemo(() => positionsOf(map.letters, shown, total, target), [map.letters, shown, total, target]);
  return (
    <div class="session">
      <header class="session-head">
        <h1>{session.title ?? "Untitled session"}</h1>
        <p class="facts">
          {session.project && <a class="project" href={isTranscript ? undefined : linkTo(addressOf("search", { project: session.project }))}>{session.project}</a>}
          <span>{session.provider}</span>
          {session.model && <Chip model={session.model} />}
          {session.git_branch && <span>⎇ {session.git_branch}</span>}
          <span>{date(session.started_at)} {time(session.started_at)}</span>
          <span>{duration(session.duration_ms)}</span>
          <span>{plural(session.counts?.turns ?? 0, "turn")}</span>
          <span>{plural(session.counts?.tool_calls ?? 0, "call")}</span>
          {session.counts?.tool_errors > 0 && <span class="bad">{session.counts.tool_errors} failed</span>}
          <strong>{cost(session.with_subagents?.tokens?.cost_usd ?? session.tokens?.cost_usd)}</strong>
        </p>
        <Lineage session={session} />
      </header>
      <Outline turns={turns} costs={costs} session={id} listeners={listeners} />
      <section class="talk" aria-label="Conversation">
        {session.source_gone && <p class="hint">The log of this session has been deleted. Its events are still in the store.</p>}
        {isFrozen && !hasTalk(id) && <Elsewhere id={id} />}
        {total > 0 && <KindFilter shown={shown} isOpen={switches.open} letters={map.letters} />}
        {show !== null && map.isLoading ? <Skeleton lines={8} />
          : <Conversation key={`${show} ${switches.open}`} session={id} total={total} positions={positions} target={target} switches={switches} open={open} setOpen={setOpen}
              subagents={subagents} onPosition={(event) => listeners.forEach((listener) => listener(event))} />}
        {positions?.length === 0 && <p class="dim none">This session has no events of these kinds.</p>}
        <p class="end dim">End of the session</p>
      </section>
      <aside class="facts-side" aria-label="Facts about the session">
        <Meter turns={turns} costs={costs} context={context?.context} listeners={listeners} session={id} />
        <Folded title="Labels, tools and facts">
          {!isEmbedded && !isFrozen && <Labels session={session} />}
          <Related children={details?.summary?.children} />
          <End end={details?.summary?.end} />
          <Tools tools={details?.summary?.tools} />
          <Facts session={session} />
        </Folded>
      </aside>
    </div>
  );
}

/** Folds what a narrow window has above the conversation. */
function Folded({ title, children }: { title: string; children: ComponentChildren }) {
  const isNarrow = useMedia("(max-width: 800px)");
  return isNarrow ? <details class="folded"><summary>{title}</summary>{children}</details> : <>{children}</>;
}

/** Says where the conversation is that a file does not have. */
function Elsewhere({ id }: { id: string }) {
  const link = sessionLink(id);
  if (link) return <p class="hint">The conversation is in <a href={link}>another file of this report</a>.</p>;
  return <p class="hint">The conversation is not in this file. <code>sessions export html {shellWord(id)}</code> writes it.</p>;
}

const RELATIONS: Record<string, string> = {
  subagent_of: "subagent of", forked_from: "forked from", continued_from: "continues", resumed_from: "resumes", review_of: "review of",
  earlier_version_of: "earlier version of",
};

/** The same relations, seen from the parent. */
const BACKWARDS: Record<string, string> = {
  subagent_of: "subagent", forked_from: "fork", continued_from: "continuation", resumed_from: "resumption", review_of: "review",
  earlier_version_of: "earlier version",
};

function Lineage({ session }: { session: any }) {
  const parent: string | undefined = session.parent_session_id;
  if (!parent) return null;
  return <p class="lineage">↳ {RELATIONS[session.relation] ?? session.relation} <a href={sessionLink(parent)}>{parent}</a></p>;
}

/** Cost and context up to the event that is read now. */
function Meter({ turns, costs, context, listeners, session }: { turns?: any[]; costs: Map<number, number>; context: any; listeners: Set<PositionListener>; session: string }) {
  const [position, setPosition] = useState(0);
  useEffect(() => {
    listeners.add(setPosition);
    return () => { listeners.delete(setPosition); };
  }, [listeners]);
  const all = useMemo(() => [...costs].sort(([a], [b]) => a - b), [costs]);
  const total = all.reduce((sum, [, value]) => sum + value, 0);
  const turn = (turns ?? []).findLast((one) => one.event_range[0] <= position)?.turn_index ?? 0;
  const until = all.filter(([at]) => at <= turn).reduce((sum, [, value]) => sum + value, 0);
  const series: [number, number][] = context?.series ?? [];
  const now = series.findLast(([event]) => event <= position)?.[1] ?? series[0]?.[1];
  if (!costs.size && now === undefined) return null;
  return (
    <section class="meter">
      <h2>At turn {turn}</h2>
      <dl>
        {costs.size > 0 && <div><dt>Cost so far</dt><dd>{cost(until)} <span class="dim">of {cost(total)}</span></dd></div>}
        {now !== undefined && <div><dt>Context</dt><dd>{short(now)} <span class="dim">peak {short(context.peak_tokens)}</span></dd></div>}
      </dl>
      {series.length > 1 && <Line series={series} position={position} label={`Context over the session: at most ${short(context.peak_tokens)} tokens`}
        href={(event) => sessionAddress(session, event)} />}
      {context?.compactions > 0 && <p class="dim">{plural(context.compactions, "compaction")}</p>}
    </section>
  );
}

function Labels({ session }: { session: any }) {
  const [text, setText] = useState("");
  const [note, setNote] = useState<string>();
  const [error, setError] = useState<string>();
  const id = session.session_id;
  const update = async (change: object) => {
    try {
      await call("update_session_labels", { updates: [{ session_id: id, ...change }] });
      setError(undefined);
      forgetAnswers();
    } catch (failure) {
      setError((failure as Error).message);
    }
  };
  return (
    <section>
      <h2>Labels</h2>
      <p class="labels">
        {(session.labels ?? []).map((label: string) => (
          <span key={label} class="label-chip">
            <a href={linkTo(addressOf("search", { label }))}>{label}</a>
            <button type="button" aria-label={`Remove the label ${label}`} onClick={() => void update({ remove: [label] })}>×</button>
          </span>
        ))}
      </p>
      <form onSubmit={(event) => { event.preventDefault(); if (text.trim()) void update({ add: [text.trim()] }).then(() => setText("")); }}>
        <input value={text} maxLength={40} placeholder="Add a label" aria-label="Add a label" onInput={(event) => setText(event.currentTarget.value)} />
      </form>
      {note === undefined
        ? <p class="note">{session.note} <button type="button" onClick={() => setNote(session.note ?? "")}>{session.note ? "Edit the note" : "Add a note"}</button></p>
        : <form onSubmit={(event) => { event.preventDefault(); void update({ note }).then(() => setNote(undefined)); }}>
            <textarea value={note} maxLength={1000} rows={4} aria-label="Note" onInput={(event) => setNote(event.currentTarget.value)} />
            <button type="submit">Save the note</button>
          </form>}
      {error && <p class="bad">{error}</p>}
    </section>
  );
}

/** Sessions that derive from this one. */
function Related({ children }: { children?: any[] }) {
  if (!children?.length) return null;
  return (
    <section>
      <h2>Related sessions</h2>
      <ul>{children.slice(0, 20).map((child) => (
        <li key={child.session_id}><a href={sessionLink(child.session_id)}>{child.title ?? child.session_id}</a> <span class="dim">{(BACKWARDS[child.relation] ?? child.relation).replaceAll("_", " ")}</span></li>
      ))}</ul>
    </section>
  );
}

function End({ end }: { end: any }) {
  if (!end) return null;
  const files = [...(end.uncommitted?.files ?? []), ...(end.uncommitted?.edited ?? [])];
  const unfinished = end.unfinished_calls ?? [];
  if (!end.todos?.length && !unfinished.length && !files.length) return null;
  return (
    <section>
      <h2>Left open</h2>
      <ul class="open-ends">
        {(end.todos ?? []).map((todo: any) => <li key={todo.text}><EventLink id={todo.event_id}>{todo.text}</EventLink> <span class="dim">{todo.state}</span></li>)}
        {unfinished.map((one: any) => <li key={one.event_id}><EventLink id={one.event_id}>{one.tool_name} {one.call}</EventLink> <span class="dim">no result</span></li>)}
        {files.slice(0, 12).map((file) => <li key={file}><code>{shortPath(file, 2)}</code> <span class="dim">not committed</span></li>)}
      </ul>
    </section>
  );
}

function Tools({ tools }: { tools?: any[] }) {
  if (!tools?.length) return null;
  const most = Math.max(...tools.map((tool) => tool.calls));
  return (
    <section>
      <h2>Tools</h2>
      <ul class="bars">
        {tools.slice(0, 10).map((tool) => (
          <li key={tool.tool_name}>
            <span class="name" title={tool.tool_name}>{tool.tool_name}</span>
            <span class="bar" style={{ width: `${(tool.calls / most) * 100}%` }} />
            <span class="value">{count(tool.calls)}{tool.errors > 0 && <span class="bad"> {tool.errors} failed</span>}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** A command to copy. */
const Command = ({ text, title }: { text: string; title: string }) => <p class="command-line" title={title}><code>{text}</code><CopyButton text={text} title={title} /></p>;

function Facts({ session }: { session: any }) {
  const usage = session.tokens?.counted_once;
  const rows: [string, any][] = [
    ["Session", session.session_id],
    ["Folder", session.cwd],
    ["Agent", [session.provider, session.agent_version].filter(Boolean).join(" ")],
    ["Tokens", usage && `${short(tokensOf(usage))}: ${short(usage.input_tokens)} in, ${short(usage.output_tokens)} out, ${short(usage.cache_read_tokens)} from the cache`],
    ["Subagents", session.with_subagents && `${session.with_subagents.subagents}, with them ${cost(session.with_subagents.tokens?.cost_usd)}`],
    ["Log", session.source_path],
    ["Masked", session.redactions && Object.entries(session.redactions).map(([kind, number]) => `${number} ${kind}`).join(", ")],
  ];
  return (
    <section>
      <h2>Facts</h2>
      <Command text={`sessions resume ${shellWord(session.session_id)}`} title="Copy the command that resumes the session with its agent" />
      <Command text={`sessions export html ${shellWord(session.session_id)}`} title="Copy the command that writes the session as one file" />
      <dl class="list">{rows.filter(([, value]) => value).map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
    </section>
  );
}
