// The overview: where tokens and money went, what fails, what was left unfinished. Every name filters all
// of it.

import { useEffect, useMemo, useState } from "preact/hooks";
import { isFrozen, linkTo } from "./address";
import { call } from "./api";
import { type Bar, Bars, Calendar, Hours } from "./charts";
import { colourOf } from "./colours";
import { Card, Chip, Choice, EventLink, Failure, FilterButton, Limited, Skeleton } from "./parts";
import { ago, bytes, cost, count, date, duration, modelName, plural, shiftDay, short, shortPath, time, tokensOf, zone } from "./format";
import { file } from "./frozen";
import { useClock, useQuestion, useTool } from "./hooks";
import { sessionLink } from "./links";
import { type Route, addressOf, navigate, setParams, useRestoredPlace } from "./route";
import { type Scope, conditions, scopeOf } from "./scope";
import { Quota } from "./quota";
import { LineCounts } from "./diff";
import type { Event } from "./event";

interface Group {
  group: Record<string, string>;
  sessions: number;
  events: number;
  tool_calls: number;
  tool_results: number;
  tool_errors: number;
  cost_usd?: number;
  tokens?: any;
  duration_ms?: { p50?: number; p95?: number; total: number };
  output_bytes?: { p50: number; p95: number; total: number };
}

const MEASURES = ["cost", "tokens", "events"] as const;
type Measure = (typeof MEASURES)[number];
const SPANS = ["day", "week", "month"] as const;
type Span = (typeof SPANS)[number];

/** Most bars that have room in a chart. */
const MAX_BARS = 100;

/** Returns the span that gives the most bars which have room. */
function fittingSpan(groups: Group[] | undefined): Span {
  const days = (groups ?? []).map((group) => group.group.day).filter(Boolean).sort();
  const range = days.length ? (Date.parse(days[days.length - 1]!) - Date.parse(days[0]!)) / 86_400_000 : 0;
  return range <= MAX_BARS ? "day" : range <= MAX_BARS * 7 ? "week" : "month";
}

/** Returns the key of the next bar. */
function nextKey(key: string, span: Span): string {
  if (span !== "month") return shiftDay(key, span === "week" ? 7 : 1);
  return shiftDay(`${key}-01`, 31).slice(0, 7);
}

/** Returns the filters that leave the span of a bar. */
function spanOf(key: string, span: Span): { since: string; until: string } {
  const firstDay = (key: string) => (span === "month" ? `${key}-01` : key);
  return { since: firstDay(key), until: firstDay(nextKey(key, span)) };
}

/** Adds a cost to a sum. A sum of nothing that has a price is no cost. */
const addCost = (sum: number | undefined, cost: number | undefined) => (cost === undefined ? sum : (sum ?? 0) + cost);

const valueOf = (group: Group, measure: Measure) =>
  measure === "cost" ? (group.cost_usd ?? 0) : measure === "tokens" ? tokensOf(group.tokens?.counted_once) : group.events;

/** Returns the arguments that count what was as long before a span that ends now. */
function earlierScope(scope: Scope, now: number): object | null {
  const span = /^(\d+)([hd])$/.exec(scope.since ?? "");
  if (!span || scope.until || isFrozen) return null;
  const hours = Number(span[1]) * (span[2] === "d" ? 24 : 1);
  // Whole hours, so that the call stays the same for an hour.
  const timeAt = (hour: number) => new Date(hour * 3_600_000).toISOString();
  const end = Math.floor(now / 3_600_000) - hours;
  return { ...scope, since: timeAt(end - hours), until: timeAt(end), group_by: ["provider", "model"], limit: 200 };
}

