// Calls every tool with every documented argument through the TypeScript v1 SDK of MCP, over stdio
// and HTTP.
//
//     npm ci --prefix tests/clients/typescript
//     tests/clients/typescript/node_modules/.bin/node tests/clients/typescript/client.mjs SESSIONS
//
// SESSIONS  the binary of this project (give it LD_LIBRARY_PATH if it needs that for libduckdb)
//
// The calls lie in ../calls.json, which ../python.py reads too. Exit code 1 when something is not
// as it says there or could not be run.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { isDeepStrictEqual } from 'node:util';

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { McpError } from '@modelcontextprotocol/sdk/types.js';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv';

const HERE = import.meta.dirname;
const TABLE = JSON.parse(readFileSync(join(HERE, '../calls.json'), 'utf8'));
const SAMPLES = join(HERE, '../../../sample-sessions');

/** The arguments that a schema names, at any depth; one that takes several types once a type. */
function* documented(schema, at = '') {
  if (schema.$ref) throw new Error(`${at}: references are not followed here`);
  for (const [name, inner] of Object.entries(schema.properties ?? {})) {
    const path = `${at}.${name}`;
    if (Array.isArray(inner.type)) yield* inner.type.map((type) => `${path} as ${type}`);
    else yield path;
    yield* documented(inner, path);
    yield* documented(inner.items ?? {}, path);
  }
}

/** The arguments that a call uses, in the same words. */
function* used(value, at = '') {
  if (Array.isArray(value)) {
    for (const item of value) yield* used(item, at);
  } else if (typeof value === 'object') {
    for (const [name, inner] of Object.entries(value)) {
      const path = `${at}.${name}`;
      yield* [path, `${path} as ${Array.isArray(inner) ? 'array' : typeof inner}`];
      yield* used(inner, path);
    }
  }
}

/** What stands at a path such as `data.events.0.text.length`; null where there is nothing. */
const at = (answer, path) => path.split('.').reduce((value, part) => value?.[part], answer) ?? null;

/** One connection; counts what is not as the table says. */
class Check {
  done = 0;
  failed = 0;

  constructor(label, client) {
    this.label = label;
    this.client = client;
  }

  that(holds, what) {
    this.done += 1;
    if (holds) return;
    this.failed += 1;
    console.log(`FAILED ${this.label}: ${what}`);
  }

  async all() {
    const { client } = this;
    // The client checks structured content against the schemas of the tools that it has listed.
    this.tools = new Map((await client.listTools()).tools.map((tool) => [tool.name, tool]));
    this.coverage();
    for (const row of TABLE.calls) await this.call(row);
    for (const row of TABLE.refused) await this.refusal(row);
    await this.prompts();
    await this.resources();
    for (const { values, ...params } of TABLE.completions) {
      const { completion } = await client.complete(params);
      this.that(isDeepStrictEqual(completion.values, values), `${JSON.stringify(params)}: ${completion.values}`);
    }
  }

  /** Every tool and every argument occurs in the table, so that it cannot go stale. */
  coverage() {
    for (const [name, tool] of this.tools) {
      const calls = TABLE.calls.filter((call) => call.tool === name);
      const told = new Set(calls.flatMap((call) => [...used(call.arguments), ...(call.next ? ['.cursor'] : [])]));
      const missing = [...documented(tool.inputSchema)].filter((word) => !told.has(word));
      this.that(calls.length && !missing.length, `calls.json never calls ${name} with ${missing}`);
    }
  }

  async call(row) {
    const answer = await this.answer(row.tool, row.arguments, row.expect);
    if (!row.next) return;
    const cursor = at(answer, 'pagination.next_cursor');
    await this.answer(row.tool, { ...row.arguments, cursor }, row.next);
  }

  async answer(name, args, expect) {
    const [what, tool] = [`${name} ${JSON.stringify(args)}`, this.tools.get(name)];
    const valid = (schema, value) => new AjvJsonSchemaValidator().getValidator(schema)(value);
    this.that(valid(tool.inputSchema, args).valid, `${what}: not as the input schema says`);
    const result = await this.client.callTool({ name, arguments: args });
    const answer = result.structuredContent;
    this.that(!result.isError && answer, `${what}: ${JSON.stringify(result)}`);
    if (!answer) return null;
    this.that(valid(tool.outputSchema, answer).valid, `${what}: not as the output schema says`);
    this.that(!valid(tool.outputSchema, { ...answer, data: undefined }).valid, `${name}: the schema takes anything`);
    const texts = result.content.map((block) => JSON.parse(block.text));
    this.that(isDeepStrictEqual(texts, [answer]), `${what}: the text says something else`);
    for (const [path, want] of Object.entries({ status: 'ok', ...expect })) {
      const got = at(answer, path);
      const told = `${path} is ${JSON.stringify(got)}, not ${JSON.stringify(want)}`;
      this.that(isDeepStrictEqual(got, want), `${what}: ${told}`);
    }
    return answer;
  }

