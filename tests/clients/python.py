#!/usr/bin/env python3
"""Calls every tool with every documented argument through the official Python client of MCP, over
stdio and HTTP, in both eras of the protocol.

    pip install -r tests/clients/requirements.txt
    python3 tests/clients/python.py SESSIONS

SESSIONS  the binary of this project (give it LD_LIBRARY_PATH if it needs that for libduckdb)

The calls lie in calls.json, which typescript/client.mjs reads too. Exit code 1 when something is
not as it says there or could not be run.
"""

import asyncio
import json
import sys

import httpx2
import jsonschema
import mcp_types
import place
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

TABLE = json.loads((place.HERE / "calls.json").read_text())
# How the client begins, and the version it must end up with.
MODES = {"legacy": "2025-11-25", "2026-07-28": "2026-07-28", "auto": "2026-07-28"}
KINDS = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer"}


def documented(schema, at=""):
    """The arguments that a schema names, at any depth; one that takes several types once a type."""
    if "$ref" in schema:
        raise ValueError(f"{at}: references are not followed here")
    for name, inner in schema.get("properties", {}).items():
        path = f"{at}.{name}"
        kinds = inner.get("type")
        yield from [f"{path} as {kind}" for kind in kinds] if isinstance(kinds, list) else [path]
        yield from documented(inner, path)
        yield from documented(inner.get("items", {}), path)


def used(value, at=""):
    """The arguments that a call uses, in the same words."""
    if isinstance(value, list):
        for item in value:
            yield from used(item, at)
    elif isinstance(value, dict):
        for name, inner in value.items():
            path = f"{at}.{name}"
            yield from (path, f"{path} as {KINDS[type(inner)]}")
            yield from used(inner, path)


def at(answer, path):
    """What stands at a path such as `data.events.0.text.length`; None where there is nothing."""
    for part in path.split("."):
        if part == "length" and isinstance(answer, (list, str)):
            answer = len(answer)
        elif isinstance(answer, list):
            answer = answer[int(part)] if int(part) < len(answer) else None
        else:
            answer = answer.get(part) if isinstance(answer, dict) else None
    return answer


