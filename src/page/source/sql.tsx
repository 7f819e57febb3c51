// One SELECT over the views, with its rows as a table, a chart and a file.

import { useEffect, useState } from "preact/hooks";
import { type Answer, call } from "./api";
import { Bars } from "./charts";
import { Failure } from "./parts";
import { count, plural, short } from "./format";
import { sessionLink } from "./links";
import { type Route, setParams, useRestoredPlace } from "./route";

const VIEWS = ["sessions", "events", "tool_calls", "turns", "usage", "files", "lineage", "problems", "labels"];

const EXAMPLES: [string, string][] = [
  ["Cost by model", "SELECT model, sum(cost_usd) AS cost FROM usage GROUP BY 1 ORDER BY 2 DESC"],
  ["Calls a day", "SELECT timestamp::DATE AS day, count(*) AS calls FROM tool_calls GROUP BY 1 ORDER BY 1"],
  ["Files most edited", "SELECT path, count(*) AS edits FROM files WHERE change IS NOT NULL GROUP BY 1 ORDER BY 2 DESC LIMIT 20"],
  ["Commands that fail", "SELECT split_part(command, ' ', 1) AS program, count(*) AS calls, count(*) FILTER (is_error) AS failed FROM tool_calls WHERE command IS NOT NULL GROUP BY 1 ORDER BY 3 DESC LIMIT 20"],
];

export function SqlView({ route }: { route: Route }) {
  const sql = route.params.get("sql") ?? "";
  const [text, setText] = useState(sql || EXAMPLES[0]![1]);
  const [answer, setAnswer] = useState<Answer>();
  const [error, setError] = useState<Error>();
  const [isRunning, setRunning] = useState(false);
  const [view, setView] = useState<string>();
  useEffect(() => { document.title = "SQL · sessions"; }, []);
  useEffect(() => {
    if (!sql) return;
    setText(sql);
    const controller = new AbortController();
    setRunning(true);
    call("query_sql", { sql, max_rows: 1000 }, controller.signal)
      .then((done) => { setAnswer(done); setError(undefined); }, (failure) => { if (failure.name !== "AbortError") setError(failure); })
      .finally(() => setRunning(false));
    return () => controller.abort();
  }, [sql]);
  useRestoredPlace(!!answer);
  const run = () => setParams({ sql: text.trim() || undefined });
  return (
    <div class="sql">
      <h1>SQL</h1>
      <p class="dim">One SELECT in the dialect of DuckDB. Times are UTC.</p>
      <p class="views">{VIEWS.map((name) => <button key={name} type="button" aria-pressed={view === name} onClick={() => setView(view === name ? undefined : name)}>{name}</button>)}</p>
      {view && <Columns view={view} />}
      <form onSubmit={(event) => { event.preventDefault(); run(); }}>
        <textarea aria-label="Query" rows={6} spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => { if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) { event.preventDefault(); run(); } }} />
        <p class="actions"><button type="submit" class="primary" disabled={isRunning}>{isRunning ? "Running" : "Run"}</button> <span class="dim">Ctrl+Enter</span>
          {EXAMPLES.map(([name, example]) => <button key={name} type="button" onClick={() => { setText(example); setParams({ sql: example }); }}>{name}</button>)}
        </p>
      </form>
      {error && <Failure error={error} />}
      {answer && !error && <Rows answer={answer} />}
    </div>
  );
}

function Columns({ view }: { view: string }) {
  const [rows, setRows] = useState<any[][]>();
  useEffect(() => { call("query_sql", { sql: `DESCRIBE ${view}`, max_rows: 200 }).then((answer) => setRows(answer.data.rows), () => setRows([])); }, [view]);
  return <p class="columns">{rows?.map(([name, type]) => <span key={name}><code>{name}</code> <span class="dim">{String(type).toLowerCase()}</span></span>)}</p>;
}

const text = (value: any): string => (value === null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value));

function Rows({ answer }: { answer: Answer }) {
  const columns: { name: string; type: string }[] = answer.data.columns;
  const rows: any[][] = answer.data.rows;
  const number = columns.findIndex((column, at) => at > 0 && /INT|DOUBLE|DECIMAL|FLOAT|HUGE/.test(column.type));
  const isChart = number > 0 && rows.length > 1 && rows.length <= 120;
  const download = (kind: "csv" | "json") => {
    const cell = (value: any) => (/[",\n\r]/.test(text(value)) ? `"${text(value).replaceAll('"', '""')}"` : text(value));
    const body = kind === "csv"
      ? [columns.map((column) => cell(column.name)), ...rows.map((row) => row.map(cell))].map((line) => line.join(",")).join("\r\n")
      : JSON.stringify(rows.map((row) => Object.fromEntries(columns.map((column, at) => [column.name, row[at]]))), null, 1);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([body], { type: kind === "csv" ? "text/csv" : "application/json" }));
    link.download = `sessions.${kind}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  return (
    <section aria-label="Rows">
      <p class="summary" role="status">{plural(rows.length, "row")}{answer.pagination?.has_more && " and more"} <span class="dim">in {count(answer.metadata.duration_ms)} ms</span>
        <span class="sorts"><button type="button" onClick={() => download("csv")}>CSV</button><button type="button" onClick={() => download("json")}>JSON</button></span></p>
      {isChart && <Bars bars={rows.map((row, at) => ({ label: text(row[0]).slice(0, 10), title: text(row[0]) || `row ${at + 1}`, parts: [{ name: columns[number]!.name, value: Number(row[number] ?? 0) }] }))}
        format={short} colour="var(--series)" label={`${columns[number]!.name} by ${columns[0]!.name}`} />}
      <div class="scroll" tabIndex={0} role="region" aria-label="Rows as a table">
        <table class="numbers">
          <thead><tr>{columns.map((column) => <th key={column.name} scope="col">{column.name}</th>)}</tr></thead>
          <tbody>{rows.slice(0, 500).map((row, at) => <tr key={at}>{row.map((value, to) => <td key={to} class={typeof value === "number" ? "number" : ""}>{linked(columns[to]!.name, text(value))}</td>)}</tr>)}</tbody>
        </table>
      </div>
    </section>
  );
}

/** Ids lead to what they name. */
function linked(column: string, value: string) {
  if (value && (column === "session_id" || column === "parent_session_id")) return <a href={sessionLink(value)}>{value}</a>;
  const event = /event_id$/.test(column) && /^(.*):(\d+)$/.exec(value);
  return event ? <a href={sessionLink(event[1]!, event[2])}>{value}</a> : value;
}
