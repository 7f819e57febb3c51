// Words for numbers, times and names, in the reader's language of dates and zone.

export const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

const whole = new Intl.NumberFormat("en");
const cents = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const day = new Intl.DateTimeFormat("en", { day: "numeric", month: "short" });
const dayOfYear = new Intl.DateTimeFormat("en", { day: "numeric", month: "short", year: "numeric" });
const clock = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const full = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });

export const count = (value: number | undefined) => whole.format(value ?? 0);

/** Quotes a word of a command, so that a POSIX shell, fish or zsh takes it literally. */
export function shellWord(word: string): string {
  if (/^[\w./:@%+,-][\w./:=@%+,-]*$/.test(word)) return word;
  return `'${word.replace(/['\\]/g, (mark) => `'\\${mark}'`)}'`;
}

/** Returns a count with its noun: `1 session`, `2 sessions`. */
export const plural = (value: number, noun: string) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

/** Returns a short form of a large number: `12.3k`. */
export function short(value: number | undefined): string {
  const number = value ?? 0;
  for (const [limit, unit] of [[1e9, "B"], [1e6, "M"], [1e3, "k"]] as const) {
    if (number >= limit) return `${(number / limit).toFixed(number / limit < 10 ? 1 : 0)}${unit}`;
  }
  return String(Math.round(number));
}

/** Returns an amount of money as the commands write it. */
export function cost(value: number | undefined): string {
  if (value === undefined) return "no price";
  if (value > 0 && value < 0.01) return "<$0.01";
  return `$${cents.format(value)}`;
}

/** Returns a size as the commands write it. */
export function bytes(value: number | undefined): string {
  const number = value ?? 0;
  if (number < 1000) return `${number} B`;
  return number < 1e6 ? `${Math.floor(number / 1e3)} KB` : `${(Math.floor(number / 1e5) / 10).toFixed(1)} MB`;
}

export function duration(ms: number | undefined | null): string {
  if (ms === undefined || ms === null) return "";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const minutes = Math.round(ms / 60_000);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return `${Math.round(hours / 24)} days`;
}

/** Returns a day, with its year unless it is this one. */
export function date(text: string | undefined): string {
  if (!text) return "";
  const time = new Date(text);
  return (time.getFullYear() === new Date().getFullYear() ? day : dayOfYear).format(time);
}

export const time = (text: string | undefined) => (text ? clock.format(new Date(text)) : "");
export const moment = (text: string | undefined) => (text ? full.format(new Date(text)) : "no time");

/** Returns how long ago a time was. */
export function ago(text: string | undefined, now: number): string {
  if (!text) return "";
  const ms = now - Date.parse(text);
  if (ms < 60_000) return "just now";
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ago`;
  if (ms < 86_400_000) return `${Math.floor(ms / 3_600_000)} h ago`;
  if (ms < 7 * 86_400_000) return `${Math.floor(ms / 86_400_000)} d ago`;
  return date(text);
}

/** Returns today's date in the reader's zone. */
export const today = () => dayOf(new Date(Date.now() - new Date().getTimezoneOffset() * 60_000).toISOString());

/** Returns the date of a time, or nothing if the text has none. */
export const dayOf = (text: string) => /^\d{4}-\d\d-\d\d/.exec(text)?.[0] ?? "";

/** Returns the date that is some days after another one. */
export function shiftDay(day: string, days: number): string {
  const date = new Date(`${day}T12:00Z`);
  if (Number.isNaN(date.getTime())) return "";
  date.setUTCDate(date.getUTCDate() + days);
  return dayOf(date.toISOString());
}

export const tokensOf = (usage: any): number =>
  (usage?.input_tokens ?? 0) + (usage?.output_tokens ?? 0) + (usage?.cache_read_tokens ?? 0) + (usage?.cache_write_tokens ?? 0);

/** Returns a model's name as `session_stats` groups models: without its vendor and the date of its release. */
export function modelName(name: string): string {
  const model = (name.slice(name.lastIndexOf("/") + 1) || name);
  const start = /(?:^|\.)(?=claude|opus|sonnet|haiku)/.exec(model);
  if (!start) return withoutDate(model);
  const known = withoutDate(model.slice(start.index + start[0].length).replace(/-v[\d:]*$/, "")).replace(/(?<=\d)\.(?=\d)/g, "-");
  return known.startsWith("claude") ? known : `claude-${known}`;
}

const withoutDate = (name: string) => name.replace(/(?<=.)(?:[-@]20\d{6}|-20\d\d-\d\d-\d\d)$/, "");

/** Returns a pattern of SQL for the names that are written as this one. */
export function modelPattern(shown: string): string {
  const escape = (text: string) => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
  const name = shown.replace(/^claude-(?=opus|sonnet|haiku)/, "");
  const isClaude = modelName(name).startsWith("claude");
  const words = isClaude ? escape(name).replace(/(?<=\d)-(?=\d)/g, "[.-]") : escape(name);
  return `(.*[/.])?${name === shown ? "" : "(claude-)?"}${words}([-@]20[0-9]{6}|-20[0-9]{2}-[0-9]{2}-[0-9]{2})?${isClaude ? "(-v[0-9:]*)?" : ""}`;
}

/** Shortens the notes in place of images: `[image/png 20480 bytes]` becomes `[image 20 KB]`. */
export const shortNotes = (text: string): string => text.replace(/\[image\/[^\] ]* (\d+) bytes\]/g, (_, size) => `[image ${bytes(Number(size))}]`);

/** Returns the last parts of a path. */
export function shortPath(path: string, parts = 2): string {
  const all = path.split(/[\\/]/);
  return all.length > parts ? all.slice(-parts).join("/") : path;
}
