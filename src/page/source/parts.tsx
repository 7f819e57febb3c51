// Small parts that several views use.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { isEmbedded } from "./address";
import type { ToolFailure } from "./api";
import { colourOf } from "./colours";
import { modelName } from "./format";
import { sessionLink } from "./links";
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
  const shown = modelName(model);
  return <span class="chip"><span class="dot" style={{ background: colourOf(shown) }} aria-hidden="true" />{shown}</span>;
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

/** What is shown of a part until its data is there. */
export function Skeleton({ lines = 4 }: { lines?: number }) {
  return <div class="loading" role="status" aria-label="Loading">{Array.from({ length: lines }, (_, at) => <span key={at} />)}</div>;
}

/** A card with a heading, and with its content once that is there. Without a width it takes a third of the row. */
export function Card({ title, note, children, width, isReady = true }: { title: string; note?: ComponentChildren; children: ComponentChildren; width?: "half" | "full"; isReady?: boolean }) {
  return (
    <section class={`card ${width ?? ""}`}>
      <h2>{title}</h2>
      {note && <p class="dim note">{note}</p>}
      {isReady ? children : <Skeleton />}
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

/** A link to an event by its id. */
export function EventLink({ id, children }: { id: string; children: ComponentChildren }) {
  const at = id.lastIndexOf(":");
  return <a href={sessionLink(id.slice(0, at), id.slice(at + 1))}>{children}</a>;
}