export function Overview({ route }: { route: Route }) {
  const { params } = route;
  useEffect(() => { document.title = "Overview · sessions"; }, []);
  const measure: Measure = MEASURES.find((one) => one === params.get("measure")) ?? "cost";
  const scope = scopeOf(params);
  const model = params.get("model") ?? undefined;
  const calendar = useTool("session_stats", { ...scope, group_by: model ? ["day", "model"] : ["day"], timezone: zone, limit: 500 });
  const span: Span = SPANS.find((one) => one === params.get("by")) ?? fittingSpan(calendar.data?.groups);
  const days = useTool("session_stats", calendar.data && { ...scope, group_by: [span, "model"], timezone: zone, limit: 500 });
  // The chart comes first: everything else waits for it.
  const isDrawn = !!days.answer;
  const agents = useTool("session_stats", isDrawn ? { ...scope, group_by: ["provider", "model"], limit: 200 } : null);
  const projects = useTool("session_stats", isDrawn ? { ...scope, group_by: ["project", "model"], limit: 500, sort: "cost" } : null);
  const tools = useTool("session_stats", isDrawn ? { ...scope, group_by: model ? ["tool", "model"] : ["tool"], limit: 500 } : null);
  const earlier = earlierScope(scope, useClock(3_600_000));
  const before = useTool("session_stats", earlier);
  useRestoredPlace(isDrawn);
  const keep = (groups: Group[] | undefined) => (groups ?? []).filter((group) => !model || group.group.model === model);
  if (calendar.error) return <Failure error={calendar.error} />;
  if (days.error) return <Failure error={days.error} />;
  const byModel = keep(agents.data?.groups);
  return (
    <div class="overview" aria-busy={days.isLoading}>
      <h1 class="sr">Overview</h1>
      {isFrozen && <About />}
      {agents.data ? <Totals groups={byModel} days={keep(calendar.data?.groups)} before={before.data && keep(before.data.groups)} /> : <Skeleton lines={2} />}
      <div class="choices">
        <Choice label="Measure" value={measure} values={MEASURES} onChange={(value) => setParams({ measure: value === "cost" ? undefined : value }, true)} />
        <Choice label="Group by" value={span} values={SPANS} onChange={(value) => setParams({ by: value }, true)} />
      </div>
      <div class="grid-cards">
        <Card title={`${measure[0]!.toUpperCase()}${measure.slice(1)}${isDrawn ? ` by ${span}` : ""}`} width="full" isReady={!!days.data}>
          <Spending groups={keep(days.data?.groups)} span={span} measure={measure} />
        </Card>
        <Card title="Models" isReady={!!agents.data}><Shares groups={byModel} name="model" filter="model" measure={measure} /></Card>
        <Card title="Projects" isReady={!!projects.data}><Shares groups={keep(projects.data?.groups)} name="project" filter="project" measure={measure} /></Card>
        <Card title="Agents" isReady={!!agents.data}><Shares groups={byModel} name="provider" filter="agent" measure={measure} /></Card>
        <Card title="Days" width="half" note={`in ${isFrozen ? file.timezone : zone}`} isReady={!!calendar.data}><Days groups={keep(calendar.data?.groups)} measure={measure} /></Card>
        {isDrawn && <>
          <WeekHours params={params} />
          <Errors params={params} />
          <SlowTools groups={tools.data && keep(tools.data.groups)} />
          <OpenEnds params={params} />
          <RecentEdits params={params} />
          <Largest params={params} />
          <Quota />
        </>}
      </div>
    </div>
  );
}

/** What a report is about, and when it was made. */
function About() {
  const parts = [
    file.provider && `the agent ${file.provider}`,
    file.project && `folders with “${file.project}”`,
    file.since && `since ${date(file.since)} ${time(file.since)}`,
    file.until && `before ${date(file.until)} ${time(file.until)}`,
  ].filter(Boolean);
  return (
    <p class="about dim">
      {plural(file.sessions.length, "session")}{parts.length > 0 && `: only ${parts.join(", ")}`}. Generated {date(file.generated_at)} {time(file.generated_at)} by
      sessions {file.version}. Costs are list prices of {file.prices_as_of}, not billed amounts. Copied history counts once.
    </p>
  );
}

