// The frame of the page: login, navigation, filters and keys.

import { render } from "preact";
import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import { canGoBack, isEmbedded, isFrozen, isTranscript, linkTo, replaceAddress } from "./address";
import { isConnected, isLoggedIn, listen, login, onLogin } from "./api";
import { dayOf, shiftDay, today } from "./format";
import { file } from "./frozen";
import { useGeneration, useTool } from "./hooks";
import { type ShownCall, connect } from "./host";
import { LiveView } from "./live";
import { Overview } from "./overview";
import { FILTERS, type Route, type View, addressOf, followLink, navigate, navigateBack, setParams, startRouting, useRoute } from "./route";
import { SearchView } from "./search";
import { SessionView } from "./session";
import { SqlView } from "./sql";
import { applyColours, handleKey, Keys } from "./keys";

const TABS: [View, string][] = file.home !== undefined ? [["search", "Sessions"]]
  : isEmbedded || isFrozen ? [["overview", "Overview"], ["search", "Sessions"]]
  : [["overview", "Overview"], ["search", "Sessions"], ["live", "Live"], ["sql", "SQL"]];

function App() {
  const route = useRoute();
  const [, render] = useReducer((times: number) => times + 1, 0);
  const [isHelp, setHelp] = useState(false);
  useEffect(() => onLogin(() => render(0)), []);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => handleKey(event, () => setHelp((is) => !is));
    addEventListener("keydown", onKey);
    document.addEventListener("click", followLink);
    return () => {
      removeEventListener("keydown", onKey);
      document.removeEventListener("click", followLink);
    };
  }, []);
  if (!isLoggedIn) return <LoggedOut />;
  return (
    <>
      <a class="skip" href="#main">Skip to the content</a>
      {!isTranscript && <header class="top">
        {isEmbedded
          ? <button type="button" class="back" aria-label="Back" disabled={!canGoBack()} onClick={navigateBack}>←</button>
          : <a class="brand" href={file.home ?? linkTo("/")}>{file.home ? "← report" : "sessions"}</a>}
        <nav aria-label="Views">{TABS.map(([view, name]) => <a key={view} href={linkTo(addressOf(view))} aria-current={route.view === view ? "page" : undefined}>{name}</a>)}</nav>
        <SearchBox route={route} />
        {!isEmbedded && !isFrozen && <LiveDot />}
        <button type="button" class="keys-button" aria-label="Keys and colours" title="Keys and colours" onClick={() => setHelp(true)}>?</button>
      </header>}
      {route.view !== "session" && route.view !== "sql" && <Filters route={route} />}
      <main id="main" tabIndex={-1} class={`view-${route.view}`}><ViewOf route={route} /></main>
      {isHelp && <Keys onClose={() => setHelp(false)} />}
    </>
  );
}

function ViewOf({ route }: { route: Route }) {
  switch (route.view) {
    case "overview": return file.home !== undefined ? <SearchView route={route} /> : <Overview route={route} />;
    case "search": return <SearchView route={route} />;
    case "session": return <SessionView route={route} />;
    case "live": return <LiveView route={route} />;
    case "sql": return <SqlView route={route} />;
  }
}

/** The box that searches as the reader types. */
function SearchBox({ route }: { route: Route }) {
  const query = route.view === "search" ? (route.params.get("q") ?? "") : "";
  const [text, setText] = useState(query);
  const own = useRef(query);
  useEffect(() => {
    // Back and Forward change the query; typing has set it already.
    if (query !== own.current) {
      own.current = query;
      setText(query);
    }
  }, [query]);
  const search = (typed: string) => {
    setText(typed);
    own.current = typed.trim() ? typed : "";
    const address = addressOf("search", { q: own.current || undefined, sort: route.params.get("sort") ?? undefined });
    // One entry in the history for a search, not one for each letter.
    navigate(address, route.view === "search");
  };
  return (
    <form role="search" onSubmit={(event) => { event.preventDefault(); document.querySelector<HTMLElement>("[data-row]")?.focus(); }}>
      <input id="search" type="search" value={text} placeholder="Search all sessions" aria-label="Search all sessions" autocomplete="off" spellcheck={false}
        onInput={(event) => search(event.currentTarget.value)} />
      <kbd aria-hidden="true">/</kbd>
    </form>
  );
}

function LiveDot() {
  useGeneration();
  return <span class={`live-dot ${isConnected ? "on" : ""}`} role="img" aria-label={isConnected ? "Connected: new events appear automatically" : "Not connected"} title={isConnected ? "New events appear automatically" : "Not connected"} />;
}

const TIMES: [string, string][] = [["", "all time"], ["24h", isFrozen ? "last two days" : "last day"], ["7d", "last week"], ["30d", "last month"], ["90d", "last 90 days"], ["365d", "last year"]];

