#!/usr/bin/env python3
"""Runs real agents headless against a scripted model: Claude Code, Codex, Gemini CLI and OpenCode, each in
an empty home, with the server registered by `sessions setup --write`. The model asks for a search and for
the events found; the tool results in its next requests must be what the tools answer. The schemas that each
client sends to its model are compared with tests/golden/clients.

    npm install --prefix DIR @anthropic-ai/claude-code @openai/codex @google/gemini-cli opencode-ai
    python3 tests/clients/agents.py SESSIONS DIR/node_modules/.bin [CLIENT]...

SESSIONS  the binary of this project (give it LD_LIBRARY_PATH if it needs that for libduckdb)

Nothing leaves this machine. UPDATE_GOLDEN=1 writes the golden files. Exit code 1 when something is wrong.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import place
import scripted_model

GOLDEN = place.HERE.parent / "golden" / "clients"
SEARCH = {"query": "budget", "limit": 3}
PROMPT = "Find what was said about the budget."
TIMEOUT_SECONDS = 120
# Values that differ from one call to the next.
CHANGING = ["cached", "duration_ms", "index_last_updated", "timestamp", "tokens"]


def details(event_ids):
    return {"event_ids": event_ids}


class Agent:
    """A client: its command, its settings, and how it is pointed at the model."""

    name = ""

    def prepare(self, home, address):
        """Writes settings; returns environment variables."""
        return {}

    def command(self, programs):
        raise NotImplementedError


class Claude(Agent):
    name = "claude"

    def prepare(self, home, address):
        return {
            "ANTHROPIC_BASE_URL": address,
            "ANTHROPIC_API_KEY": "scripted",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }

    def command(self, programs):
        tools = "mcp__sessions__search_events,mcp__sessions__get_event_details"
        return [programs / "claude", "--print", PROMPT, "--allowedTools", tools]


class Codex(Agent):
    name = "codex"

    def prepare(self, home, address):
        settings = home / ".codex" / "config.toml"
        settings.parent.mkdir(parents=True, exist_ok=True)
        # `setup` keeps what is there.
        settings.write_text(
            'model = "scripted"\nmodel_provider = "scripted"\n\n[model_providers.scripted]\nname = "scripted"\n'
            f'base_url = "{address}/v1"\nwire_api = "responses"\n'
        )
        return {}

    def command(self, programs):
        flags = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
        return [programs / "codex", "exec", *flags, PROMPT]


class Gemini(Agent):
    name = "gemini"

    def prepare(self, home, address):
        settings = home / ".gemini" / "settings.json"
        settings.parent.mkdir(parents=True, exist_ok=True)
        value = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False}}
        settings.write_text(json.dumps(value))
        return {
            "GEMINI_API_KEY": "scripted",
            "GOOGLE_GEMINI_BASE_URL": address,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        }

    def command(self, programs):
        return [programs / "gemini", "--model", "gemini-2.5-pro", "--approval-mode", "yolo", "--prompt", PROMPT]


class OpenCode(Agent):
    name = "opencode"

    def prepare(self, home, address):
        settings = home / ".config" / "opencode" / "opencode.json"
        settings.parent.mkdir(parents=True, exist_ok=True)
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{address}/v1", "apiKey": "scripted"},
            "models": {"scripted": {"tool_call": True, "limit": {"context": 200000, "output": 8000}}},
        }
        settings.write_text(json.dumps({"provider": {"scripted": provider}, "autoupdate": False, "share": "disabled"}))
        return {"OPENCODE_DISABLE_MODELS_FETCH": "1"}

    def command(self, programs):
        return [programs / "opencode", "run", "--model", "scripted/scripted", PROMPT]


AGENTS = [Claude(), Codex(), Gemini(), OpenCode()]


def call_tools(site, calls):
    """The answers of the tools to calls, straight from the server."""
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "agents", "version": "1"}}
    lines = [{"id": 0, "method": "initialize", "params": client}, {"method": "notifications/initialized"}]
    for number, (name, arguments) in enumerate(calls, 1):
        lines.append({"id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}})
    text = "".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines)
    done = subprocess.run(
        [site.binary, "mcp"], input=text, env=site.environment, cwd=site.folder, capture_output=True, text=True
    )
    answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines()) if "id" in answer}
    contents = [answers[number]["result"]["content"] for number in range(1, len(calls) + 1)]
    return [scripted_model.read_answer(scripted_model.joined_text(content)) for content in contents]


def fixed(answer):
    """An answer without what changes from one call to the next."""
    metadata = {name: value for name, value in answer["metadata"].items() if name not in CHANGING}
    # The log of the agent itself may grow while it asks.
    lasting = [warning for warning in answer.get("warnings", []) if warning["code"] != "INDEX_STALE"]
    return {**answer, "metadata": metadata, "warnings": lasting}


def run_agent(agent, programs, register, conversation):
    """Runs an agent in an empty home, after `register(home, environment)`, with a model that leads the
    conversation. Returns what is wrong."""
    with tempfile.TemporaryDirectory(prefix="home-") as folder, scripted_model.serve(conversation) as address:
        home = pathlib.Path(folder)
        work = home / "work"
        work.mkdir()
        # The session of the agent itself stays out of the answers.
        (work / ".sessionsignore").touch()
        path = os.pathsep.join([str(programs), os.environ["PATH"]])
        kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
        environment = {**kept, "PATH": path, "HOME": str(home), "LANG": "C.UTF-8", "NO_COLOR": "1"}
        environment |= agent.prepare(home, address)
        register(home, environment)
        started = time.monotonic()
        try:
            done = run(agent.command(programs), environment, work)
            said, code = done.stdout + done.stderr, done.returncode
        except subprocess.TimeoutExpired as late:
            said, code = f"{late.stdout}{late.stderr}", "no end"
        seconds = time.monotonic() - started

    if code != 0 or scripted_model.FINAL_TEXT not in said:
        what = f"ended with {code} after {seconds:.1f} s, {len(conversation.requests)} requests: {said[-2000:]}"
        return [what]
    print(f"{agent.name}: {len(conversation.requests)} requests in {seconds:.1f} s", flush=True)
    return []


def check_results(site, conversation):
    """Compares the tool results that arrived at the model with the answers of the tools; yields what is wrong."""
    if len(conversation.results) != 2:
        yield f"{len(conversation.results)} tool results arrived"
        return
    found = scripted_model.read_answer(conversation.results[0])
    if found["status"] != "ok":
        yield f"the search failed: {conversation.results[0]}"
        return
    event_ids = [match["event_id"] for match in found["data"]["matches"]]
    calls = [("search_events", SEARCH), ("get_event_details", details(event_ids))]
    for (name, _), result, wanted in zip(calls, conversation.results, call_tools(site, calls)):
        if fixed(scripted_model.read_answer(result)) != fixed(wanted):
            yield f"the result of {name} in the request is not the answer of the tool: {result[:500]}"


def run(command, environment, folder):
    """Runs a program without input."""
    return subprocess.run(
        command,
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
    )


def check(agent, site, programs):
    """Runs an agent with the server registered by `sessions setup`; yields what is wrong."""

    def register(home, environment):
        command = [site.binary, "--store", str(site.store), "setup", agent.name, "--write"]
        subprocess.run(command, env=environment, cwd=home, check=True, capture_output=True)

    conversation = scripted_model.Conversation(SEARCH, details)
    yield from run_agent(agent, programs, register, conversation)
    yield from check_results(site, conversation)
    if conversation.tools:
        yield from compare_schemas(agent, conversation.tools)


def compare_schemas(agent, tools):
    """Compares the schemas of our tools, as the client sends them, with the golden file."""
    ours = {name.replace("\0", "/"): schema for name, schema in sorted(tools.items()) if "sessions" in name}
    text = json.dumps(ours, indent=1, sort_keys=True) + "\n"
    file = GOLDEN / f"{agent.name}.json"
    if os.environ.get("UPDATE_GOLDEN"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    elif not file.exists() or file.read_text() != text:
        yield f"{file} is out of date: UPDATE_GOLDEN=1 writes it"


if __name__ == "__main__":
    sys.exit(place.main(__doc__, AGENTS, check, lambda agent: agent.name))
