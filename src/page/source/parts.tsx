// Small parts that several views use.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { isEmbedded } from "./address";
import type { ToolFailure } from "./api";
import { colourOf } from "./format";
import { currentRoute, setParams } from "./route";

/** A choice of the reader that the browser keeps, if it keeps anything for this page. */
export class Chosen {
  constructor(private readonly name: string) {}

  get value(): string | undefined {
    try {
      return localStorage.getItem(`sessions.${this.name}`) ?? undefined;
    } catch {
      return undefined;
    }
  }

  set value(value: string | undefined) {
    try {
      if (value === undefined) localStorage.removeItem(`sessions.${this.name}`);
      else localStorage.setItem(`sessions.${this.name}`, value);
    } catch {
      // The choice holds as long as the view.
    }
  }
}

/** True for a moment after `copy` was called. */
export function useCopy(): [boolean, (text: string) => void] {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => setCopied(false), 1500);
    return () => clearTimeout(timer);
  }, [isCopied]);
  return [isCopied, (text) => void navigator.clipboard?.writeText(text).then(() => setCopied(true), () => undefined)];
}

/** Copies a text. A client of MCP lets its frames not do that. */
export function CopyButton({ text, title }: { text: string; title: string }) {
  const [isCopied, copy] = useCopy();
  if (isEmbedded) return null;
  return <button type="button" class="copy" title={title} onClick={() => copy(text)}>{isCopied ? "Copied" : "Copy"}</button>;
}

/** A model with its colour. */
export function Chip({ model }: { model: string }) {
  return <span class="chip"><span class={`dot c${colourOf(model)}`} aria-hidden="true" />{model}</span>;
}

/** A model, agent or project that filters everything when it is clicked. */
export function FilterButton({ name, value, children }: { name: string; value: string; children: ComponentChildren }) {
  const isSet = currentRoute().params.get(name) === value;
  return (
    <button type="button" class="filter-link" aria-pressed={isSet} title={isSet ? "Remove this filter" : `Show only this ${name}`}
      onClick={() => setParams({ [name]: isSet ? undefined : value })}>{children}</button>
  );
}

export function Failure({ error }: { error: ToolFailure | Error }) {
  return <p class="failure" role="alert">{error.message}</p>;
}

/** A card with a heading. */
export function Card({ title, note, children, wide }: { title: string; note?: ComponentChildren; children: ComponentChildren; wide?: boolean }) {
  return (
    <section class={`card ${wide ? "wide" : ""}`}>
      <h2>{title}</h2>
      {note && <p class="dim note">{note}</p>}
      {children}
    </section>
  );
}

/** A choice between a few values. */
export function Choice<T extends string>({ label, value, values, onChange }: { label: string; value: T; values: readonly T[]; onChange: (value: T) => void }) {
  return (
    <div class="choice" role="group" aria-label={label}>
      {values.map((one) => <button key={one} type="button" aria-pressed={one === value} onClick={() => onChange(one)}>{one}</button>)}
    </div>
  );
}

/** Shows the first rows of a list, and the others when asked. */
export function Limited<T>({ rows, limit, render }: { rows: T[]; limit: number; render: (row: T, at: number) => ComponentChildren }) {
  const [isOpen, setOpen] = useState(false);
  const hidden = rows.length - limit;
  return (
    <>
      {(isOpen ? rows : rows.slice(0, limit)).map(render)}
      {hidden > 0 && <li class="more"><button type="button" onClick={() => setOpen(!isOpen)}>{isOpen ? "Show less" : `Show ${hidden} more`}</button></li>}
    </>
  );
}
