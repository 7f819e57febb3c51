// Marks what a search found.

import type { ComponentChildren } from "preact";

/** Marks the words of the query in a text. */
export function marked(text: string, pattern: RegExp | undefined): ComponentChildren {
  if (!pattern) return text;
  const parts: ComponentChildren[] = [];
  let end = 0;
  for (const found of text.matchAll(pattern)) {
    if (!found[0]) continue;
    parts.push(text.slice(end, found.index), <mark>{found[0]}</mark>);
    end = found.index + found[0].length;
  }
  parts.push(text.slice(end));
  return parts;
}

/** Returns a pattern for the words of a query, as the tool understood it. */
export function patternOf(query: any): RegExp | undefined {
  const words: string[] = [...(query?.all_of ?? []), ...(query?.any_of ?? [])];
  const sources = words.flatMap((word) => word.split(" OR ")).map((word) => {
    const regex = /^\/(.*)\/$/.exec(word);
    return regex ? regex[1]! : word.replace(/^"|"$/g, "").replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  }).filter(Boolean);
  if (!sources.length) return undefined;
  try {
    return new RegExp(sources.sort((a, b) => b.length - a.length).join("|"), "giu");
  } catch {
    return undefined;
  }
}
