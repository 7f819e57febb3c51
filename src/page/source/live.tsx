// What agents are doing now: a card for every session that has an event of the last minutes.

import { useEffect } from "preact/hooks";
import { isConnected } from "./api";
import { Chip, Failure } from "./parts";
import { ago, cost, duration, plural, short } from "./format";
import { useClock, useGeneration, useTool } from "./hooks";
import { sessionLink } from "./links";
import { scopeOf } from "./scope";
import type { Route } from "./route";

/** A session without an event for this long is no longer at work. */
const ACTIVE_MS = 15 * 60_000;
/** Number of cards. */
const CARDS = 12;

export function LiveView({ route }: { route: Route }) {
  useEffect(() => { document.title = "Live · sessions"; }, []);
  useGeneration();
  const now = useClock(1000);
  const listed = useTool("list_sessions", { ...scopeOf(route.params), limit: CARDS }, "soon");
  if (listed.error) return <Failure error={listed.error} />;
  const sessions: any[] = listed.data?.sessions ?? [];
  const active = sessions.filter((session) => now - Date.parse(session.ended_at ?? 0) < ACTIVE_MS);
  const others = sessions.filter((session) => !active.includes(session)).slice(0, 6);
  return (
    <div class="live">
      <h1>{active.length ? `${plural(active.length, "agent")} running` : "No agent is running"}</h1>
      <p class="dim" role="status">{isConnected ? "New events appear automatically." : "Connection lost. Reconnecting."}</p>
      <div class="cards">{active.map((session) => <AgentCard key={session.session_id} session={session} now={now} isActive />)}</div>
      {others.length > 0 && <>
        <h2>Earlier</h2>
        <div class="cards">{others.map((session) => <AgentCard key={session.session_id} session={session} now={now} />)}</div>
      </>}
    </div>
  );
}

function AgentCard({ session, now, isActive }: { session: any; now: number; isActive?: boolean }) {
  const { data } = useTool("get_session_details", { session_id: session.session_id }, isActive ? "soon" : "slow");
  const { data: context } = useTool("analyze_session", { session_id: session.session_id, checks: "context", limit: 1 });
  const summary = data?.summary;
  const calls: any[] = summary?.end?.last_calls ?? [];
  const last = calls[calls.length - 1];
  const series: [number, number][] = context?.context?.series ?? [];
  const peak = Math.max(...series.map(([, value]) => value), 1);
  const ms = session.ended_at ? now - Date.parse(session.ended_at) : undefined;
  return (
    <article class={`agent-card ${isActive ? "active" : ""}`}>
      <h2><a data-row href={sessionLink(session.session_id, Math.max((session.counts?.events ?? 1) - 1, 0))}>{session.title ?? session.session_id}</a></h2>
      <p class="facts dim">
        <span>{session.project}</span><span>{session.provider}</span>{session.model && <Chip model={session.model} />}
      </p>
      {last && <p class="doing"><span class={`state ${last.state}`}>{last.state === "open" ? "running" : last.state}</span> <span class="tool">{last.tool_name}</span> <code class="deed">{last.call}</code></p>}
      {summary?.last_message && <p class="said">{summary.last_message.text.slice(0, 240)}</p>}
      <p class="facts dim">
        <span>{ms !== undefined && ms < 60_000 ? "seconds ago" : ago(session.ended_at, now)}</span>
        <span>{duration(session.duration_ms)}</span>
        <span>{plural(session.counts?.turns ?? 0, "turn")}</span>
        {context?.context && <span>{short(context.context.last_tokens)} context</span>}
        <strong>{cost(session.with_subagents?.tokens?.cost_usd ?? session.tokens?.cost_usd)}</strong>
      </p>
      {series.length > 1 && <svg class="spark" viewBox="0 0 100 20" preserveAspectRatio="none" aria-hidden="true">
        <polyline points={series.map(([, value], at) => `${(at / (series.length - 1)) * 100},${20 - (value / peak) * 18}`).join(" ")} />
      </svg>}
    </article>
  );
}
