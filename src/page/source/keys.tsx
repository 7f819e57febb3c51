// The keys of the page.

import { useEffect, useRef, useState } from "preact/hooks";
import { isEmbedded } from "./address";
import { Choice, Chosen } from "./parts";
import { addressOf, navigate } from "./route";

const KEYS: [string, string][] = [
  ["/", "search"],
  ["j / k", "next and previous row or event"],
  ["n / p", "next and previous prompt"],
  ["[ / ]", "previous and next session"],
  ["l", "list of sessions"],
  ["t", "list of turns"],
  ["f", "find in the session"],
  ["c", "copy the text of the event"],
  ["1 … 6", "show or hide a kind of event"],
  ["Enter", "open the row, or fold the call"],
  ["Esc", "leave the search box, close this"],
  ["g o, g s, g l, g q", "overview, sessions, live, SQL"],
  ["?", "show these keys"],
];

const COLOURS = ["system", "light", "dark"] as const;
type Colours = (typeof COLOURS)[number];

/** The colours that the reader chose. */
const chosenColours = new Chosen("colours");

const coloursOf = (text: string | undefined): Colours => COLOURS.find((one) => one === text) ?? "system";

/** Shows the page in the colours that the reader chose. */
export function applyColours() {
  const colours = coloursOf(chosenColours.value);
  document.documentElement.style.colorScheme = colours === "system" ? "" : colours;
}

let isPrefix = false;

/** The rows that j and k go through. */
const rows = (selector: string) => [...document.querySelectorAll<HTMLElement>(selector)];

function move(selector: string, by: 1 | -1) {
  const all = rows(selector).filter((row) => row.checkVisibility());
  if (!all.length) return;
  const active = document.activeElement?.closest<HTMLElement>(selector);
  let at = active ? all.indexOf(active) + by : -1;
  if (at < 0 && !active) at = all.findIndex((row) => row.getBoundingClientRect().top > 100);
  focusRow(all[Math.min(Math.max(at, 0), all.length - 1)]!);
}

/** The event that a key led to, until it is loaded. */
let awaited: number | undefined;

/** Goes to the next or the previous prompt. The list of turns knows also those that are not loaded. */
function movePrompt(by: 1 | -1) {
  const eventOf = (element: HTMLElement | null | undefined) => (element ? Number(element.dataset.event ?? element.dataset.first) : undefined);
  const find = (event: number) => document.querySelector<HTMLElement>(`.conversation [data-event="${event}"]`);
  if (awaited !== undefined && find(awaited)) awaited = undefined;
  const focused = document.activeElement?.closest<HTMLElement>(".conversation [data-event]");
  const seen = rows(".conversation [data-event]").find((row) => row.getBoundingClientRect().bottom > 145);
  const here = awaited ?? eventOf(focused ?? seen) ?? 0;
  const turns = rows(".outline [data-first]");
  const next = by > 0 ? turns.find((turn) => eventOf(turn)! > here) : turns.findLast((turn) => eventOf(turn)! < here);
  const event = eventOf(next);
  if (event === undefined) return;
  const loaded = find(event);
  if (loaded) return focusRow(loaded);
  awaited = event;
  next!.click();
}

function focusRow(row: HTMLElement) {
  row.focus({ preventScroll: true });
  const box = row.getBoundingClientRect();
  if (box.top < 130 || box.bottom > innerHeight - 20) scrollBy(0, box.top - Math.min(innerHeight / 3, 300));
}

/** Moves the focus to the turn that is read now. */
function focusTurns() {
  const list = document.querySelector<HTMLDetailsElement>(".outline details");
  if (!list) return;
  list.open = true;
  list.querySelector<HTMLElement>(".current a")?.focus();
}

/** Moves the focus to the list of sessions. If it is there, the list is closed. */
function focusSessions() {
  const list = document.querySelector(".session-nav ol");
  if (!list || list.contains(document.activeElement)) {
    const button = document.querySelector<HTMLElement>(".session-nav button");
    button?.focus();
    return button?.click();
  }
  (list.querySelector<HTMLElement>("[aria-current]") ?? list.querySelector<HTMLElement>("a"))?.focus();
}

/** Moves the focus to a box and selects its text. Not every browser does the one with the other. */
function focusBox(box: HTMLInputElement | null) {
  box?.select();
  box?.focus();
}

/** Moves the focus to the box that finds passages of the session. */
function focusFind(event: KeyboardEvent) {
  const list = document.querySelector<HTMLDetailsElement>(".outline details");
  if (!list) return;
  event.preventDefault();
  list.open = true;
  focusBox(list.querySelector(".find input"));
}

/** Handles a key of the whole page. */
export function handleKey(event: KeyboardEvent, toggleHelp: () => void) {
  const target = event.target as HTMLElement;
  const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
  if (event.key === "Escape" && isTyping) return target.blur();
  if (isTyping || event.metaKey || event.ctrlKey || event.altKey) return;
  if (isPrefix) {
    isPrefix = false;
    const view = ({ o: "overview", s: "search", l: "live", q: "sql" } as const)[event.key as "o"];
    if (view) return navigate(addressOf(view));
  }
  const list = document.querySelector(".conversation") ? ".conversation [data-event]" : "[data-row]";
  switch (event.key) {
    case "/":
      event.preventDefault();
      return focusBox(document.querySelector("#search"));
    case "j": return move(list, 1);
    case "k": return move(list, -1);
    case "n": return movePrompt(1);
    case "p": return movePrompt(-1);
    case "[": return document.querySelector<HTMLElement>(".session-nav [rel=prev]")?.click();
    case "]": return document.querySelector<HTMLElement>(".session-nav [rel=next]")?.click();
    case "l": return focusSessions();
    case "t": return focusTurns();
    case "f": return focusFind(event);
    case "c": return target.closest("[data-event]")?.querySelector<HTMLElement>(":scope > .meta .copy")?.click();
    case "1": case "2": case "3": case "4": case "5": case "6":
      return document.querySelectorAll<HTMLElement>("[data-kind]")[Number(event.key) - 1]?.click();
    case "g": isPrefix = true; return;
    case "?": return toggleHelp();
    case "Enter":
      if (target.dataset.event) target.querySelector<HTMLElement>("summary")?.click();
  }
}

/** Shows the keys, and lets the reader choose the colours. */
export function Keys({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const close = useRef<HTMLButtonElement>(null);
  const [colours, setColours] = useState(() => coloursOf(chosenColours.value));
  useEffect(() => {
    dialog.current?.showModal();
    close.current?.focus();
  }, []);
  const choose = (colours: Colours) => {
    chosenColours.value = colours === "system" ? undefined : colours;
    setColours(colours);
    applyColours();
  };
  return (
    <dialog ref={dialog} class="keys" aria-labelledby="keys-title" onClose={onClose} onClick={(event) => { if (event.target === dialog.current) dialog.current?.close(); }}>
      <h2 id="keys-title">Keys and colours</h2>
      <dl>{KEYS.map(([key, what]) => <div key={key}><dt><kbd>{key}</kbd></dt><dd>{what}</dd></div>)}</dl>
      {!isEmbedded && <p class="choices"><Choice label="Colours" value={colours} values={COLOURS} onChange={choose} /></p>}
      <button type="button" ref={close} onClick={() => dialog.current?.close()}>Close</button>
    </dialog>
  );
}