  async refusal(row) {
    const args = { ...row.arguments };
    if (row.cursor_of) {
      const page = await this.client.callTool({ name: row.tool, arguments: row.cursor_of });
      args.cursor = page.structuredContent.pagination.next_cursor;
    }
    let error;
    try {
      const result = await this.client.callTool({ name: row.tool, arguments: args });
      this.that(result.isError && !result.structuredContent, `${JSON.stringify(row)}: ${JSON.stringify(result)}`);
      ({ error } = JSON.parse(result.content[0].text));
    } catch (thrown) {
      if (!(thrown instanceof McpError)) throw thrown;
      error = thrown;
    }
    const right = error?.code === (row.code ?? row.protocol) && error.message.includes(row.says);
    this.that(right, `${JSON.stringify(row)}: ${error?.code}: ${error?.message}`);
  }

  async prompts() {
    for (const { name, arguments: named } of (await this.client.listPrompts()).prompts) {
      const args = TABLE.prompts[name];
      const missing = named.map((argument) => argument.name).filter((argument) => !args?.[argument]);
      this.that(!missing.length, `calls.json never gets ${name} with ${missing}`);
      const { text } = (await this.client.getPrompt({ name, arguments: args })).messages[0].content;
      this.that(Object.values(args ?? {}).every((value) => text.includes(value)), `${name}: ${text}`);
    }
  }

  async resources() {
    const { resources } = await this.client.listResources();
    const { resourceTemplates } = await this.client.listResourceTemplates();
    const templates = resourceTemplates.map(({ uriTemplate }) => uriTemplate.split('{')[0]);
    for (const begin of [...resources.map(({ uri }) => uri), ...templates]) {
      this.that(Object.keys(TABLE.resources).some((uri) => uri.startsWith(begin)), `calls.json never reads ${begin}`);
    }
    for (const [uri, word] of Object.entries(TABLE.resources)) {
      const { text } = (await this.client.readResource({ uri })).contents[0];
      this.that(text.includes(word), `${uri}: ${text.slice(0, 200)}`);
    }
  }
}

/** Runs all checks over one transport; the number of failures. */
async function connection(label, transport) {
  const client = new Client({ name: 'sessions-tests', version: '1' });
  await client.connect(transport);
  const check = new Check(label, client);
  await check.all();
  await client.close();
  console.log(`${label}: ${check.done - check.failed} of ${check.done} as expected`);
  return check.failed;
}

/** Runs `body` with the address of a server over HTTP. */
async function http(binary, place, flags, body) {
  const server = spawn(binary, ['mcp', '--allow-labels', '--http', '127.0.0.1:0', ...flags], {
    ...place,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  try {
    // It says where it listens once it does.
    const [said] = await once(createInterface(server.stderr), 'line');
    return await body(new URL(said.match(/http:\/\/[\w.:/]+/)[0]));
  } finally {
    server.kill();
    await once(server, 'exit');
  }
}

async function check(binary) {
  const cwd = mkdtempSync(join(tmpdir(), 'sessions-'));
  try {
    // Nothing of the person who runs this: neither their logs nor their store.
    const env = { PATH: process.env.PATH, HOME: cwd, SESSIONS_STORE: join(cwd, 'store') };
    for (const name of ['DATA', 'CONFIG', 'CACHE', 'STATE']) env[`XDG_${name}_HOME`] = join(cwd, name.toLowerCase());
    if (process.env.LD_LIBRARY_PATH) env.LD_LIBRARY_PATH = process.env.LD_LIBRARY_PATH;
    const place = { cwd, env };
    const { status } = spawnSync(binary, ['ingest', '--quiet', SAMPLES], { ...place, stdio: 'inherit' });
    if (status !== 0) throw new Error(`ingest ended with ${status}`);

    let failed = 0;
    const command = { command: binary, args: ['mcp', '--allow-labels'], ...place };
    failed += await connection('stdio', new StdioClientTransport(command));
    await http(binary, place, ['--no-auth'], async (url) => {
      failed += await connection('HTTP', new StreamableHTTPClientTransport(url));
    });
    await http(binary, place, [], async (url) => {
      const token = readFileSync(join(cwd, 'store/http-token'), 'utf8').trim();
      const requestInit = { headers: { Authorization: `Bearer ${token}` } };
      failed += await connection('HTTP with a token', new StreamableHTTPClientTransport(url, { requestInit }));
      const refused = await connection('HTTP without the token', new StreamableHTTPClientTransport(url)).catch(String);
      const right = String(refused).includes('a bearer token is needed');
      console.log(`${right ? '' : 'FAILED '}HTTP without the token: ${refused}`);
      failed += right ? 0 : 1;
    });
    return failed;
  } finally {
    rmSync(cwd, { recursive: true });
  }
}

if (process.argv.length !== 3) {
  console.error('usage: node client.mjs SESSIONS');
  process.exit(2);
}
process.exit((await check(resolve(process.argv[2]))) ? 1 : 0);
