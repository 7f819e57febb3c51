#!/usr/bin/env python3
"""Gives the plugins of `sessions plugin build` to the validators of Claude Code, Codex and Gemini CLI, installs
each in an empty home, and runs the client headless against a scripted model; OpenCode gets its package. The
reader agents of Claude Code and Gemini CLI must be offered the tools that read, and nothing else.

    npm install --prefix DIR @anthropic-ai/claude-code @openai/codex @google/gemini-cli opencode-ai
    python3 tests/clients/plugins.py SESSIONS DIR/node_modules/.bin [CLIENT]...

SESSIONS  the binary of this project (give it LD_LIBRARY_PATH if it needs that for libduckdb)

Nothing leaves this machine. Exit code 1 when something is wrong.
"""

import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import agents
import place
import scripted_model

CLAUDE_PREFIX = "mcp__plugin_sessions_sessions__"
GEMINI_PREFIX = "mcp_sessions_"


class Plugin:
    # False if the client does not pass SESSIONS_STORE on: the store is then in its usual place.
    has_variables = True


class ClaudePlugin(Plugin, agents.Claude):
    def command(self, programs):
        tools = f"{CLAUDE_PREFIX}search_events,{CLAUDE_PREFIX}get_event_details"
        return [programs / "claude", "--print", agents.PROMPT, "--allowedTools", tools]

    def steps(self, plugins):
        yield "claude", "plugin", "validate", "--strict", plugins
        yield "claude", "plugin", "validate", "--strict", plugins / "claude"
        yield "claude", "plugin", "marketplace", "add", plugins
        yield "claude", "plugin", "install", "sessions@sessions"


class ClaudeReader(ClaudePlugin):
    """Claude Code as the reader agent."""

    def command(self, programs):
        return [*super().command(programs), "--agent", "sessions:history-reader"]

    def steps(self, plugins):
        yield "claude", "plugin", "marketplace", "add", plugins
        yield "claude", "plugin", "install", "sessions@sessions"


class CodexPlugin(Plugin, agents.Codex):
    def steps(self, plugins):
        yield "codex", "plugin", "marketplace", "add", plugins
        yield "codex", "plugin", "add", "sessions@sessions"


class CodexPortable(CodexPlugin):
    """Codex with the portable package, which its marketplace names instead of its own. The format has no
    variables of the environment."""

    has_variables = False

    def steps(self, plugins):
        marketplace = plugins / ".agents" / "plugins" / "marketplace.json"
        marketplace.write_text(marketplace.read_text().replace("./codex", "./portable"))
        yield from super().steps(plugins)


class GeminiExtension(Plugin, agents.Gemini):
    def steps(self, plugins):
        yield "gemini", "extensions", "validate", plugins / "gemini"
        yield "gemini", "extensions", "link", plugins / "gemini", "--consent"


class GeminiInstalled(GeminiExtension):
    """Gemini CLI with a copy of the extension, whose settings are not asked for."""

    def steps(self, plugins):
        yield "gemini", "extensions", "install", plugins / "gemini", "--consent", "--skip-settings"


class GeminiReader(GeminiExtension):
    """Gemini CLI, whose model hands the question to the reader agent."""


class OpenCodePackage(Plugin, agents.OpenCode):
    """OpenCode with the folder of its npm package."""

    def prepare(self, home, address):
        environment = super().prepare(home, address)
        settings = home / ".config" / "opencode" / "opencode.json"
        package = str(home / "plugins" / "opencode")
        settings.write_text(json.dumps({**json.loads(settings.read_text()), "plugin": [package]}))
        return environment

    def steps(self, plugins):
        return ()


class ReaderConversation(scripted_model.Conversation):
    """A model that invokes the reader agent of Gemini CLI. The agent ends at once."""

    def next_call(self, tools, results):
        if "invoke_agent" not in tools:
            self.tools = tools
            return "complete_task", {"result": scripted_model.FINAL_TEXT}
        self.results = results
        return None if results else ("invoke_agent", {"agent_name": "history-reader", "prompt": agents.PROMPT})


CLIENTS = [
    ClaudePlugin(),
    ClaudeReader(),
    CodexPlugin(),
    CodexPortable(),
    GeminiExtension(),
    GeminiInstalled(),
    GeminiReader(),
    OpenCodePackage(),
]


def press_enter(command, environment, folder):
    """Runs a program and presses Enter at its questions. Returns the exit code and what it printed."""
    with tempfile.TemporaryFile() as output:
        program = subprocess.Popen(
            command, env=environment, cwd=folder, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT
        )
        deadline = time.monotonic() + agents.TIMEOUT_SECONDS
        while program.poll() is None:
            if time.monotonic() > deadline:
                program.kill()
            with contextlib.suppress(OSError):
                program.stdin.write(b"\n")
                program.stdin.flush()
            time.sleep(0.3)
        output.seek(0)
        return program.returncode, output.read().decode(errors="replace")


def check(client, site, programs):
    """Builds, validates and installs a plugin, and runs its client; yields what is wrong."""
    said = []

    def register(home, environment):
        # The launcher finds the program where installers put it.
        bin_folder = home / ".local" / "bin"
        bin_folder.mkdir(parents=True)
        (bin_folder / "sessions").symlink_to(site.binary)
        if client.has_variables:
            environment["SESSIONS_STORE"] = str(site.store)
        else:
            data = home / ".local" / "share"
            data.mkdir(parents=True)
            (data / "sessions").symlink_to(site.store)
        plugins = home / "plugins"
        subprocess.run([site.binary, "plugin", "build", plugins], env=environment, check=True, capture_output=True)
        for step in client.steps(plugins):
            code, output = press_enter([programs / step[0], *step[1:]], environment, home / "work")
            if code != 0:
                said.append(f"{' '.join(map(str, step))}: {output}")

    is_handed_over = isinstance(client, GeminiReader)
    conversation = (ReaderConversation if is_handed_over else scripted_model.Conversation)(agents.SEARCH, agents.details)
    failures = agents.run_agent(client, programs, register, conversation)
    yield from said + failures
    if not is_handed_over:
        yield from agents.check_results(site, conversation)
    if isinstance(client, ClaudeReader):
        yield from check_reader(conversation, site, CLAUDE_PREFIX, set())
    if is_handed_over:
        yield from check_reader(conversation, site, GEMINI_PREFIX, {"complete_task"})


def check_reader(conversation, site, prefix, own_tools):
    """The reader agent has the tools that only read, those that end its task, and no others."""
    command = [site.binary, "tools", "--json"]
    answer = json.loads(subprocess.run(command, env=site.environment, capture_output=True, check=True).stdout)
    reading = {tool["tool"] for tool in answer["data"]["tools"] if tool["category"] == "read"}
    offered = set(conversation.tools)
    wanted = {prefix + name for name in reading} | own_tools
    if offered != wanted:
        yield f"the reader is offered {sorted(offered ^ wanted)} more or less than it should"


if __name__ == "__main__":
    sys.exit(place.main(__doc__, CLIENTS, check, lambda client: type(client).__name__))
