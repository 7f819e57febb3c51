// Edits as lines that were removed and added, with the words that differ between them.

import type { ComponentChildren } from "preact";
import { diffLines, diffWordsWithSpace } from "diff";

/** A line of a diff. */
export interface DiffLine {
  kind: "add" | "del" | "same" | "at";
  text: string;
}

/** An edit of one file. */
export interface FileEdit {
  path?: string;
  lines: DiffLine[];
}

/** Lines of a pair that are longer are not compared word by word. */
const MAX_LINE = 2000;
/** Unchanged lines that are shown around a change. */
const CONTEXT = 3;
/** Texts that are longer are shown as removed and added as a whole. */
const MAX_TEXT = 60_000;

const split = (text: string) => (text.endsWith("\n") ? text.slice(0, -1) : text).split("\n");

/** Compares two texts. */
export function compareTexts(before: string, after: string): DiffLine[] {
  if (before.length + after.length > MAX_TEXT) {
    const lines = (text: string, kind: DiffLine["kind"]) => (text ? split(text).map((line) => ({ kind, text: line })) : []);
    return [...lines(before, "del"), ...lines(after, "add")];
  }
  const lines: DiffLine[] = [];
  for (const part of diffLines(before, after)) {
    const kind = part.added ? "add" : part.removed ? "del" : "same";
    for (const text of split(part.value)) lines.push({ kind, text });
  }
  return lines;
}

/** Returns the first and last position of key `names` in `text`, where a line begins with it. */
function findKey(text: string, names: string[], from = 0): { start: number; value: number } | undefined {
  for (const name of names) {
    const key = `${name}: `;
    const at = from === 0 && text.startsWith(key) ? 0 : text.indexOf(`\n${key}`, Math.max(from - 1, 0));
    if (at >= 0) {
      const start = at === 0 && text.startsWith(key) ? 0 : at + 1;
      return { start, value: start + key.length };
    }
    // An empty text has no space after the colon.
    const empty = text.indexOf(`\n${name}:\n`, Math.max(from - 1, 0));
    if (empty >= 0) return { start: empty + 1, value: empty + 1 + name.length + 1 };
  }
  return undefined;
}

const OLD = ["old_string", "oldText", "oldString", "old_str", "old_content", "search"];
const NEW = ["new_string", "newText", "newString", "new_str", "new_content", "replace"];
const PATH = ["file_path", "filePath", "path", "file", "absolute_path"];
/** Keys that may follow the texts of an edit. */
const REST = /\n(?:replace_all|replaceAll|instruction|expected_replacements|file_path|filePath|path|description): [^\n]*\s*$/;

/** Returns the value of a key that has a single line. */
export function lineOf(text: string, names: string[]): string | undefined {
  const found = findKey(text, names);
  return found && text.slice(found.value).split("\n", 1)[0];
}

export const pathOf = (text: string) => lineOf(text, PATH);

/** Returns the edit of a call that replaces one text with another. */
function parseReplacement(text: string): FileEdit | undefined {
  const before = findKey(text, OLD);
  const after = before && (findKey(text, NEW, before.value) ?? findKey(text, NEW));
  if (!before || !after) return undefined;
  let old: string;
  let next: string;
  if (after.start > before.start) {
    old = text.slice(before.value, after.start - 1);
    next = text.slice(after.value).replace(REST, "");
  } else {
    next = text.slice(after.value, before.start - 1);
    old = text.slice(before.value).replace(REST, "");
  }
  return { path: pathOf(text), lines: compareTexts(old.replace(REST, ""), next) };
}

/** Returns the edits of a patch as Codex writes it. */
function parsePatch(text: string): FileEdit[] {
  const start = text.indexOf("*** Begin Patch");
  if (start < 0) return [];
  const edits: FileEdit[] = [];
  for (const line of text.slice(start).split("\n").slice(1)) {
    const file = /^\*\*\* (?:Add|Update|Delete) File: (.*)$/.exec(line);
    if (file) edits.push({ path: file[1], lines: [] });
    else if (line.startsWith("*** End Patch")) break;
    const edit = edits[edits.length - 1];
    if (file || !edit || line.startsWith("*** ")) continue;
    const kind = line.startsWith("+") ? "add" : line.startsWith("-") ? "del" : line.startsWith("@@") ? "at" : "same";
    edit.lines.push({ kind, text: kind === "at" ? line : line.slice(1) });
  }
  return edits;
}

/** Returns the edits of a call of a tool. None if the text is not one of the known forms. */
export function parseEdits(text: string): FileEdit[] {
  const patch = parsePatch(text);
  if (patch.length) return patch;
  const one = parseReplacement(text);
  return one ? [one] : [];
}

/** Returns the text of a call that writes a file. */
export function parseWritten(text: string): { path?: string; content: string } | undefined {
  const content = findKey(text, ["content", "contents", "file_text"]);
  return content && { path: pathOf(text), content: text.slice(content.value) };
}

export function countLines(edits: FileEdit[]): { added: number; removed: number } {
  let added = 0;
  let removed = 0;
  for (const edit of edits) {
    for (const line of edit.lines) {
      if (line.kind === "add") added += 1;
      if (line.kind === "del") removed += 1;
    }
  }
  return { added, removed };
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

/** Shows an edit. */
export function Diff({ lines }: { lines: DiffLine[] }) {
  const rows: ComponentChildren[] = [];
  for (let at = 0; at < lines.length; ) {
    const line = lines[at]!;
    if (line.kind === "same") {
      let end = at;
      while (end < lines.length && lines[end]!.kind === "same") end += 1;
      const head = at === 0 ? 0 : CONTEXT;
      const tail = end === lines.length ? 0 : CONTEXT;
      const skipped = end - at - head - tail;
      for (let to = at; to < end; to += 1) {
        if (skipped > 1 && to === at + head) {
          rows.push(<span class="d-skip">{`  ⋯ ${skipped} unchanged lines\n`}</span>);
          to += skipped;
          if (to >= end) break;
        }
        rows.push(<span>{"  "}{lines[to]!.text}{"\n"}</span>);
      }
      at = end;
      continue;
    }
    if (line.kind === "at") {
      rows.push(<span class="d-at">{line.text}{"\n"}</span>);
      at += 1;
      continue;
    }
    let removed = at;
    while (removed < lines.length && lines[removed]!.kind === "del") removed += 1;
    let added = removed;
    while (added < lines.length && lines[added]!.kind === "add") added += 1;
    const pairs = Math.min(removed - at, added - removed);
    const compared: [ComponentChildren, ComponentChildren][] = [];
    for (let pair = 0; pair < pairs; pair += 1) compared.push(words(lines[at + pair]!.text, lines[removed + pair]!.text));
    for (let to = at; to < removed; to += 1) {
      rows.push(<span class="d-del">- {compared[to - at]?.[0] ?? lines[to]!.text}{"\n"}</span>);
    }
    for (let to = removed; to < added; to += 1) {
      rows.push(<span class="d-add">+ {compared[to - removed]?.[1] ?? lines[to]!.text}{"\n"}</span>);
    }
    at = added;
  }
  return <pre class="diff" tabIndex={0} aria-label="Diff"><code>{rows}</code></pre>;
}