/** The choice of a first and a last day. */
const DATES = "dates";

function Filters({ route }: { route: Route }) {
  const { params } = route;
  const value = (name: string) => params.get(name) ?? "";
  const agents = useTool("session_stats", { group_by: ["provider"], limit: 50 });
  const models = useTool("session_stats", { group_by: ["model"], limit: 200 });
  const projects = useTool("session_stats", { group_by: ["project"], limit: 200 });
  const names = (loaded: typeof agents, key: string): string[] => (loaded.data?.groups ?? []).map((group: any) => group.group[key]).filter(Boolean);
  const select = (name: string, label: string, values: string[]) => (
    <label><span class="sr">{label}</span>
      <select value={value(name)} class={value(name) ? "set" : ""} onChange={(event) => setParams({ [name]: event.currentTarget.value || undefined })}>
        <option value="">{label}</option>
        {[...new Set([...values, value(name)])].filter(Boolean).map((one) => <option key={one} value={one}>{one}</option>)}
      </select>
    </label>
  );
  const isSet = FILTERS.some((name) => params.has(name));
  const since = value("since");
  const areDates = params.has("until") || !TIMES.some(([span]) => span === since);
  const chooseTime = (span: string) => setParams({ since: (span === DATES ? shiftDay(today(), -30) : span) || undefined, until: undefined });
  return (
    <section class="filters" aria-label="Filters">
      {select("project", "any project", names(projects, "project"))}
      {select("agent", "any agent", names(agents, "provider"))}
      {select("model", "any model", names(models, "model"))}
      <label><span class="sr">Time</span>
        <select value={areDates ? DATES : since} class={since || areDates ? "set" : ""} onChange={(event) => chooseTime(event.currentTarget.value)}>
          {TIMES.map(([span, name]) => <option key={span} value={span}>{name}</option>)}
          <option value={DATES}>dates</option>
        </select>
      </label>
      {areDates && <span class="dates">
        <input type="date" aria-label="First day" value={dayOf(since)} onChange={(event) => setParams({ since: event.currentTarget.value || undefined }, true)} />
        –
        <input type="date" aria-label="Last day" value={value("until") && shiftDay(dayOf(value("until")), -1)}
          onChange={(event) => setParams({ until: event.currentTarget.value ? shiftDay(event.currentTarget.value, 1) : undefined }, true)} />
      </span>}
      {(route.view === "search") && <>
        <button type="button" aria-pressed={params.has("failed")} onClick={() => setParams({ failed: params.has("failed") ? undefined : "1" })}>failed</button>
        <input class={value("label") ? "set" : ""} value={value("label")} placeholder="label" aria-label="Label" size={8} onChange={(event) => setParams({ label: event.currentTarget.value.trim() || undefined })} />
      </>}
      {isSet && <button type="button" class="clear" onClick={() => setParams(Object.fromEntries(FILTERS.map((name) => [name, undefined])))}>Clear the filters</button>}
    </section>
  );
}

function LoggedOut({ reason }: { reason?: string }) {
  return (
    <main class="logged-out">
      <h1>sessions</h1>
      <p role="alert">{reason ?? "This browser is not logged in."}</p>
      {!reason && <p>Open the latest link that <code>sessions web</code> printed. Each link works once.</p>}
    </main>
  );
}

/** Returns the address of the view that shows the result of a call. */
function addressOfCall(view: string, { arguments: args, answer }: ShownCall): string {
  if (view === "session") {
    const id: string = answer?.data?.session?.session_id ?? args.session_id ?? "";
    return `/session/${encodeURIComponent(id)}`;
  }
  const params = new URLSearchParams();
  for (const [argument, filter] of [["project", "project"], ["provider", "agent"], ["since", "since"], ["until", "until"]] as const) {
    if (args[argument]) params.set(filter, String(args[argument]));
  }
  return params.size ? `/?${params}` : "/";
}

/** Starts in the frame of a client of MCP: at the result of the call that the client shows. */
async function startEmbedded(view: string, root: HTMLElement) {
  replaceAddress(addressOfCall(view, await connect()));
  startRouting();
  render(<App />, root);
}

async function start() {
  const root = document.getElementById("app")!;
  const { app } = document.documentElement.dataset;
  if (app !== undefined) return startEmbedded(app, root);
  const token = /^#token=([\w-]+)$/.exec(location.hash)?.[1];
  if (token) {
    // The token leaves the address before anything else happens.
    history.replaceState(null, "", location.pathname + location.search);
    const reason = await login(token);
    if (reason) return render(<LoggedOut reason={reason} />, root);
  }
  applyColours();
  startRouting();
  if (isFrozen) document.getElementById("plain")?.remove();
  else listen();
  render(<App />, root);
}

void start();
