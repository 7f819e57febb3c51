// The filters of the address, as arguments of the tools and as conditions of SQL.

import { isFrozen } from "./address";
import { modelPattern } from "./format";

/** The filters that are arguments of the tools. */
export interface Scope {
  provider?: string;
  project?: string;
  since?: string;
  until?: string;
}

/** The filters of the address as arguments of the tools. */
export function scopeOf(params: URLSearchParams): Scope {
  const value = (name: string) => params.get(name) ?? undefined;
  return { provider: value("agent"), project: value("project"), since: timeOf(value("since")), until: timeOf(value("until")) };
}

/** Returns when a day of an address begins in the reader's zone. A file has the days of its own zone. */
export function timeOf(text: string | undefined): string | undefined {
  const day = isFrozen ? undefined : /^\d{4}-\d\d-\d\d$/.exec(text ?? "") && new Date(`${text}T00:00`);
  return day && !Number.isNaN(day.getTime()) ? day.toISOString() : text;
}

/** Quotes a text for SQL. */
export const quote = (text: string) => `'${text.replaceAll("'", "''")}'`;

/** The filters of the address as conditions of SQL over a view with a session. */
export function conditions(params: URLSearchParams): string {
  const parts: string[] = [];
  const value = (name: string) => params.get(name);
  if (value("agent")) parts.push(`provider = ${quote(value("agent")!)}`);
  if (value("model")) parts.push(`regexp_full_match(model, ${quote(modelPattern(value("model")!))})`);
  if (value("project")) parts.push(`session_id IN (SELECT session_id FROM sessions WHERE contains(lower(coalesce(cwd, '') || ' ' || coalesce(project, '')), lower(${quote(value("project")!)})))`);
  const { since, until } = scopeOf(params);
  const span = since && /^(\d+)([hdwm])$/.exec(since);
  if (span) parts.push(`timestamp >= now()::TIMESTAMP - INTERVAL ${span[1]} ${{ h: "HOUR", d: "DAY", w: "WEEK", m: "MONTH" }[span[2]!]}`);
  else if (since && !Number.isNaN(Date.parse(since))) parts.push(`timestamp >= TIMESTAMP ${quote(new Date(since).toISOString())}`);
  if (until && !Number.isNaN(Date.parse(until))) parts.push(`timestamp < TIMESTAMP ${quote(new Date(until).toISOString())}`);
  return parts.map((part) => ` AND ${part}`).join("");
}
