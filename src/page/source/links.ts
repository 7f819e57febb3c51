// Links between sessions and events. In a file, a session may be in another file, or in none.

import { isFrozen, linkTo } from "./address";
import { fileOf } from "./frozen";

/** Returns the address of a session, or of one of its events. */
export function sessionAddress(id: string, event?: number | string): string {
  const address = `/session/${encodeURIComponent(id)}`;
  return event === undefined ? address : `${address}?event=${event}`;
}

/** Returns the link to a session or to one of its events. A file without the session has none. */
export function sessionLink(id: string, event?: number | string): string | undefined {
  const address = sessionAddress(id, event);
  if (!isFrozen) return address;
  const file = fileOf(id);
  if (file === undefined) return undefined;
  return file ? `${file}#${address}` : linkTo(address);
}
