// The sessions with an event of the last minutes: what each one runs, or what it waits for.

import { useEffect } from "preact/hooks";
import { isConnected } from "./api";
import { Chip, Failure } from "./parts";
import { ago, cost, duration, plural, short } from "./format";
import { useClock, useGeneration, useTool } from "./hooks";
import { sessionLink } from "./links";
import { plainText } from "./markdown";
import { scopeOf } from "./scope";
import type { Route } from "./route";

/** A session is active for this many minutes after its last event. An open call is taken as running for as long. */
const ACTIVE_MINUTES = 15;
/** Number of cards. */
const CARDS = 12;

export function LiveView({ route }: { route: Route }) {
  useEffect(() => { document.title = "Live · sessions"; }, []);
  useGeneration();
  const now = useClock(1000);
  const listed = useTool("list_sessions", { ...scopeOf(route.params), limit: CARDS }, "soon");
  if (listed.error) return <Failure error={listed.error} />;
  const sessions: any[] = listed.data?.sessions ?? [];
  const active = sessions.filter((session) => now - Date.parse(session.ended_at ?? 0) < ACTIVE_MINUTES * 60_000);
  const others = sessions.filter((session) => !active.includes(session)).slice(0, 6);
  return (
    <div class="live">
      <h1>{active.length === CARDS ? "At least " : ""}{active.length || "None"} active in the last {ACTIVE_MINUTES} minutes</h1>
      <p class="dim" role="status">{isConnected ? "New events appear automatically." : "Connection lost. Reconnecting."}</p>
      <div class="cards">{active.map((session) => <AgentCard key={session.session_id} session={session} now={now} isActive />)}</div>
      {others.length > 0 && <>
        <h2>Earlier</h2>
        <div class="cards">{others.map((session) => <AgentCard key={session.session_id} session={session} now={now} />)}</div>
      </>}
    </div>
  );
}

/** Returns the words for a call. An open one runs only in a session that is active. */
const callState = (state: string, isActive?: boolean): string => (state !== "open" ? state : isActive ? "running" : "no result");

const eventIndex = (item: any): number => Number(item?.event_id?.split(":").pop() ?? -1);

/** Returns what an active session waits for, unless it is at work with a call. */
function waitState(summary: any): string | undefined {
  const end = summary?.end;
  if (end?.unanswered_prompt) return "no answer yet";
  const last = end?.last_calls?.at(-1);
  return eventIndex(summary?.last_message) > eventIndex(last) ? "waiting for you" : undefined;
}

function AgentCard({ session, now, isActive }: { session: any; now: number; isActive?: boolean }) {
  const { data } = useTool("get_session_details", { session_id: session.session_id }, isActive ? "soon" : "slow");
  const { data: context } = useTool("analyze_session", { session_id: session.session_id, checks: "context", limit: 1 });
  const summary = data?.summary;
  const last = summary?.end?.last_calls?.at(-1);
  const waiting = isActive ? waitState(summary) : undefined;
  const series: [number, number][] = context?.context?.series ?? [];
  const peak = Math.max(...series.map(([, value]) => value), 1);
  const ms = session.ended_at ? now - Date.parse(session.ended_at) : undefined;
  return (
    <article class={`agent-card ${isActive ? "active" : ""}`}>
      <h2><a data-row href={sessionLink(session.session_id, Math.max((session.counts?.events ?? 1) - 1, 0))}>{session.title ?? session.session_id}</a></h2>
      <p class="facts dim">
        <span>{session.project}</span><span>{session.provider}</span>{session.model && <Chip model={session.model} />}
      </p>
      {waiting ? <p class="doing"><span class="state waiting">{waiting}</span></p>
        : last && <p class="doing"><span class={`state ${last.state} ${isActive ? "" : "past"}`}>{callState(last.state, isActive)}</span> <span class="tool">{last.tool_name}</span> <code class="deed">{last.call}</code></p>}
      {summary?.last_message && <p class="said">{plainText(summary.last_message.text).slice(0, 240)}</p>}
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