class Check:
    """One connection; collects what is not as the table says."""

    def __init__(self, label):
        self.label = label
        self.done = 0
        self.failures = []

    def that(self, holds, what):
        self.done += 1
        if not holds:
            self.failures.append(what)
            print(f"FAILED {self.label}: {what}")

    async def all(self, client):
        # The client checks structured content against the schemas of the tools that it has listed.
        self.tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        self.coverage()
        for call in TABLE["calls"]:
            await self.call(client, call)
        for refusal in TABLE["refused"]:
            await self.refusal(client, refusal)
        await self.prompts(client)
        await self.resources(client)
        for row in TABLE["completions"]:
            kind = mcp_types.PromptReference if "name" in row["ref"] else mcp_types.ResourceTemplateReference
            result = await client.complete(kind(**row["ref"]), row["argument"])
            self.that(result.completion.values == row["values"], f"{row}: {result.completion.values}")

    def coverage(self):
        """Every tool and every argument occurs in the table, so that it cannot go stale."""
        for name, tool in self.tools.items():
            calls = [call for call in TABLE["calls"] if call["tool"] == name]
            told = {word for call in calls for word in used(call["arguments"])}
            told.update(".cursor" for call in calls if "next" in call)
            missing = sorted(set(documented(tool.input_schema)) - told)
            self.that(calls and not missing, f"calls.json never calls {name} with {missing}")

    async def call(self, client, call):
        name, arguments = call["tool"], call["arguments"]
        answer = await self.answer(client, name, arguments, call["expect"])
        if "next" in call:
            cursor = at(answer, "pagination.next_cursor")
            await self.answer(client, name, {**arguments, "cursor": cursor}, call["next"])

    async def answer(self, client, name, arguments, expect):
        what, tool = f"{name} {json.dumps(arguments)}", self.tools[name]
        jsonschema.validate(arguments, tool.input_schema)
        result = await client.call_tool(name, arguments)
        answer = result.structured_content
        self.that(not result.is_error and answer is not None, f"{what}: {result}")
        if answer is None:
            return None
        errors = list(jsonschema.Draft202012Validator(tool.output_schema).iter_errors(answer))
        self.that(not errors, f"{what}: {errors}")
        texts = [json.loads(block.text) for block in result.content]
        self.that(texts == [answer], f"{what}: the text says something else")
        for path, want in {"status": "ok", **expect}.items():
            self.that(at(answer, path) == want, f"{what}: {path} is {at(answer, path)!r}, not {want!r}")
        return answer

    async def refusal(self, client, row):
        name, arguments = row["tool"], row["arguments"]
        if "cursor_of" in row:
            page = (await client.call_tool(name, row["cursor_of"])).structured_content
            arguments = {**arguments, "cursor": page["pagination"]["next_cursor"]}
        try:
            result = await client.call_tool(name, arguments)
        except MCPError as error:
            got, said = error.code, error.message
        else:
            self.that(result.is_error and result.structured_content is None, f"{row}: {result}")
            error = json.loads(result.content[0].text).get("error", {})
            got, said = error.get("code"), error.get("message", "")
        want = row.get("code", row.get("protocol"))
        self.that(got == want and row["says"] in said, f"{row}: {got}: {said}")

    async def prompts(self, client):
        for prompt in (await client.list_prompts()).prompts:
            arguments = TABLE["prompts"].get(prompt.name, {})
            missing = {argument.name for argument in prompt.arguments} - arguments.keys()
            self.that(arguments and not missing, f"calls.json never gets {prompt.name} with {missing}")
            text = (await client.get_prompt(prompt.name, arguments)).messages[0].content.text
            self.that(all(value in text for value in arguments.values()), f"{prompt.name}: {text}")

    async def resources(self, client):
        listed = [str(resource.uri) for resource in (await client.list_resources()).resources]
        templates = (await client.list_resource_templates()).resource_templates
        listed += [template.uri_template.partition("{")[0] for template in templates]
        for begin in listed:
            read = [uri for uri in TABLE["resources"] if uri.startswith(begin)]
            self.that(read, f"calls.json never reads {begin}")
        for uri, word in TABLE["resources"].items():
            text = (await client.read_resource(uri)).contents[0].text
            self.that(word in text, f"{uri}: {text[:200]}")


async def connection(label, transport, mode):
    check = Check(f"{label} {mode}")
    async with Client(transport, mode=mode, read_timeout_seconds=60) as client:
        check.that(client.protocol_version == MODES[mode], f"speaks {client.protocol_version}")
        await check.all(client)
    print(f"{check.label}: {check.done - len(check.failures)} of {check.done} as expected")
    return len(check.failures)


def causes(error):
    """What an exception says, those that it groups included."""
    yield str(error)
    for inner in getattr(error, "exceptions", ()):
        yield from causes(inner)


async def without_a_token(address):
    """The number of modes in which a client without a token is not refused as it should be."""
    failures = 0
    for mode in MODES:
        said = ["it is let in"]
        try:
            async with Client(address, mode=mode) as client:
                await client.list_tools()
        except Exception as error:  # The client wraps its errors in groups.
            said = list(causes(error))
        right = "a bearer token is needed" in said
        failures += not right
        print(f"{'' if right else 'FAILED '}HTTP without the token {mode}: {said[-1]}")
    return failures


async def check(binary):
    failures = 0
    with place.samples(binary) as here:
        server = StdioServerParameters(
            command=here.binary, args=["mcp", "--allow-labels"], env=here.environment, cwd=here.folder
        )
        for mode in MODES:
            failures += await connection("stdio", stdio_client(server), mode)
        with here.http("--allow-labels", "--no-auth") as address:
            for mode in MODES:
                failures += await connection("HTTP", streamable_http_client(address), mode)
        with here.http("--allow-labels") as address:
            failures += await without_a_token(address)
            for mode in MODES:
                async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {here.token()}"}) as http:
                    transport = streamable_http_client(address, http_client=http)
                    failures += await connection("HTTP with a token", transport, mode)
    return failures


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print(__doc__)
        sys.exit(2)
    sys.exit(1 if asyncio.run(check(sys.argv[1])) else 0)