/** The sums of all groups. `before` are the groups of the same time before. */
function Totals({ groups, days, before }: { groups: Group[]; days: Group[]; before?: Group[] }) {
  const sum = (of: (group: Group) => number, all = groups) => all.reduce((total, group) => total + of(group), 0);
  const costs = (all = groups) => all.reduce((total, group) => addCost(total, group.cost_usd), undefined as number | undefined);
  const results = sum((group) => group.tool_results);
  const errors = sum((group) => group.tool_errors);
  const usage = (name: string) => sum((group) => group.tokens?.counted_once?.[name] ?? 0);
  const input = usage("input_tokens") + usage("cache_read_tokens") + usage("cache_write_tokens");
  const rows: [string, string, string?][] = [
    ["Cost", cost(costs()), before && `${cost(costs(before))} before`],
    ["Tokens", short(sum((group) => tokensOf(group.tokens?.counted_once))), `${short(usage("output_tokens"))} output`],
    ["Read from the cache", input ? `${Math.round((usage("cache_read_tokens") / input) * 100)} %` : "–", "of the input"],
    ["Tool calls", short(sum((group) => group.tool_calls))],
    ["Failed", results ? `${((errors / results) * 100).toFixed(1)} %` : "–", `${count(errors)} results`],
    ["Active", plural(new Set(days.map((group) => group.group.day).filter(Boolean)).size, "day")],
  ];
  return <dl class="totals">{rows.map(([name, value, note]) => <div key={name}><dt>{name}</dt><dd>{value}{note && <small class="dim"> {note}</small>}</dd></div>)}</dl>;
}

const dayLabel = new Intl.DateTimeFormat("en", { day: "numeric", month: "short" });
const monthLabel = new Intl.DateTimeFormat("en", { month: "short", year: "2-digit" });

function Spending({ groups, span, measure }: { groups: Group[]; span: Span; measure: Measure }) {
  const bars = useMemo(() => {
    const found = new Map<string, Bar>();
    const keys = groups.map((group) => group.group[span]!).filter(Boolean).sort();
    const last = keys[keys.length - 1];
    // Spans without work are bars too, so that the distances are true.
    for (let key = keys[0]; key && last && key <= last && found.size < 2000; key = nextKey(key, span)) {
      const date = new Date(span === "month" ? `${key}-01T12:00` : `${key}T12:00`);
      found.set(key, { label: (span === "month" ? monthLabel : dayLabel).format(date), title: key, parts: [] });
    }
    for (const group of groups) {
      found.get(group.group[span] ?? "")?.parts.push({ name: group.group.model ?? "no model", value: valueOf(group, measure) });
    }
    const bars = [...found.values()];
    for (const bar of bars) bar.parts.sort((a, b) => a.name.localeCompare(b.name));
    return bars;
  }, [groups, span, measure]);
  if (!bars.length) return <p class="dim">No data in this period.</p>;
  return <Bars bars={bars.slice(-MAX_BARS)} format={measure === "cost" ? cost : short} label={`${measure} by ${span}`}
    onSelect={(bar) => navigate(addressOf("search", spanOf(bar.title, span)))} />;
}

interface Share {
  value: number;
  /** `undefined` if nothing of it has a price. */
  cost?: number;
  models: Map<string, number>;
}

