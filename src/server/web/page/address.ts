// The address of the view that is shown: that of the browser or, in the frame of a client of MCP,
// which has no history of its own, one in memory.

interface Entry {
  address: string;
  state: unknown;
}

/** True if a client of MCP shows the page in a frame, as the page of one of its tools. */
export const isEmbedded = document.documentElement.dataset.app !== undefined;

const entries: Entry[] = [{ address: "/", state: null }];

/** Returns the path and the query. */
export function currentAddress(): string {
  return isEmbedded ? entries.at(-1)!.address : location.pathname + location.search;
}

export function currentState(): unknown {
  return isEmbedded ? entries.at(-1)!.state : history.state;
}

/** Adds an address to the history. */
export function pushAddress(address: string, state: unknown = null) {
  if (isEmbedded) entries.push({ address, state });
  else history.pushState(state, "", address);
}

/** Replaces the current address. */
export function replaceAddress(address: string, state: unknown = null) {
  if (isEmbedded) entries[entries.length - 1] = { address, state };
  else history.replaceState(state, "", address);
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
