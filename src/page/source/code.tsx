// Colours code by a few rules that hold for most languages. It need not be right, only calm.

import type { ComponentChildren } from "preact";

/** Texts that are longer stay without colours. */
const MAX_CHARS = 40_000;

const WORDS = new Set(
  ("abstract as async await bool boolean break case catch class const continue def default defer del delete do done elif else " +
    "enum esac except export extends extern false fi final finally fn for from func function go if impl implements import in " +
    "instanceof int interface is lambda let loop match mod move mut namespace new nil none not null or package pass private " +
    "protected pub public raise readonly ref return select self static string struct super switch then this throw trait true try " +
    "type typeof undefined union unsafe use var void where while with yield None True False Self SELECT FROM WHERE GROUP BY ORDER " +
    "INSERT UPDATE DELETE CREATE TABLE JOIN LEFT ON AND OR NOT NULL AS WITH LIMIT").split(" "),
);

const TOKEN = /(\/\/[^\n]*|\/\*[\s\S]*?\*\/|(?:^|(?<=\s))#[^\n]*|--\s[^\n]*)|("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)|(\b\d[\w.]*\b)|([A-Za-z_]\w*)/g;

/** Languages that are prose, or that have other rules. */
const PLAIN = new Set(["text", "txt", "md", "markdown", "plain", "plaintext", "console", "output", "log", "html", "xml", "diff"]);

/** Returns code with comments, strings, numbers and words of the language in elements of their own. */
export function highlight(text: string, language?: string): ComponentChildren {
  const name = language?.toLowerCase().split(/\s/)[0];
  if (name === "diff" || name === "patch") return diffLines(text);
  if (text.length > MAX_CHARS || !name || PLAIN.has(name)) return text;
  const parts: ComponentChildren[] = [];
  let end = 0;
  for (const found of text.matchAll(TOKEN)) {
    const [whole, comment, string, number, word] = found;
    const kind = comment ? "c" : string ? "s" : number ? "n" : word && WORDS.has(word) ? "k" : undefined;
    if (!kind) continue;
    if (found.index > end) parts.push(text.slice(end, found.index));
    parts.push(<span class={`t-${kind}`}>{whole}</span>);
    end = found.index + whole.length;
  }
  parts.push(text.slice(end));
  return parts;
}

const diffLines = (text: string) =>
  text.split("\n").map((line, at) => {
    const kind = line.startsWith("+") ? "add" : line.startsWith("-") ? "del" : line.startsWith("@@") ? "at" : "";
    return <span key={at} class={kind && `d-${kind}`}>{line}{"\n"}</span>;
  });

const LANGUAGES: Record<string, string> = {
  rs: "rust", ts: "ts", tsx: "tsx", js: "js", jsx: "jsx", py: "python", go: "go", sh: "sh", bash: "sh", zsh: "sh", rb: "ruby",
  java: "java", kt: "kotlin", c: "c", h: "c", cpp: "cpp", cc: "cpp", cs: "csharp", sql: "sql", json: "json", toml: "toml",
  yaml: "yaml", yml: "yaml", css: "css", swift: "swift", php: "php", lua: "lua",
};

/** Returns the language of a file by its name. */
export function languageOf(path: string | undefined): string | undefined {
  const extension = path?.split(".").pop()?.toLowerCase();
  return extension ? LANGUAGES[extension] : undefined;
}
