// The address of the view that is shown: that of the browser; in the frame of a client of MCP, which
// has no history of its own, one in memory; in a file, the fragment.

interface Entry {
  address: string;
  state: unknown;
}

const { app, frozen, session: onlySession } = document.documentElement.dataset;

/** True if a client of MCP shows the page in a frame, as the page of one of its tools. */
export const isEmbedded = app !== undefined;

/** True if the page is a file that a command wrote: its data is inside, and there is no server. */
export const isFrozen = frozen !== undefined;

/** True if the file has one session. */
export const isTranscript = frozen === "transcript";

const entries: Entry[] = [{ address: "/", state: null }];

/** Returns the address that the fragment of a file means. That of a transcript is its query. */
export function addressOfFragment(fragment: string): string {
  const text = fragment.replace(/^#/, "");
  if (!isTranscript) return text.startsWith("/") ? text : "/";
  return `/session/${encodeURIComponent(onlySession ?? "")}${/^\w+=/.test(text) ? `?${text}` : ""}`;
}

/** Returns what a link to an address refers to. */
export function linkTo(address: string): string {
  if (!isFrozen) return address;
  const query = address.split("?")[1];
  if (isTranscript) return `#${query ?? ""}`;
  return `#${address}`;
}

/** Returns the path and the query. */
export function currentAddress(): string {
  if (isFrozen) return addressOfFragment(location.hash);
  return isEmbedded ? entries.at(-1)!.address : location.pathname + location.search;
}

export function currentState(): unknown {
  return isEmbedded ? entries.at(-1)!.state : history.state;
}

/** Adds an address to the history. */
export function pushAddress(address: string, state: unknown = null) {
  if (isEmbedded) entries.push({ address, state });
  else history.pushState(state, "", linkTo(address));
}

/** Replaces the current address. */
export function replaceAddress(address: string, state: unknown = null) {
  if (isEmbedded) entries[entries.length - 1] = { address, state };
  else history.replaceState(state, "", linkTo(address));
}

/** Goes back in the history in memory. Returns the state of the entry, or `undefined` if it is the first. */
export function goBack(): unknown {
  if (entries.length < 2) return undefined;
  entries.pop();
  return currentState();
}

/** Returns true if `goBack` has somewhere to go. */
export function canGoBack(): boolean {
  return entries.length > 1;
}
