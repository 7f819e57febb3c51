// Edits as lines that were removed and added, with the words that differ between them.

import type { ComponentChildren } from "preact";
import { diffWordsWithSpace } from "diff";
import type { EditDiff } from "./event";
import { runsOf } from "./runs";

/** Lines of a pair that are longer are not compared word by word. */
const MAX_LINE = 2000;

/** Returns the text of a call that writes a file. */
export function parseWritten(text: string): { path?: string; content: string } | undefined {
  const found = /(?:^|\n)(?:content|contents|file_text): /.exec(text);
  const path = /(?:^|\n)(?:file_path|filePath|path|file|absolute_path): (.*)/.exec(text)?.[1];
  return found ? { path, content: text.slice(found.index + found[0].length) } : undefined;
}

/** How many lines an edit added and removed. */
export function LineCounts({ added = 0, removed = 0 }: { added?: number; removed?: number }) {
  if (!added && !removed) return null;
  return <span class="counts"><span class="plus">+{added}</span> <span class="minus">−{removed}</span></span>;
}

/** The words of a removed and an added line, with what differs marked. */
function words(before: string, after: string): [ComponentChildren, ComponentChildren] {
  if (before.length + after.length > MAX_LINE) return [before, after];
  const old: ComponentChildren[] = [];
  const next: ComponentChildren[] = [];
  let same = 0;
  for (const part of diffWordsWithSpace(before, after)) {
    if (part.added) next.push(<mark>{part.value}</mark>);
    else if (part.removed) old.push(<mark>{part.value}</mark>);
    else {
      old.push(part.value);
      next.push(part.value);
      same += part.value.trim().length;
    }
  }
  // Lines that share almost nothing are easier to read without marks.
  return same * 4 < Math.min(before.trim().length, after.trim().length) ? [before, after] : [old, next];
}

const CLASSES: Record<string, string> = { "+": "d-add", "-": "d-del", "@": "d-at", "*": "d-at path" };

/** Shows an edit. Words are compared where added lines follow removed ones. */
export function Diff({ diff }: { diff: EditDiff }) {
  const runs = runsOf(diff.text.split("\n"), (first, next) => first[0] === next[0]);
  const rows = runs.flatMap((run, at) => {
    const sign = run[0]![0] ?? " ";
    const other = sign === "-" ? runs[at + 1] : sign === "+" ? runs[at - 1] : undefined;
    const isPaired = other && other[0]![0] === (sign === "-" ? "+" : "-");
    return run.map((line, to) => {
      const pair = isPaired ? other[to]?.slice(1) : undefined;
      const text = line.slice(1);
      const shown = pair === undefined ? text : sign === "-" ? words(text, pair)[0] : words(pair, text)[1];
      return <span key={`${at} ${to}`} class={CLASSES[sign]}>{CLASSES[sign]?.startsWith("d-at") ? line.replace(/^\*\*\* |^@@ /, "") : <>{sign} {shown}</>}{"\n"}</span>;
    });
  });
  return <pre class="diff" tabIndex={0} aria-label="Diff"><code>{rows}</code></pre>;
}