/** Names with their share, each a filter. */
function Shares({ groups, name, filter, measure }: { groups: Group[]; name: string; filter: string; measure: Measure }) {
  const sums = useMemo(() => {
    const found = new Map<string, Share>();
    for (const group of groups) {
      const key = group.group[name];
      if (!key) continue;
      const row: Share = found.get(key) ?? { value: 0, models: new Map() };
      const value = valueOf(group, measure);
      row.value += value;
      row.cost = addCost(row.cost, group.cost_usd);
      const model = group.group.model ?? "";
      row.models.set(model, (row.models.get(model) ?? 0) + value);
      found.set(key, row);
    }
    return [...found].sort(([a, x], [b, y]) => y.value - x.value || a.localeCompare(b));
  }, [groups, name, measure]);
  const most = Math.max(...sums.map(([, row]) => row.value), 1e-9);
  if (!sums.length) return <p class="dim">None.</p>;
  return (
    <ul class="shares">
      <Limited rows={sums} limit={8} render={([key, row]) => (
        <li key={key}>
          <FilterButton name={filter} value={key}>{name === "model" ? <Chip model={key} /> : key}</FilterButton>
          <span class="value">{measure === "cost" ? cost(row.cost) : short(row.value)}</span>
          <span class="stack" aria-hidden="true">{[...row.models].map(([model, value]) => <span key={model} style={{ width: `${(value / most) * 100}%`, background: colourOf(model) }} />)}</span>
        </li>
      )} />
    </ul>
  );
}

function Days({ groups, measure }: { groups: Group[]; measure: Measure }) {
  const days = useMemo(() => {
    const found = new Map<string, number>();
    for (const group of groups) {
      const key = group.group.day;
      if (key) found.set(key, (found.get(key) ?? 0) + valueOf(group, measure));
    }
    return found;
  }, [groups, measure]);
  return <Calendar days={days} format={measure === "cost" ? cost : short} label={`${measure} by day`} onSelect={(day) => navigate(addressOf("search", spanOf(day, "day")))} />;
}

function WeekHours({ params }: { params: URLSearchParams }) {
  const sql = `SELECT epoch(date_trunc('hour', timestamp))::BIGINT AS hour, count(*) AS events FROM events WHERE NOT is_replay AND timestamp IS NOT NULL AND event_type IN ('user', 'message', 'tool_call')${conditions(params)} GROUP BY 1 ORDER BY 1 DESC`;
  const { data } = useQuestion("hours", scopeOf(params), sql, 1000);
  const cells = useMemo(() => {
    const grid = Array.from({ length: 7 }, () => Array<number>(24).fill(0));
    for (const [hour, events] of data?.rows ?? []) {
      const time = new Date(Number(hour) * 1000);
      grid[(time.getDay() + 6) % 7]![time.getHours()]! += Number(events);
    }
    return grid;
  }, [data]);
  return <Card title="Hours of the week" width="half" note={`in ${zone}`} isReady={!!data}><Hours cells={cells} label="Events by hour of the week" /></Card>;
}

function Errors({ params }: { params: URLSearchParams }) {
  const { data } = useTool("analyze_session", { ...scopeOf(params), limit: 30 });
  const findings: any[] = data?.findings ?? [];
  return (
    <Card title="Recurring errors" note={params.has("model") ? "of all models, with what fixed them" : "with what fixed them"} width="full" isReady={!!data}>
      {data && !findings.length && <p class="dim">No error recurred.</p>}
      <ul class="errors">
        <Limited rows={findings} limit={6} render={(finding: any) => (
          <li key={finding.event_id}>
            <details>
              <summary>
                <span class="tool">{finding.tool_name}</span> <span class="signature">{finding.signature ?? finding.message}</span>
                <span class="value">{finding.occurrences ?? 1}× in {plural(finding.sessions ?? 1, "session")}{finding.fixed ? <span class="good"> · fixed {finding.fixed}×</span> : ""}</span>
              </summary>
              <p>{finding.reason}</p>
              {finding.call && <pre class="terminal command" tabIndex={0}>{finding.call}</pre>}
              {finding.message && <pre class="plain" tabIndex={0}>{finding.message}</pre>}
              <p class="facts"><EventLink id={finding.event_id}>Latest occurrence</EventLink>{finding.fix && <EventLink id={finding.fix.event_id}>Its fix</EventLink>}</p>
              {finding.fix?.diff && <pre class="diff" tabIndex={0}>{finding.fix.diff.split("\n").map((line: string, at: number) =>
                <span key={at} class={line.startsWith("+") ? "d-add" : line.startsWith("-") ? "d-del" : ""}>{line}{"\n"}</span>)}</pre>}
            </details>
          </li>
        )} />
      </ul>
    </Card>
  );
}

