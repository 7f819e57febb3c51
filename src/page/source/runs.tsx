// Runs of things that belong together: the lines of a diff, and calls that fold into one line.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Item } from "./event";
import { plural } from "./format";

/** Splits a list where something does not join the first of its run. */
export function runsOf<T>(all: T[], joins: (first: T, next: T) => boolean): T[][] {
  const runs: T[][] = [];
  for (const one of all) {
    const last = runs.at(-1);
    if (last && joins(last[0]!, one)) last.push(one);
    else runs.push([one]);
  }
  return runs;
}

/** Calls that follow each other: how many, how many failed, and with which tools. */
export function Run({ items, isOpen, children }: { items: Item[]; isOpen: boolean; children: ComponentChildren }) {
  const [isToggled, setToggled] = useState(false);
  useEffect(() => setToggled(false), [isOpen]);
  const failed = items.filter(({ result }) => result?.is_error).length;
  const tools = new Map<string, number>();
  for (const { event } of items) tools.set(event.tool_name ?? "tool", (tools.get(event.tool_name ?? "tool") ?? 0) + 1);
  const names = [...tools].sort(([, a], [, b]) => b - a).map(([name, times]) => (times > 1 ? `${name} ×${times}` : name));
  const isShown = isOpen !== isToggled;
  return (
    <details class="run" open={isShown} data-event={items[0]!.event.event_index} tabIndex={-1} onToggle={(toggled) => { if (toggled.currentTarget.open !== isShown) setToggled(!isToggled); }}>
      <summary>{plural(items.length, "call")}{failed > 0 && <span class="bad">, {failed} failed</span>} <span class="dim">{names.join(", ")}</span></summary>
      {isShown && children}
    </details>
  );
}
