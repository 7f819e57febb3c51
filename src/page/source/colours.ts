// The colours of models. A colour follows from the name of its model alone, so it is the same in every
// view and does not change when other models appear.

import { modelName } from "./format";

/** Where a word of a name leads: by eighths of the hues of its vendor, and by steps of the lightness. */
type Place = [hue: number, step: number];

interface Vendor {
  /** Words in the names of its models. */
  names: RegExp;
  /** Its first hue and the number of its hues, in degrees. */
  from: number;
  hues: number;
  chroma: number;
  words: Record<string, Place>;
}

/**
 * The vendors. The first one that a name fits has its models. The places of the words are chosen so that the models of
 * the price file are far apart; `tests/check_web.py` measures that.
 */
const VENDORS: Vendor[] = [
  { names: /claude|opus|sonnet|haiku/, from: 5, hues: 75, chroma: 0.17, words: { fable: [7, 6], fast: [0, 6], haiku: [2, 9], mythos: [8, 0], opus: [6, 2], sonnet: [0, 6] } },
  { names: /mistral|codestral|devstral|magistral|voxtral/, from: 84, hues: 10, chroma: 0.12, words: { codestral: [8, 2], devstral: [3, 3], large: [1, 4], magistral: [0, 7], medium: [1, 0], mistral: [7, 3], small: [8, 8] } },
  { names: /glm/, from: 98, hues: 14, chroma: 0.13, words: { air: [8, 9], flash: [7, 6], flashx: [8, 1], turbo: [7, 7] } },
  { names: /codex/, from: 116, hues: 22, chroma: 0.17, words: { gpt: [0, 0], auto: [8, 5], max: [0, 6], mini: [8, 8], review: [6, 8], spark: [6, 3] } },
  { names: /gpt|^o\d/, from: 145, hues: 60, chroma: 0.16, words: { "4o": [5, 4], astra: [8, 6], luna: [8, 2], mini: [8, 9], nano: [3, 7], o: [4, 3], pro: [7, 2], sol: [8, 1], terra: [7, 7] } },
  { names: /deepseek/, from: 209, hues: 9, chroma: 0.12, words: { flash: [4, 0], pro: [0, 9], r: [4, 5], v: [0, 0] } },
  { names: /llama/, from: 219, hues: 8, chroma: 0.12, words: {} },
  { names: /gemini|gemma/, from: 230, hues: 46, chroma: 0.16, words: { flash: [8, 0], lite: [2, 8], pro: [7, 1] } },
  { names: /qwen|qwq/, from: 282, hues: 20, chroma: 0.15, words: { coder: [1, 7], flash: [7, 7], max: [8, 3], plus: [7, 1] } },
  { names: /kimi/, from: 308, hues: 14, chroma: 0.15, words: { code: [8, 3], highspeed: [1, 2], k: [0, 0] } },
  { names: /grok/, from: 328, hues: 14, chroma: 0.15, words: { build: [4, 7], code: [7, 5], fast: [4, 9], mini: [5, 8] } },
  { names: /minimax/, from: 348, hues: 12, chroma: 0.15, words: { m: [0, 0] } },
];
/** A vendor that is not known has greys. */
const OTHER: Vendor = { names: /^$/, from: 0, hues: 360, chroma: 0.03, words: {} };

/** Words that name the same model. */
const SAME_MODEL = new Set(["latest", "preview"]);

/** Returns a number that follows from a text alone. */
const hash = (text: string) => [...text].reduce((sum, char) => (sum * 31 + char.codePointAt(0)!) % 65_521, 7);

/** Returns the place of a part of a name. Numbers and the name of the vendor lead nowhere. */
function placeOf(part: string, vendor: Vendor): Place {
  const known = Object.hasOwn(vendor.words, part) ? vendor.words[part] : undefined;
  if (known) return known;
  if (!/^[a-z]+$/.test(part) || SAME_MODEL.has(part) || vendor.names.test(part)) return [0, 0];
  const number = hash(part);
  return [number % 9, Math.floor(number / 9) % 10];
}

/**
 * Returns the colour of a model: the hues from its vendor, the place among them from the words of its name, and the
 * lightness and the strength from its version. Versions that follow each other are far apart.
 */
export function colourOf(name: string | undefined): string {
  if (!name) return "var(--none)";
  const model = modelName(name.toLowerCase());
  const vendor = VENDORS.find(({ names }) => names.test(model)) ?? OTHER;
  const parts = model.split(/[^a-z0-9]+|(?<=[a-z])(?=\d)/);
  // Longer numbers are sizes and dates.
  const [major = 0, minor = 0] = parts.filter((part) => /^\d{1,2}$/.test(part)).map(Number);
  const places = parts.map((part) => placeOf(part, vendor));
  const eighth = places.reduce((sum, [hue]) => sum + hue, major % 2) % 9;
  // A major version shifts the round by nine: 5.0 then has the step that 4.9 would have.
  const step = places.reduce((sum, [, step]) => sum + step, minor + major * 9) % 10;
  const isWeak = step % 2;
  const level = ((step * 2) % 5) + isWeak / 2;
  const hue = Math.round(vendor.from + (vendor.hues * eighth) / 8) % 360;
  const chroma = (vendor.chroma * (isWeak ? 0.5 : 1)).toFixed(3);
  const colour = (lightness: number) => `oklch(${lightness.toFixed(3)} ${chroma} ${hue})`;
  return `light-dark(${colour(0.4 + level * 0.078)}, ${colour(0.57 + level * 0.075)})`;
}
