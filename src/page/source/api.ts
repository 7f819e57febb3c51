// Calls the tools of the server. Every answer is the envelope of the tool, as an agent gets it.

import { isEmbedded, isFrozen } from "./address";
import { answerFromFile } from "./answers";
import { callThroughHost } from "./host";

/** An answer that succeeded. */
export interface Answer<T = any> {
  status: "ok";
  data: T;
  pagination?: { has_more: boolean; next_cursor?: string };
  hint?: string;
  warnings?: { code: string; message: string; severity: string }[];
  metadata: { duration_ms: number; results_total?: number; results_total_is?: string; scope?: string };
}

/** A call that failed, with the message of the tool. */
export class ToolFailure extends Error {
  constructor(readonly code: string, message: string, readonly details: any = {}) {
    super(message);
  }
}

type Listener = () => void;

/** The number of answers that are kept, so that Back shows a view at once. */
const MAX_KEPT = 200;

const kept = new Map<string, { tag: string; answer: Answer }>();
const generationListeners = new Set<Listener>();
const loginListeners = new Set<Listener>();

/** Minimum time between two versions, in milliseconds. */
const VERSION_MS = 400;
/** Minimum time between two slow versions. While agents work, the store changes every second. */
const SLOW_VERSION_MS = 10_000;

/** Counts the changes of the store and of its labels. What shows the newest event follows it. */
export let version = 0;
/** Counts them at most every ten seconds. Sums and lists follow it, which cost more. */
export let slowVersion = 0;
/** The generation of the store, as the server last reported it. */
let generation: number | undefined;
/** False once the server refused the cookie. */
export let isLoggedIn = true;
/** True while the server reports changes. */
export let isConnected = false;

const keyOf = (tool: string, args: object) => `${tool} ${JSON.stringify(args)}`;

/** Returns the kept answer of a call. It may be of an older generation of the store. */
export function keptAnswer(tool: string, args: object): Answer | undefined {
  return kept.get(keyOf(tool, args))?.answer;
}

function keep(key: string, tag: string, answer: Answer) {
  kept.delete(key);
  kept.set(key, { tag, answer });
  if (kept.size > MAX_KEPT) kept.delete(kept.keys().next().value!);
}

const wait = (ms: number) => new Promise((done) => setTimeout(done, ms));

/**
 * Calls a tool. An answer that was kept under the same tag is returned as it is. Above the rate limit
 * the call waits as long as the server says, and tries again.
 */
export async function call<T = any>(tool: string, args: object, signal?: AbortSignal, tag = `${version}`): Promise<Answer<T>> {
  const key = keyOf(tool, args);
  const known = kept.get(key);
  if (known && known.tag === tag && tool !== "update_session_labels") return known.answer;
  for (;;) {
    const answer = await ask(tool, args, signal);
    signal?.throwIfAborted();
    if (answer.status === "ok") {
      if (tool !== "update_session_labels") keep(key, tag, answer);
      return answer;
    }
    const { code, message, details } = answer.error;
    if (code !== "rate_limit_exceeded") throw new ToolFailure(code, message, details);
    await wait(Math.min(details?.retry_after_ms ?? 1000, 5000));
    signal?.throwIfAborted();
  }
}

/** Passes a call to what has the answers. */
function ask(tool: string, args: object, signal?: AbortSignal): Promise<any> {
  if (isFrozen) return answerFromFile(tool, args, signal);
  return isEmbedded ? callThroughHost(tool, args) : post(tool, args, signal);
}

/** Sends a call over HTTP. */
async function post(tool: string, args: object, signal?: AbortSignal): Promise<any> {
  const response = await fetch(`/api/${tool}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(args),
    signal,
  });
  if (response.status === 401) {
    isLoggedIn = false;
    loginListeners.forEach((listener) => listener());
  }
  return response.json();
}

/** Asks everything again: labels changed, which have no generation. */
export function forgetAnswers() {
  version += 1;
  slowVersion += 1;
  generationListeners.forEach((listener) => listener());
}

/** Returns a function that calls `change` now or, if it did so less than `ms` ago, later. */
function atMostEvery(ms: number, change: () => void): () => void {
  let last = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  return () => {
    if (timer !== undefined) return;
    timer = setTimeout(() => {
      timer = undefined;
      last = Date.now();
      change();
    }, Math.max(0, last + ms - Date.now()));
  };
}

/** Exchanges the token of the link for the cookie. Returns the reason if that failed. */
export async function login(token: string): Promise<string | undefined> {
  const response = await fetch("/api/login", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token }),
  });
  return response.ok ? undefined : (await response.json()).error.message;
}

/** Listens to changes of the store and of the connection. Returns what ends that. */
export function onGeneration(listener: Listener): () => void {
  generationListeners.add(listener);
  return () => generationListeners.delete(listener);
}

export function onLogin(listener: Listener): () => void {
  loginListeners.add(listener);
  return () => loginListeners.delete(listener);
}

/** Reads the server's events as long as the page is open. */
export function listen() {
  const events = new EventSource("/api/live");
  const notify = () => generationListeners.forEach((listener) => listener());
  const change = atMostEvery(VERSION_MS, () => {
    version += 1;
    notify();
  });
  const changeSlowly = atMostEvery(SLOW_VERSION_MS, () => {
    slowVersion += 1;
    notify();
  });
  events.onopen = () => {
    isConnected = true;
    notify();
  };
  events.onerror = () => {
    isConnected = false;
    notify();
    // The browser tries again by itself, unless the server refused.
    if (events.readyState === EventSource.CLOSED && isLoggedIn) setTimeout(listen, 3000);
  };
  events.onmessage = (event) => {
    const next: number = JSON.parse(event.data).generation;
    // The first report says what the page has already.
    if (generation !== undefined && next !== generation) {
      change();
      changeSlowly();
    }
    generation = next;
  };
}
