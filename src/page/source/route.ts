// The address of the page: the view and its filters. Back and Forward restore both, and the place.

import { useEffect, useReducer } from "preact/hooks";
import { addressOfFragment, currentAddress, currentState, goBack, isEmbedded, isFrozen, pushAddress, replaceAddress } from "./address";
import { openLink } from "./host";

export type View = "overview" | "search" | "session" | "live" | "sql";

export interface Route {
  view: View;
  /** The id of the session or of the event of the view `session`. */
  id: string;
  params: URLSearchParams;
}

/** The filters that every view keeps. */
export const FILTERS = ["project", "agent", "model", "since", "until", "label", "failed"] as const;
export type FilterName = (typeof FILTERS)[number];

/** Where the reader was in a view. */
export interface Place {
  y: number;
  /** The event at the top, and its distance from there. */
  event?: number;
  offset?: number;
}

const listeners = new Set<() => void>();
let restored: Place | undefined;

/** Decodes a part of an address. What is not a valid escape stays as it is. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function currentRoute(): Route {
  const [path = "", query = ""] = currentAddress().split("?");
  const [, view = "", id = ""] = path.split("/");
  const known: View = view === "search" || view === "session" || view === "live" || view === "sql" ? view : "overview";
  return { view: known, id: decode(id), params: new URLSearchParams(query) };
}

/** Returns the address of a view with the current filters, changed by `changes`. */
export function addressOf(view: View, changes: Record<string, string | undefined> = {}, id = ""): string {
  const params = new URLSearchParams();
  const old = currentRoute().params;
  for (const name of FILTERS) {
    const value = old.get(name);
    if (value) params.set(name, value);
  }
  for (const [name, value] of Object.entries(changes)) {
    if (value) params.set(name, value);
    else params.delete(name);
  }
  const path = view === "overview" ? "/" : id ? `/${view}/${encodeURIComponent(id)}` : `/${view}`;
  const query = params.toString();
  return query ? `${path}?${query}` : path;
}

function notify() {
  listeners.forEach((listener) => listener());
}

/** Goes to an address. With `replace`, Back skips the current one. */
export function navigate(address: string, replace = false) {
  if (address === currentAddress()) return;
  flushPlace();
  restored = undefined;
  if (replace) replaceAddress(address);
  else {
    pushAddress(address);
    scrollTo(0, 0);
  }
  notify();
}

/** Changes parameters of the current address. */
export function setParams(changes: Record<string, string | undefined>, replace = false) {
  const { params } = currentRoute();
  for (const [name, value] of Object.entries(changes)) {
    if (value) params.set(name, value);
    else params.delete(name);
  }
  const query = params.toString();
  const address = currentAddress().split("?")[0] + (query ? `?${query}` : "");
  if (address === currentAddress()) return;
  const { scrollY } = window;
  flushPlace();
  if (replace) replaceAddress(address, currentState());
  else pushAddress(address, { y: scrollY });
  notify();
}

/** What the reader chose for a session. A link to another of its events keeps it. */
const CHOICES = ["show", "open"];

/** Returns an address with the choices of the current one, if both are of the same session. */
function withChoices(address: string): string {
  const [path = "", query = ""] = address.split("?");
  if (!path.startsWith("/session/") || currentAddress().split("?")[0] !== path) return address;
  const params = new URLSearchParams(query);
  const old = currentRoute().params;
  for (const name of CHOICES) {
    const value = old.get(name);
    if (value) params.set(name, value);
  }
  return params.size ? `${path}?${params}` : path;
}

/** Goes to a link of the page instead of loading it. */
export function followLink(event: MouseEvent) {
  const link = (event.target as Element).closest?.("a");
  const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  const address = link?.getAttribute("href");
  if (!link || !address || link.hasAttribute("download")) return;
  if (address === "#main") {
    // A file keeps its state in the fragment.
    event.preventDefault();
    document.getElementById("main")?.focus();
    return;
  }
  if (isEmbedded && link.target) {
    // The frame may open no window.
    event.preventDefault();
    openLink(link.href);
  } else if (isPlain && !link.target && (isFrozen ? address.startsWith("#") : /^\/(?!\/)/.test(address))) {
    event.preventDefault();
    navigate(withChoices(isFrozen ? addressOfFragment(address) : address));
  }
}

/** Goes back in a frame. A browser does that itself. */
export function navigateBack() {
  restored = (goBack() as Place | null | undefined) ?? { y: 0 };
  notify();
}

/** Restores the current place in the view that follows the next change of the address. */
export function keepPlace() {
  restored = { y: scrollY, ...describePlace?.() };
}

/** Returns the place to restore, once. */
export function takePlace(): Place | undefined {
  const place = restored;
  restored = undefined;
  return place;
}

let describePlace: (() => Partial<Place>) | undefined;

/** Sets what describes the place in the current view, besides the height. */
export function setPlaceReader(reader: (() => Partial<Place>) | undefined) {
  describePlace = reader;
}

/** Writes the current place into the history. */
function flushPlace() {
  const place: Place = { y: scrollY, ...describePlace?.() };
  replaceAddress(currentAddress(), place);
}

/** Starts to follow the history. */
export function startRouting() {
  if (!isEmbedded) history.scrollRestoration = "manual";
  restored = (currentState() as Place | null) ?? undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  addEventListener("scroll", () => {
    clearTimeout(timer);
    timer = setTimeout(flushPlace, 200);
  }, { passive: true });
  addEventListener("popstate", (event) => {
    clearTimeout(timer);
    restored = (event.state as Place | null) ?? { y: 0 };
    notify();
  });
}

/** Renders again whenever the address changes. */
export function useRoute(): Route {
  const [, render] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    const listener = () => render(0);
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
    };
  }, []);
  return currentRoute();
}

/** Scrolls to the place of the history as soon as the view has its content. */
export function useRestoredPlace(isReady: boolean) {
  const route = currentAddress();
  useEffect(() => {
    if (!isReady) return;
    const place = takePlace();
    if (place) requestAnimationFrame(() => scrollTo(0, place.y));
  }, [isReady, route]);
}
