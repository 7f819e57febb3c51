// The events of a session as a conversation.

import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { isEmbedded, isFrozen, linkTo } from "./address";
import { call } from "./api";
import { highlight, languageOf } from "./code";
import { Markdown } from "./markdown";
import { Diff, LineCounts, parseWritten } from "./diff";
import type { Event, Item } from "./event";
import { bytes, count, duration, moment, shellWord, shortNotes, time } from "./format";
import { Images } from "./images";
import { type Kind, isCompaction, isLandmark } from "./kinds";
import { sessionAddress } from "./links";
import { CopyButton, useCopy } from "./parts";

/** What the reader chose to see. */
export interface Switches {
  shown: Set<Kind>;
  /** Calls are unfolded. */
  open: boolean;
}

/** Texts that are longer are shown in part at first. */
const MAX_LINES = 24;
/** Characters of a page of a long text. */
const PAGE_CHARS = 80_000;

/** Returns true if a text is only a part of that of its event. */
const isCut = (event: Event, text: string) => text !== event.command && (event.text_chars ?? 0) > text.length;

/** The rest of a text that is too long for a page of the tool. */
function useWhole(event: Event): [string, (() => void) | undefined, boolean] {
  const [whole, setWhole] = useState<string>();
  const [isLoading, setLoading] = useState(false);
  const text = whole ?? event.text ?? "";
  if (!isCut(event, text) || isFrozen) return [text, undefined, false];
  const load = async () => {
    setLoading(true);
    let loaded = "";
    let cursor: string | undefined;
    do {
      const args = { event_ids: [event.event_id], fields: ["text"], max_chars: PAGE_CHARS };
      const answer = await call("get_event_details", cursor ? { ...args, cursor } : args);
      loaded += answer.data.events[0]?.text ?? "";
      cursor = answer.pagination?.next_cursor;
      setWhole(loaded);
    } while (cursor && loaded.length < 2_000_000);
    setLoading(false);
  };
  return [text, load, isLoading];
}

/** Says how much of a text a file leaves out, and what shows it. */
function LeftOut({ event }: { event: Event }) {
  const left = isFrozen ? (event.text_chars ?? 0) - (event.text ?? "").length : 0;
  if (left <= 0) return null;
  return <p class="dim left-out">{count(left)} more characters: <code>sessions event {shellWord(event.event_id)}</code></p>;
}

/** A text in a fixed font. Only its first lines are shown at first. */
function LongText({ event, children, kind }: { event: Event; kind: string; children?: (text: string) => ComponentChildren }) {
  const [whole, load, isLoading] = useWhole(event);
  const [isOpen, setOpen] = useState(false);
  const lines = useMemo(() => whole.split("\n"), [whole]);
  const shown = isOpen ? whole : cutLines(lines);
  const hidden = whole.length - shown.length;
  if (!whole.trim()) return <p class="dim empty">no output</p>;
  return (
    <div class="long">
      <pre class={kind} tabIndex={0}>{children ? children(shown) : shortNotes(shown)}</pre>
      {!isCut(event, whole) && <CopyButton text={whole} title="Copy" />}
      {(hidden > 0 || load) && (
        <p class="more">
          {hidden > 0 && <button type="button" onClick={() => setOpen(true)}>Show all {count(lines.length)} lines</button>}
          {isOpen && hidden <= 0 && lines.length > MAX_LINES && <button type="button" onClick={() => setOpen(false)}>Show less</button>}
          {load && <button type="button" disabled={isLoading} onClick={() => { setOpen(true); void load(); }}>
            {isLoading ? "Loading" : `Load the remaining ${count((event.text_chars ?? 0) - whole.length)} characters`}
          </button>}
        </p>
      )}
      <LeftOut event={event} />
    </div>
  );
}

/** Returns the first lines of a text, or less if they are very long. */
function cutLines(lines: string[]): string {
  const head = lines.slice(0, MAX_LINES).join("\n");
  return head.length > 6000 ? head.slice(0, 6000) : head;
}

/** The steps of a plan, if the text of a call has them. */
function parsePlan(text: string): { state: string; text: string }[] {
  const steps: { state: string; text: string }[] = [];
  for (const block of text.split(/\n? {2}- /).slice(1)) {
    const what = /(?:^|\n\s*)(?:content|step|title|text): (.*)/.exec(block);
    const state = /(?:^|\n\s*)(?:status|state): (.*)/.exec(block);
    if (what && state) steps.push({ text: what[1]!, state: state[1]! });
  }
  return steps;
}