function SlowTools({ groups }: { groups?: Group[] }) {
  const rows = (groups ?? [])
    .filter((group) => group.group.tool && (group.duration_ms?.p95 ?? group.duration_ms?.total ?? 0) > 0)
    .sort((a, b) => (b.duration_ms?.total ?? 0) - (a.duration_ms?.total ?? 0));
  return (
    <Card title="Tools by waiting time" width="full" isReady={!!groups}>
      <div class="scroll" tabIndex={0} role="region" aria-label="Tools by waiting time">
        <table class="numbers">
          <thead><tr><th>Tool</th><th>Calls</th><th>Failed</th><th>Median</th><th>p95</th><th>Total</th><th>Output</th></tr></thead>
          <tbody>{rows.slice(0, 12).map((group) => (
            <tr key={Object.values(group.group).join()}>
              <th scope="row">{group.group.tool}</th>
              <td>{count(group.tool_calls)}</td>
              <td class={group.tool_errors > 0 ? "bad" : ""}>{group.tool_results ? `${((group.tool_errors / group.tool_results) * 100).toFixed(0)} %` : ""}</td>
              <td>{duration(group.duration_ms?.p50)}</td>
              <td>{duration(group.duration_ms?.p95)}</td>
              <td>{duration(group.duration_ms?.total)}</td>
              <td>{bytes(group.output_bytes?.total)}</td>
            </tr>
          ))}</tbody>
        </table>
      </div>
    </Card>
  );
}

/** Returns the sessions whose last model is the one of the filter. */
const ofModel = (sessions: any[] | undefined, params: URLSearchParams): any[] =>
  (sessions ?? []).filter((session) => !params.has("model") || modelName(session.model ?? "") === params.get("model"));

/** Number of sessions whose end is looked at. */
const RECENT = 12;

interface OpenEnd {
  session: any;
  todos: any[];
  files: string[];
  unfinished: any[];
}

/** Reads how the latest sessions ended. Sessions that left nothing open are not in the list. */
function useOpenEnds(params: URLSearchParams): OpenEnd[] | undefined {
  const { data } = useTool("list_sessions", { ...scopeOf(params), limit: params.has("model") ? 100 : RECENT });
  const [ends, setEnds] = useState<OpenEnd[]>();
  useEffect(() => {
    if (!data) return;
    const controller = new AbortController();
    const read = async (session: any): Promise<OpenEnd> => {
      const answer = await call("get_session_details", { session_id: session.session_id }, controller.signal);
      const end = answer.data.summary?.end;
      return {
        session,
        todos: end?.todos ?? [],
        files: [...(end?.uncommitted?.files ?? []), ...(end?.uncommitted?.edited ?? [])],
        unfinished: end?.unfinished_calls ?? [],
      };
    };
    Promise.all(ofModel(data.sessions, params).slice(0, RECENT).map(read)).then(
      (all) => setEnds(all.filter((one) => one.todos.length + one.files.length + one.unfinished.length > 0)),
      () => undefined,
    );
    return () => controller.abort();
  }, [data, params.get("model")]);
  return ends;
}

