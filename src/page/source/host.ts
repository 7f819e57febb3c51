// The client of MCP in whose frame the page is shown, as the extension MCP Apps describes it
// (protocol 2026-01-26): JSON-RPC in messages between the two windows.

/** Maximum height that the page asks for, in pixels. Longer views scroll inside. */
const MAX_HEIGHT = 640;

/** Variables of the client's theme, and the variables of the page that take their values. */
const THEME: [string, string][] = [
  ["--color-background-primary", "--page"],
  ["--color-background-secondary", "--card"],
  ["--color-background-tertiary", "--sunk"],
  ["--color-text-primary", "--ink"],
  ["--color-text-secondary", "--dim"],
  ["--color-border-primary", "--line"],
  ["--font-sans", "--sans"],
  ["--font-mono", "--mono"],
];

interface Message {
  jsonrpc: "2.0";
  id?: number | string;
  method?: string;
  params?: any;
  result?: any;
  error?: { code: number; message: string };
}

/** The call whose result the page shows. */
export interface ShownCall {
  arguments: Record<string, any>;
  /** The envelope of the answer; `undefined` if the client passes text only. */
  answer?: any;
}

const waiting = new Map<number | string, { resolve: (result: any) => void; reject: (error: Error) => void }>();
let lastId = 0;

function post(message: Omit<Message, "jsonrpc">) {
  parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
}

/** Sends a request to the client, and waits for its result. */
export function request(method: string, params: object): Promise<any> {
  const id = ++lastId;
  post({ id, method, params });
  return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
}

/** Calls a tool of the server through the client. Returns the envelope. */
export async function callThroughHost(name: string, args: object): Promise<any> {
  const result = await request("tools/call", { name, arguments: args });
  const text = result.content?.find((block: any) => block.type === "text")?.text;
  return result.structuredContent ?? JSON.parse(text);
}

/** Opens an address of the web in the reader's browser, if the client allows it. */
export function openLink(url: string) {
  void request("ui/open-link", { url }).catch(() => undefined);
}

function applyContext(context: any) {
  const { style } = document.documentElement;
  if (context?.theme) style.colorScheme = context.theme;
  for (const [theirs, ours] of THEME) {
    const value = context?.styles?.variables?.[theirs];
    if (value) style.setProperty(ours, value);
  }
}

function askForHeight(context: any) {
  const size = context?.containerDimensions ?? {};
  if (size.height !== undefined) return;
  post({ method: "ui/notifications/size-changed", params: { height: Math.min(size.maxHeight ?? MAX_HEIGHT, MAX_HEIGHT) } });
}

function answerRequest(message: Message) {
  const isKnown = message.method === "ping" || message.method === "ui/resource-teardown";
  if (isKnown) post({ id: message.id, result: {} });
  else post({ id: message.id, error: { code: -32601, message: `no method ${message.method}` } });
}

/** Connects to the client. Returns the call that the page is to show. */
export async function connect(): Promise<ShownCall> {
  let args: Record<string, any> = {};
  const shown = new Promise<ShownCall>((resolve) => {
    addEventListener("message", ({ source, data }: MessageEvent<Message>) => {
      if (source !== parent || data?.jsonrpc !== "2.0") return;
      const { id, method, params } = data;
      if (method === "ui/notifications/tool-input") args = params?.arguments ?? {};
      else if (method === "ui/notifications/tool-result") resolve({ arguments: args, answer: params?.structuredContent });
      else if (method === "ui/notifications/tool-cancelled") resolve({ arguments: args });
      else if (method === "ui/notifications/host-context-changed") applyContext(params);
      else if (method !== undefined && id !== undefined) answerRequest(data);
      else if (id !== undefined) {
        const call = waiting.get(id);
        waiting.delete(id);
        if (data.error) call?.reject(new Error(data.error.message));
        else call?.resolve(data.result);
      }
    });
  });
  const { hostContext } = await request("ui/initialize", {
    protocolVersion: "2026-01-26",
    appInfo: { name: "sessions", version: "1" },
    appCapabilities: {},
  });
  applyContext(hostContext);
  post({ method: "ui/notifications/initialized", params: {} });
  askForHeight(hostContext);
  return shown;
}