const MARKS: Record<string, string> = { completed: "✓", done: "✓", in_progress: "▸", cancelled: "✕" };

/** The arguments of a call, in the form that fits its kind. */
function CallBody({ event }: { event: Event }) {
  const text = event.text ?? "";
  if (event.diff?.text) return <Diff diff={event.diff} />;
  if (event.tool_kind === "plan") {
    const steps = parsePlan(text);
    if (steps.length) {
      return <ul class="plan">{steps.map((step, at) => (
        <li key={at} class={step.state}><span aria-hidden="true">{MARKS[step.state] ?? "○"}</span> {step.text} <span class="sr">({step.state})</span></li>
      ))}</ul>;
    }
    const plan = /^plan: ([\s\S]*)/.exec(text);
    if (plan) return <Markdown text={plan[1]!} />;
  }
  const written = event.tool_kind === "write" ? parseWritten(text) : undefined;
  if (written) {
    return <div class="edit">
      {written.path && <p class="path">{written.path}</p>}
      <LongText event={{ ...event, text: written.content, text_chars: undefined }} kind="code">{(shown) => <CodeText text={shown} path={written.path} />}</LongText>
    </div>;
  }
  if (event.command) {
    const rest = text.split("\n").filter((line) => /^(workdir|timeout|timeout_ms|yield_time_ms|description|justification|sandbox_permissions|run_in_background): /.test(line));
    return <>
      <pre class="terminal command" tabIndex={0}><span class="prompt" aria-hidden="true">$ </span>{event.command}</pre>
      {rest.length > 0 && <p class="dim facts">{rest.join(" · ")}</p>}
    </>;
  }
  if (event.tool_kind === "agent") {
    const prompt = /(?:^|\n)prompt: ([\s\S]*)/.exec(text);
    if (prompt) return <Markdown text={prompt[1]!} />;
  }
  const lines = text.split("\n");
  if (event.tool_kind === "read" && lines.length < 6 && lines.every((line) => line.length < 300)) return <p class="path">{lines.join(" · ")}</p>;
  return <LongText event={event} kind="plain" />;
}

const CodeText = ({ text, path }: { text: string; path?: string }) => <code>{highlight(text, languageOf(path))}</code>;

/** The state of a call: an exit code, a failure, or nothing if it worked. */
function CallState({ item }: { item: Item }) {
  const { event, result } = item;
  return (
    <span class="call-state">
      <LineCounts {...event.diff} />
      {result?.duration_ms !== undefined && <span class="dim">{duration(result.duration_ms)}</span>}
      {!result && event.event_type === "tool_call" && <span class="open">no result</span>}
      {result?.is_error && <span class="bad">{result.exit_code ? `exit ${result.exit_code}` : "failed"}</span>}
      {result && !result.is_error && result.exit_code === 0 && <span class="good">exit 0</span>}
      {result && !result.is_error && !!result.exit_code && <span class="warn">exit {result.exit_code}</span>}
    </span>
  );
}

/** A call, folded, with its result. */
function ToolItem({ item, isOpen, onToggle, children }: { item: Item; isOpen: boolean; onToggle: (open: boolean) => void; children?: ComponentChildren }) {
  const { event, result } = item;
  const isCommand = !!event.command;
  return (
    <details class={`call ${result?.is_error ? "failed" : ""}`} open={isOpen} onToggle={(toggled) => onToggle(toggled.currentTarget.open)}>
      <summary>
        <span class={`tool kind-${event.tool_kind ?? "other"}`}>{event.tool_name ?? "tool"}</span>
        <code class="deed">{event.line}</code>
        <CallState item={item} />
      </summary>
      {isOpen && (
        <div class="call-body">
          {event.event_type === "tool_call" && <CallBody event={event} />}
          {result && <div class="result">
            {!isCommand && <p class="label">Result{result.text ? <span class="dim"> {bytes(result.text_chars ?? result.text.length)}</span> : ""}</p>}
            <LongText event={result} kind={isCommand ? "terminal" : "plain"} />
            <Images event={result} />
          </div>}
          {event.event_type === "tool_result" && <LongText event={event} kind="plain" />}
        </div>
      )}
      {children}
    </details>
  );
}