function OpenEnds({ params }: { params: URLSearchParams }) {
  const now = useClock(60_000);
  const ends = useOpenEnds(params);
  return (
    <Card title="Left open" width="half" note={`in the latest ${RECENT} sessions`} isReady={!!ends}>
      {ends?.length === 0 && <p class="dim">Nothing.</p>}
      <ul class="open-ends">
        {(ends ?? []).map(({ session, todos, files, unfinished }) => (
          <li key={session.session_id}>
            <a href={sessionLink(session.session_id)}>{session.title ?? session.session_id}</a> <span class="dim">{ago(session.ended_at, now)}</span>
            <ul>
              {todos.slice(0, 3).map((todo) => <li key={todo.text}><EventLink id={todo.event_id}>{todo.text}</EventLink> <span class="dim">{todo.state}</span></li>)}
              {unfinished.slice(0, 1).map((one) => <li key={one.event_id}><EventLink id={one.event_id}>{one.tool_name}</EventLink> <span class="dim">has no result</span></li>)}
              {files.length > 0 && <li><span class="dim">not committed:</span> {files.slice(0, 3).map((file) => shortPath(file)).join(", ")}{files.length > 3 ? ` and ${files.length - 3} more` : ""}</li>}
            </ul>
          </li>
        ))}
      </ul>
    </Card>
  );
}

const tokensWithSubagents = (session: any): number => tokensOf((session.with_subagents ?? session).tokens?.counted_once);

/** The sessions with the most tokens, with those of their subagents. */
function Largest({ params }: { params: URLSearchParams }) {
  const { data } = useTool("list_sessions", { ...scopeOf(params), sort: "tokens", limit: 100 });
  return (
    <Card title="Largest sessions" width="full" note={<a href={linkTo(addressOf("search", { sort: "tokens" }))}>all</a>} isReady={!!data}>
      <ul class="edits">
        {ofModel(data?.sessions, params).sort((a, b) => tokensWithSubagents(b) - tokensWithSubagents(a)).slice(0, 10).map((session: any) => (
          <li key={session.session_id}>
            <a href={sessionLink(session.session_id)}>{session.title ?? session.session_id}</a>
            <span class="dim">{cost(session.with_subagents?.tokens?.cost_usd ?? session.tokens?.cost_usd)}</span>
            <strong>{short(tokensWithSubagents(session))} tokens</strong>
          </li>
        ))}
      </ul>
    </Card>
  );
}

/** Adds an edit to a list with the latest edits first. Edits of a file are one row, with their sums. */
function joinEdit(rows: any[], edit: any): any[] {
  const row = rows.find((one) => one.path === edit.path);
  if (!row) return [...rows, edit];
  row.edits += 1;
  row.added += edit.added;
  row.removed += edit.removed;
  return rows;
}

function RecentEdits({ params }: { params: URLSearchParams }) {
  const now = useClock(60_000);
  const sql = `SELECT event_id FROM tool_calls WHERE tool_kind IN ('edit', 'write') AND is_error IS DISTINCT FROM true AND path IS NOT NULL${conditions(params)} ORDER BY timestamp DESC NULLS LAST LIMIT 24`;
  const { data: latest } = useQuestion("edits", { ...scopeOf(params), model: params.get("model") ?? undefined }, sql, 24);
  const ids = latest?.rows.map(([id]: [string]) => id);
  const { data } = useTool("get_event_details", ids?.length ? { event_ids: ids, fields: ["tool", "shown"] } : null);
  const rows = useMemo(() => (data?.events ?? []).map(({ event_id, timestamp, files, diff }: Event) =>
    ({ id: event_id, timestamp, path: files?.[0] ?? "", edits: 1, added: diff?.added ?? 0, removed: diff?.removed ?? 0 })).reduce(joinEdit, []), [data]);
  return (
    <Card title="Recent edits" width="half" isReady={!!data || ids?.length === 0}>
      <ul class="edits">
        <Limited rows={rows} limit={10} render={(row: any) => (
          <li key={row.id}>
            <EventLink id={row.id}><code>{shortPath(row.path, 3)}</code></EventLink>
            {row.edits > 1 && <span class="dim">{row.edits} edits</span>}
            <LineCounts {...row} />
            <span class="dim">{ago(row.timestamp, now)}</span>
          </li>
        )} />
      </ul>
    </Card>
  );
}
