// Words for numbers, times and names, in the reader's language of dates and zone.

export const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

const whole = new Intl.NumberFormat("en");
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

export function cost(value: number | undefined): string {
  if (value === undefined) return "no price";
  if (value === 0) return "$0";
  if (value < 0.01) return "<$0.01";
  return value >= 1000 ? `$${whole.format(Math.round(value))}` : `$${value.toFixed(2)}`;
}

export function bytes(value: number | undefined): string {
  const number = value ?? 0;
  if (number < 1000) return `${number} B`;
  return number < 1e6 ? `${(number / 1e3).toFixed(number < 1e4 ? 1 : 0)} kB` : `${(number / 1e6).toFixed(1)} MB`;
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

/** Hues of families of models, in degrees. The first one whose word is in a name counts. Versions shift
 * the hue by tens, so families that are close have other last digits. */
const HUES: [string, number][] = [
  ["opus", 45], ["sonnet", 282], ["haiku", 206], ["codex", 131], ["gpt", 163], ["gemini", 247], ["grok", 20], ["kimi", 338], ["qwen", 304],
  ["glm", 99], ["deepseek", 230], ["minimax", 2], ["mistral", 68], ["llama", 180],
];

/** Returns a number that follows from a text alone. */
const hash = (text: string) => [...text].reduce((sum, char) => (sum * 31 + char.codePointAt(0)!) % 65_521, 7);

/**
 * Returns the colour of a model, which follows from its name alone: the hue from its family, a shift of
 * the hue and the lightness from its version.
 */
export function colourOf(name: string | undefined): string {
  if (!name) return "var(--none)";
  const parts = name.toLowerCase().split(/[^a-z0-9]+|(?<=[a-z])(?=\d)/);
  // Parts with more digits are dates.
  const version = parts.filter((part) => /^\d{1,3}$/.test(part)).reduce((sum, part) => sum * 10 + Number(part), 0);
  const rest = hash(parts.filter((part) => !/^\d{1,3}$/.test(part)).join("-"));
  const family = HUES.find(([word]) => parts.includes(word))?.[1] ?? rest % 360;
  const hue = (family + ((rest + version * 3) % 7) * 10 + 330) % 360;
  const level = ((rest + version) % 4) * 0.09;
  return `light-dark(oklch(${(0.44 + level).toFixed(2)} 0.14 ${hue}), oklch(${(0.6 + level).toFixed(2)} 0.13 ${hue}))`;
}

/** Returns a model's name as `session_stats` groups models: of two ways to write a version it is one. */
export const modelName = (name: string): string =>
  (/claude|opus|sonnet|haiku/.test(name) ? name.replace(/(?<=\d)\.(?=\d)/g, "-") : name);

/** Returns the last parts of a path. */
export function shortPath(path: string, parts = 2): string {
  const all = path.split(/[\\/]/);
  return all.length > parts ? all.slice(-parts).join("/") : path;
}