/** A notification of the agent. */
function Notice({ event }: { event: Event }) {
  const [isOpen, setOpen] = useState(false);
  const { line, text = "", subtype = "" } = event;
  if (isCompaction(event)) {
    return (
      <div class="divider compaction">
        <p><strong>{line}</strong></p>
        {/summary/.test(subtype) && <details onToggle={(toggled) => setOpen(toggled.currentTarget.open)}>
          <summary>Show the summary</summary>{isOpen && <Markdown text={text} />}
        </details>}
      </div>
    );
  }
  if (isLandmark(event)) return <div class="divider stopped"><p><strong>{line}</strong></p></div>;
  return (
    <details class="notice" onToggle={(toggled) => setOpen(toggled.currentTarget.open)}>
      <summary><span class="dim deed">{line}</span></summary>
      {isOpen && <LongText event={event} kind="plain" />}
    </details>
  );
}

const NAMES: Partial<Record<Event["event_type"], string>> = { user: "Prompt", message: "Answer", reasoning: "Reasoning" };

/** Shows one item. */
export function EventItem({ item, isOpen, isTarget, isNested, onToggle, subagent }: {
  item: Item;
  /** Inside the conversation of another session, whose positions count. */
  isNested?: boolean;
  isOpen: boolean;
  isTarget: boolean;
  onToggle: (open: boolean) => void;
  subagent?: ComponentChildren;
}) {
  const { event } = item;
  const [isCopied, copy] = useCopy();
  const text = event.command ?? event.text;
  const marks = [
    event.is_abandoned && "abandoned by a rewind",
    event.is_replay && "copied history",
    // A call has no space for it, and is indented.
    event.is_sidechain && event.event_type !== "tool_call" && "subagent",
  ].filter(Boolean);
  const classes = ["item", event.event_type, isTarget && "target", event.is_abandoned && "abandoned", event.is_replay && "replay", event.is_sidechain && "sidechain"];
  const address = linkTo(sessionAddress(event.session_id, event.event_index));
  const name = NAMES[event.event_type];
  return (
    <article class={classes.filter(Boolean).join(" ")} data-event={isNested ? undefined : event.event_index} tabIndex={-1}
      aria-label={`${name ?? event.tool_name ?? "Event"} ${event.event_index}`}>
      <div class="meta">
        {name && <span class="who">{name}</span>}
        {marks.length > 0 && <span class="marks">{marks.join(", ")}</span>}
        {text && !isCut(event, text) && <CopyButton text={text} title="Copy the text (key c)" />}
        <a class="anchor" href={address} title={moment(event.timestamp)}
          onClick={() => { if (!isEmbedded) copy(new URL(address, location.href).href); }}>
          {isCopied ? "link copied" : `${time(event.timestamp)} #${event.event_index}`}
        </a>
      </div>
      <ItemBody item={item} isOpen={isOpen} onToggle={onToggle} />
      {subagent}
    </article>
  );
}

function ItemBody({ item, isOpen, onToggle }: { item: Item; isOpen: boolean; onToggle: (open: boolean) => void }) {
  const { event } = item;
  switch (event.event_type) {
    case "user":
    case "message":
      return <><LongMarkdown event={event} /><Images event={event} /></>;
    case "reasoning":
      return <LongMarkdown event={event} />;
    case "tool_call":
    case "tool_result":
      return <ToolItem item={item} isOpen={isOpen} onToggle={onToggle} />;
    case "token_usage":
    case "notification":
      return <Notice event={event} />;
  }
}

/** Prompts that are longer are folded, to this many characters. */
const LONG_PROMPT = 6000;
const FOLDED_PROMPT = 4000;

function LongMarkdown({ event }: { event: Event }) {
  const [whole, load, isLoading] = useWhole(event);
  const isLong = event.event_type === "user" && whole.length > LONG_PROMPT;
  const [isOpen, setOpen] = useState(false);
  const text = isLong && !isOpen ? whole.slice(0, FOLDED_PROMPT) : whole;
  return (
    <>
      <Markdown text={shortNotes(text)} />
      {isLong && !isOpen && <p class="more"><button type="button" onClick={() => setOpen(true)}>Show the whole prompt ({count(whole.length)} characters)</button></p>}
      {load && <p class="more"><button type="button" disabled={isLoading} onClick={() => void load()}>Load the rest</button></p>}
      <LeftOut event={event} />
    </>
  );
}
