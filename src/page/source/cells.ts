// Sums over the cells of a report: the groups of `session_stats` by day, session and model, and by
// session, model and tool. They give the groups of any other keys and filters.

import { file, rowOf } from "./frozen";

type Args = Record<string, any>;

/** Returns the day that a span back from the time of the file, or a date, begins with. */
export function firstDay(since: string | undefined): string | undefined {
  const span = /^(\d+)([hdwm])$/.exec(since ?? "");
  if (!span) return since?.slice(0, 10);
  const hours = Number(span[1]) * { h: 1, d: 24, w: 168, m: 730 }[span[2] as "h"];
  return new Date(Date.parse(file.generated_at) - hours * 3_600_000).toISOString().slice(0, 10);
}

/** Returns true if a session passes the filters of a call. */
export function isInScope(session: any, args: Args): boolean {
  if (!session) return false;
  const first = firstDay(args.since);
  const folder = `${session.cwd ?? ""} ${session.project ?? ""}`.toLowerCase();
  return (!args.provider || session.provider === args.provider)
    && (!args.project || folder.includes(args.project.toLowerCase()))
    && (!args.label || (session.labels ?? []).includes(args.label))
    && (!first || (session.ended_at ?? "") >= first)
    && (!args.until || (session.started_at ?? "") < args.until);
}

/** Returns the Monday of the week of a day. */
function weekOf(day: string): string {
  const date = new Date(`${day}T12:00Z`);
  date.setUTCDate(date.getUTCDate() - ((date.getUTCDay() + 6) % 7));
  return date.toISOString().slice(0, 10);
}

/** Returns the value that a cell has for a key. */
function keyOf(cell: any, key: string): string | undefined {
  const { day, session, model, tool } = cell.group;
  switch (key) {
    case "day": return day;
    case "week": return day && weekOf(day);
    case "month": return day?.slice(0, 7);
    case "model": return model;
    case "tool": return tool;
    default: return rowOf(session)?.[key];
  }
}

function addCell(sum: any, cell: any) {
  for (const name of ["events", "tool_calls", "tool_results", "tool_errors"]) sum[name] += cell[name] ?? 0;
  if (cell.cost_usd !== undefined) sum.cost_usd = (sum.cost_usd ?? 0) + cell.cost_usd;
  const usage = cell.tokens?.counted_once;
  if (usage) {
    sum.tokens ??= { counted_once: {} };
    for (const [name, value] of Object.entries(usage)) sum.tokens.counted_once[name] = (sum.tokens.counted_once[name] ?? 0) + Number(value);
  }
  for (const name of ["duration_ms", "output_bytes"]) {
    if (!cell[name]) continue;
    sum[name] ??= { total: 0 };
    sum[name].total += cell[name].total;
  }
}

/** Returns the groups of a call of `session_stats`. */
export function cellGroups(args: Args): any[] {
  const keys: string[] = args.group_by;
  const isOfTools = keys.includes("tool");
  const isWhole = !args.provider && !args.project && !args.since && !args.until;
  // The spread of all durations does not follow from those of the cells.
  if (isOfTools && isWhole && keys.length === 1) return file.spreads ?? [];
  const first = firstDay(args.since);
  const isInTime = ({ day = "" }: any) => (!first || day >= first) && (!args.until || day < args.until);
  const groups = new Map<string, any>();
  for (const cell of (isOfTools ? file.tools : file.days) ?? []) {
    if (!isInScope(rowOf(cell.group.session), args) || (!isOfTools && !isInTime(cell.group))) continue;
    const group: Record<string, string> = {};
    for (const key of keys) {
      const value = keyOf(cell, key);
      if (value !== undefined) group[key] = value;
    }
    const name = JSON.stringify(group);
    let sum = groups.get(name);
    if (!sum) groups.set(name, (sum = { group, events: 0, tool_calls: 0, tool_results: 0, tool_errors: 0 }));
    addCell(sum, cell);
  }
  const sort = args.sort === "cost" ? (group: any) => group.cost_usd ?? 0 : (group: any) => group.events;
  return [...groups.values()].sort((a, b) => sort(b) - sort(a));
}
