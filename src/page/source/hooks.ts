// Hooks: answers of tools, and the generation of the store.

import { useEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { isFrozen } from "./address";
import { type Answer, type ToolFailure, call, keptAnswer, onGeneration, slowVersion, version } from "./api";

/** What is known of a call. The answer of the call before stays until the next one is there. */
export interface Loaded<T> {
  answer?: Answer<T>;
  data?: T;
  error?: ToolFailure;
  isLoading: boolean;
}

/** Renders again whenever the store or the connection changes. */
export function useGeneration() {
  const [, render] = useReducer((count: number) => count + 1, 0);
  useEffect(() => onGeneration(() => render(0)), []);
}

/** When a call is made again: soon after a change of the store, or some seconds after it. */
export type Pace = "soon" | "slow";

/** Returns a text that changes when a call has to be made again. */
function useTag(pace: Pace): string {
  useGeneration();
  return pace === "soon" ? `${version}` : `slow ${slowVersion}`;
}

/** Calls a tool whenever the arguments or the store change. Without arguments nothing is called. */
export function useTool<T = any>(tool: string, args: object | null, pace: Pace = "slow"): Loaded<T> {
  const tag = useTag(pace);
  const key = args && JSON.stringify(args);
  const [state, setState] = useState<{ key: string | null; answer?: Answer<T>; error?: ToolFailure; isDone: boolean }>(
    () => ({ key, answer: args ? (keptAnswer(tool, args) as Answer<T>) : undefined, isDone: false }),
  );
  const last = useRef(0);
  useEffect(() => {
    if (!args) return;
    const controller = new AbortController();
    const turn = ++last.current;
    const known = keptAnswer(tool, args) as Answer<T> | undefined;
    if (known) setState({ key, answer: known, isDone: false });
    call<T>(tool, args, controller.signal, tag).then(
      (answer) => turn === last.current && setState({ key, answer, isDone: true }),
      (error) => {
        if (turn === last.current && error.name !== "AbortError") setState({ key, error, isDone: true });
      },
    );
    return () => controller.abort();
  }, [tool, key, tag]);
  if (!args) return { isLoading: false };
  return { answer: state.answer, data: state.answer?.data, error: state.error, isLoading: !state.isDone || state.key !== key };
}

/** Asks what only SQL answers. A file has the answer under the name of the question. */
export function useQuestion(question: string, about: object, sql: string, maxRows: number): Loaded<any> {
  return useTool("query_sql", isFrozen ? { question, ...about } : { sql, max_rows: maxRows });
}

/** Calls a tool page after page, and joins the lists of this name. */
export function useAllPages<T = any>(tool: string, args: object | null, list: string): T[] | undefined {
  const tag = useTag("slow");
  const key = args && JSON.stringify(args);
  const [rows, setRows] = useState<{ key: string | null; rows: T[] }>();
  useEffect(() => {
    if (!args) return;
    const controller = new AbortController();
    (async () => {
      const all: T[] = [];
      let cursor: string | undefined;
      do {
        const answer: Answer = await call(tool, cursor ? { ...args, cursor } : args, controller.signal, tag);
        all.push(...(answer.data[list] ?? []));
        cursor = answer.pagination?.next_cursor;
        // What was there before stays until all is there again.
        setRows((old) => (cursor && old?.key === key && old.rows.length > all.length ? old : { key, rows: [...all] }));
      } while (cursor);
    })().catch(() => undefined);
    return () => controller.abort();
  }, [tool, key, tag]);
  return rows && rows.key === key ? rows.rows : undefined;
}

/** Returns whether a query of media holds. */
export function useMedia(query: string): boolean {
  const media = useMemo(() => matchMedia(query), [query]);
  const [isSo, setSo] = useState(media.matches);
  useEffect(() => {
    const listener = () => setSo(media.matches);
    listener();
    media.addEventListener("change", listener);
    return () => media.removeEventListener("change", listener);
  }, [media]);
  return isSo;
}

/** Returns a value that changes at most every `ms` milliseconds, for the reader's clock. */
export function useClock(ms: number): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), ms);
    return () => clearInterval(timer);
  }, [ms]);
  return now;
}
