// Markdown as elements. No text becomes markup: HTML in a log is shown as the text that it is.

import type { ComponentChildren, VNode } from "preact";
import { Lexer, type Token, type Tokens } from "marked";
import { useMemo } from "preact/hooks";
import { highlight } from "./code";
import { CopyButton } from "./parts";

/** Texts that are longer are shown without formatting. */
const MAX_CHARS = 200_000;

const named: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', nbsp: "\u00a0", "#39": "'" };

/** Returns the text of an entity in plain text of Markdown. */
const decode = (text: string) => text.replace(/&(#?\w+);/g, (whole, name) => named[name] ?? whole);

/** A link shows where it leads, unless its text says so. Only addresses of the web can be followed. */
function Link({ href, children, text }: { href: string; text: string; children: ComponentChildren }) {
  let address: URL | undefined;
  try {
    address = new URL(href);
  } catch {
    // A path of the reader's machine, or of a repository.
  }
  if (!address || !/^https?:$/.test(address.protocol) || address.username || address.password) {
    return <span class="link-text">{children}{text === href ? "" : <span class="target"> ({href})</span>}</span>;
  }
  const isSaid = text.trim() === href || text.trim() === address.href;
  return (
    <span>
      <a href={address.href} target="_blank" rel="noopener noreferrer nofollow">{children}</a>
      {isSaid ? "" : <span class="target"> ({address.host})</span>}
    </span>
  );
}

function inline(tokens: Token[] | undefined): ComponentChildren[] {
  return (tokens ?? []).map((token, at) => {
    const key = at;
    switch (token.type) {
      case "strong": return <strong key={key}>{inline(token.tokens)}</strong>;
      case "em": return <em key={key}>{inline(token.tokens)}</em>;
      case "del": return <del key={key}>{inline(token.tokens)}</del>;
      case "codespan": return <code key={key}>{(token as Tokens.Codespan).text}</code>;
      case "br": return <br key={key} />;
      case "link": {
        const link = token as Tokens.Link;
        return <Link key={key} href={link.href} text={link.text}>{inline(link.tokens)}</Link>;
      }
      case "image": {
        // Nothing is loaded: an image of the web is a link.
        const image = token as Tokens.Image;
        return <Link key={key} href={image.href} text={image.text}>{image.text || "image"}</Link>;
      }
      case "text":
      case "escape":
        return "tokens" in token && token.tokens ? inline(token.tokens) : decode((token as Tokens.Text).text);
      default:
        return token.raw;
    }
  });
}

function Block({ token }: { token: Token }): VNode | null {
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading": {
      // The page has its own headings above these.
      const level = Math.min((token as Tokens.Heading).depth + 3, 6);
      return <p class={`md-h md-h${level}`}>{inline(token.tokens)}</p>;
    }
    case "code": {
      const code = token as Tokens.Code;
      return <Code text={code.text} language={code.lang} />;
    }
    case "blockquote": return <blockquote>{blocks(token.tokens ?? [])}</blockquote>;
    case "hr": return <hr />;
    case "list": {
      const list = token as Tokens.List;
      const items = list.items.map((item, at) => (
        <li key={at} class={item.task ? "task" : ""}>
          {item.task && <span class="box" role="img" aria-label={item.checked ? "done" : "open"}>{item.checked ? "☑" : "☐"} </span>}
          {blocks(item.tokens)}
        </li>
      ));
      return list.ordered ? <ol start={Number(list.start) || 1}>{items}</ol> : <ul>{items}</ul>;
    }
    case "table": {
      const table = token as Tokens.Table;
      return (
        <div class="scroll" tabIndex={0}>
          <table>
            <thead><tr>{table.header.map((cell, at) => <th key={at}>{inline(cell.tokens)}</th>)}</tr></thead>
            <tbody>{table.rows.map((row, at) => <tr key={at}>{row.map((cell, to) => <td key={to}>{inline(cell.tokens)}</td>)}</tr>)}</tbody>
          </table>
        </div>
      );
    }
    case "paragraph": return <p>{inline(token.tokens)}</p>;
    case "checkbox": return null;
    case "text": {
      const text = token as Tokens.Text;
      return <span>{text.tokens ? inline(text.tokens) : decode(text.text)}</span>;
    }
    default:
      // HTML among them.
      return <p class="raw">{token.raw}</p>;
  }
}

const blocks = (tokens: Token[]) => tokens.map((token, at) => <Block key={at} token={token} />);

/** Returns the words of a line of Markdown, for a place where formatting would be in the way. */
export function plainText(text: string): string {
  try {
    return words(Lexer.lexInline(text));
  } catch {
    return text;
  }
}

const words = (tokens: Token[]): string =>
  tokens.map((token) => ("tokens" in token && token.tokens ? words(token.tokens) : decode("text" in token ? token.text : token.raw))).join("");

/** Shows a text as Markdown. */
export function Markdown({ text }: { text: string }) {
  return useMemo(() => render(text), [text]);
}

function render(text: string): VNode {
  if (text.length > MAX_CHARS) return <pre class="plain">{text}</pre>;
  let tokens: Token[];
  try {
    tokens = new Lexer({ gfm: true, breaks: true }).lex(text);
  } catch {
    return <pre class="plain">{text}</pre>;
  }
  return <div class="markdown">{blocks(tokens)}</div>;
}

/** Shows code with its language. */
function Code({ text, language }: { text: string; language?: string }) {
  return (
    <div class="copyable">
      <pre class="code" tabIndex={0} data-language={language?.split(/\s/)[0] || undefined}>
        <code>{highlight(text, language)}</code>
      </pre>
      <CopyButton text={text} title="Copy the code" />
    </div>
  );
}
