#!/usr/bin/env python3
"""Compares what `sessions` reads out of logs with Harbor's converters to ATIF, log by log.

    python3 tests/compare_harbor.py SESSIONS LOGS [--provider NAME]... [-v]

SESSIONS  the binary of this project (give it LD_LIBRARY_PATH if it needs that for libduckdb)
LOGS      a folder with one folder of logs per provider: LOGS/claude, LOGS/codex, ...

Runs in a Python (3.12 or newer) with the package `harbor` 0.26.0. Compared are prompts and answers by
their words, calls, results and failed results by the id of the call, and the sums of tokens: input
with what was read from and written to the cache, output, and input read from the cache. Copies of
earlier history count here, as Harbor sees one log at a time.

Every difference has a cause in `CAUSES`, which is shown by the raw log and not by either program;
another one is printed as UNEXPLAINED. So is a folder of logs that is neither compared nor named in
`NOT_CONVERTED`. The exit code is 1 when there is one, and 2 when nothing could be compared.
"""

import argparse
import collections
import functools
import inspect
import itertools
import json
import logging
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

# Harbor asks for prices of models over the network; the comparison needs none.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
logging.disable(logging.CRITICAL)

from harbor.agents.installed import antigravity_cli, claude_code, codex, copilot_cli, cortex_code  # noqa: E402
from harbor.agents.installed import devin, gemini_cli, grok_build, hermes, junie, kimi_cli  # noqa: E402
from harbor.agents.installed import kimi_code_trajectory, openclaw, opencode, pi, qwen_code, vibe  # noqa: E402
from harbor.agents.installed.cline import trajectory as cline  # noqa: E402

ROWS = """
SELECT s.source_path, e.event_type, e.tool_call_id, e.is_error, e.text,
       coalesce(e.input_tokens, 0) + coalesce(e.cache_read_tokens, 0) + coalesce(e.cache_write_tokens, 0),
       coalesce(e.output_tokens, 0), coalesce(e.cache_read_tokens, 0)
FROM events e JOIN sessions s USING (session_id)
WHERE e.event_type IN ('user', 'message', 'tool_call', 'tool_result', 'token_usage')
ORDER BY s.source_path, e.event_index
"""

KINDS = ("prompt", "answer", "call", "result", "failure")

# What one side found in a log: prompts and answers as texts, calls, results and failures as ids of calls.
Reading = collections.namedtuple("Reading", "prompt answer call result failure tokens")

# Folders of logs that are not compared, and why. One that is neither here nor compared is a failure.
NOT_CONVERTED = {
    "cursor, cursor-cli": "Harbor converts what cursor-agent prints, `sessions` reads the transcripts and the chats",
    "antigravity-ide": "Harbor converts the transcripts, which are compared; these are databases",
    "goose": "Harbor converts what `goose run` prints, `sessions` reads its database and older files",
    "openhands": "Harbor converts the event files of the older server (`<n>.json`) and what its own runner of the SDK "
    "writes, `sessions` reads the conversations of the CLI (`event-<n>-<id>.json`)",
    "mimocode": "Harbor converts what `mimo run` prints; `sessions` reads the database, as for OpenCode",
    "atif": "Harbor writes trajectories; check_atif.py has it validate those that `sessions` writes",
    "broken, hostile": "damaged and hostile files, of no provider",
    "aider, amp, chatgpt, claudeai, codebuddy, codebuff, codewhale, commandcode, continue, crush, cursoride, droid, "
    "dsh, forge, geminiapps, generic, gptme, iflow, kiro, piebald, poolside, qwenpaw, reasonix, vscode, vscopilot, warp, "
    "zcode, zed": "Harbor has no converter",
}

CAUSES = {
    "machine_text": "text in the user's role that no user typed (instructions, environment, reminders, summaries, "
    "interruptions, output of client commands). For Harbor every record of that role is a prompt.",
    "client_command": "a command that only sets something in the client, with what it printed; no prompt for us.",
    "command": "a command of the user: Harbor has its record as it stands and the text it expands to, we have one "
    "prompt of its name and arguments.",
    "wrapped": "the same prompt on both sides: Harbor keeps the tags around it, the text behind it or the bytes of "
    "its pictures.",
    "skill_text": "the text of a skill that the user named, which the client put into the user's role; a notification "
    "for us.",
    "shell_input": "a shell command that the user typed behind `!`; a prompt for us, nothing or a tag for Harbor, which "
    "reads calls of the model only.",
    "joined": "texts of one response, which Harbor joins to one answer, or has without the reasoning and the marks in it.",
    "made_up_text": "what Harbor writes into a step without words.",
    "client_text": "an answer that no model wrote (model `<synthetic>`, `gateway-injected` or `delivery-mirror`): of an "
    "error, or of the client itself; a notification for us.",
    "summary": "a summary of the conversation for a compaction, or of a branch that the user left; a notification for us.",
    "queued": "a prompt that was sent while the agent worked and stands only in its queue record; Harbor reads "
    "records of the user's role only.",
    "steered": "a prompt that was sent while a turn ran (`turn.steer`); Harbor reads `turn.prompt` only.",
    "subagent_progress": "a subagent whose prompt, answers, calls, results and usage are only in the progress records of "
    "its parent (Claude Code's `progress`, Kimi's `SubagentEvent`). Harbor does not read those.",
    "other_branch": "what is on a branch that the user left, or in a subagent's chain (Devin). Harbor follows the last "
    "branch only.",
    "no_id": "an answer, call or result without an id, or with one that the log uses for several. Harbor skips it or "
    "makes an id up.",
    "unanswered": "a call that the log has no result for; Harbor makes the call of its result.",
    "other_item": "an answer, call or result of a kind that Harbor does not read.",
    "empty_result": "a result without text; Harbor has no observation without a text.",
    "no_call": "a result whose call is not in the log; Harbor leaves it out, or takes it for an answer (Copilot).",
    "told_otherwise": "a failure that the log tells by its status, an exit code or in words; Harbor's trajectory has "
    "none or another sign of it.",
    "cache_outside_input": "the log names more tokens read from the cache than input, so input is what is new; Harbor "
    "takes it for the sum.",
    "copilot_input": "what stands in `session.shutdown` and usage records, which Harbor does not read: it has the "
    "output of messages only.",
    "pieces": "pieces of one response of Copilot, each with the count so far; Harbor adds them up.",
    "between_turns": "usage that the log records outside of a step, such as a compaction; Harbor counts steps only.",
    "reasoning_apart": "tokens of reasoning that the log counts apart from the output (OpenCode; Qwen Code, where the "
    "total says so). They are output for us and for the price; Harbor's output is without them.",
    "written_apart": "tokens written to the cache, which OpenCode and OpenClaw count apart from the input. They were sent, "
    "so they are input; Harbor adds what was read from the cache only.",
    "cache_apart": "Junie counts what was read from the cache and written to it apart from the input: a request with 3 new "
    "tokens has 18,688 of the first. Harbor takes the input for the sum, and what was written for read.",
    "continued": "a session of Vibe that continues another one counts on from its sums, which Harbor takes as they are, as "
    "it joins the sessions; those of the first count once for us.",
    "total_fell": "a running total that fell, as after a new start; Harbor takes the last total, we take what was used.",
    "open_step": "texts, calls and results outside of a finished step, as the user stopped it, or a prompt without one; "
    "the stream that Harbor converts has finished steps.",
    "event_only": "a prompt that is only in an `event_msg` record; Harbor reads response items.",
    "not_printed": "a prompt of Kimi CLI: Harbor converts what the agent prints, which has no prompts.",
    "no_prompts": "a prompt of Junie; Harbor's trajectory of Junie has none.",
    "before_usage": "a call of Junie before the first record of usage, with which Harbor's steps begin.",
    "largest_count": "several lines of one response: Harbor takes the last count, we take the largest.",
}


# --- reading -------------------------------------------------------------------------------------------


def records_of(path):
    """The objects of a log: its lines, or those of the one document it is."""
    text = path.read_text(errors="replace")
    try:
        return [json.loads(text)]
    except ValueError:
        pass
    found = []
    for line in text.splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return [record for record in found if isinstance(record, dict)]


def rows_of(database, query, *values):
    """The rows of a query to a database that is not changed."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return list(connection.execute(query, values))
    finally:
        connection.close()


def session_of(path):
    """The database and the session that a path such as `opencode.db#ses_1` names."""
    database, _, session = str(path).rpartition("#")
    return database, session


def opencode_records(path):
    """The document of an OpenCode session: an export, or what `opencode export` makes of a store."""
    database, session = session_of(path)
    if database:
        messages = stored_messages(database, session) or stored_messages_of_2(database, session)
        return [{"messages": messages}]
    records = records_of(path)
    stored = path.parents[2]
    if "messages" in records[0] or not (stored / "message").is_dir():
        return records
    messages = []
    session = records[0].get("id", path.stem)
    for info in sorted((stored / "message" / session).glob("*.json")):
        info = json.loads(info.read_text())
        parts = list(stored_parts(stored / "part")[info.get("id")])
        if info.get("finish") and not any(part.get("type") == "step-start" for part in parts):
            parts.insert(0, {"type": "step-start"})
        messages.append({"info": info, "parts": parts})
    return [{"messages": messages}]


@functools.lru_cache(maxsize=1)
def stored_parts(folder):
    """The parts in a store by the message that they or their folder name."""
    parts = collections.defaultdict(list)
    for path in sorted(folder.rglob("*.json")):
        part = json.loads(path.read_text())
        parts[part.get("messageID") or path.parent.name].append(part)
    return parts


def stored_messages(database, session):
    """The messages of a session of OpenCode 1 in its database."""
    parts = collections.defaultdict(list)
    for row in rows_of(database, "SELECT message_id, data FROM part WHERE session_id = ? ORDER BY id", session):
        parts[row["message_id"]].append(json.loads(row["data"]))
    rows = rows_of(database, "SELECT id, data FROM message WHERE session_id = ? ORDER BY id", session)
    return [{"info": json.loads(row["data"]), "parts": parts[row["id"]]} for row in rows]


def stored_messages_of_2(database, session):
    """The messages of a session of OpenCode 2 in its database, in the form of OpenCode 1."""
    messages = []
    query = "SELECT type, data FROM session_message WHERE session_id = ? ORDER BY seq"
    for kind, data in rows_of(database, query, session):
        data = json.loads(data)
        if kind in ("user", "synthetic"):
            part = {"type": "text", "text": data["text"], "synthetic": kind == "synthetic"}
            messages.append({"info": {"role": "user"}, "parts": [part]})
        elif kind == "assistant":
            parts = [{"type": "step-start"}, *map(part_of_2, data.get("content") or [])]
            parts.append({"type": "step-finish", "tokens": data.get("tokens")})
            messages.append({"info": {"role": "assistant"}, "parts": parts})
        elif kind == "shell":
            messages.append({"info": {"role": "user"}, "shell": data["command"], "parts": []})
    return messages


def part_of_2(block):
    """A block of an answer of OpenCode 2 as a part of OpenCode 1."""
    if block.get("type") != "tool":
        return block
    state = dict(block["state"])
    state["output"] = "".join(item.get("text", "") for item in state.pop("content", None) or [])
    if isinstance(state.get("error"), dict):
        state["error"] = state["error"].get("message")
    return {"type": "tool", "callID": block["id"], "tool": block["name"], "state": state}


def devin_records(path):
    """The messages of a Devin session, each with its node, and with whether the main chain has it."""
    database, session = session_of(path)
    (head,) = rows_of(database, "SELECT main_chain_id FROM sessions WHERE id = ?", session)
    rows = rows_of(database, "SELECT * FROM message_nodes WHERE session_id = ? ORDER BY node_id", session)
    parents = {row["node_id"]: row["parent_node_id"] for row in rows}
    main, node = set(), head["main_chain_id"]
    while node in parents and node not in main:
        main.add(node)
        node = parents[node]
    return [dict(json.loads(row["chat_message"]), is_main=row["node_id"] in main or not main) for row in rows]


def cortex_records(path):
    """The messages of a Cortex session: in the document, or in the lines next to it."""
    if path.name.endswith(".history.jsonl"):
        return records_of(path)
    return records_of(path)[0].get("history") or []


RECORDS = {"opencode": opencode_records, "devin": devin_records, "cortex": cortex_records}


def strings_of(value):
    """Every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from strings_of(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings_of(item)


def words(text):
    """The beginning of a text without what differs by cleaning: blanks, signs, tags of pictures."""
    return squeezed(text or "")[:60]


@functools.lru_cache(maxsize=10_000)
def squeezed(text):
    return re.sub(r"\W+", "", text[:100_000])


def ours(binary, logs, store):
    subprocess.run([binary, "ingest", "--quiet", "--store", store, logs], check=True)
    command = [binary, "query", "--quiet", "--max-rows", "10000000", "--output", "ndjson", "--store", store, ROWS]
    rows = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = collections.defaultdict(lambda: Reading([], [], [], [], [], [0, 0, 0]))
    for row in rows.splitlines():
        path, kind, call, failed, text, *tokens = json.loads(row).values()
        reading = found[path]
        if kind == "user":
            reading.prompt.append(text)
        elif kind == "message":
            reading.answer.extend([text] if words(text) else [])
        elif kind == "tool_call":
            reading.call.append(call)
        elif kind == "tool_result":
            reading.result.append(call)
            reading.failure.extend([call] if failed else [])
        else:
            for at, count in enumerate(tokens):
                reading.tokens[at] += int(count)
    return found


# --- Harbor --------------------------------------------------------------------------------------------


def message_text(message):
    return message if isinstance(message, str) else "".join(part.text or "" for part in message or [])


def is_failure(result):
    extra = result.extra or {}
    flags = (extra.get("tool_result_is_error"), extra.get("is_error"), extra.get("success") is False)
    return True in flags or extra.get("error") is not None


def failures_of(step):
    """The ids of failed calls, wherever the converters put the sign of it."""
    for result in step.observation.results if step.observation else []:
        if is_failure(result):
            yield result.source_call_id
    extra, calls = step.extra or {}, step.tool_calls or []
    details = {call: detail.get("metadata") for call, detail in (extra.get("tool_call_details") or {}).items()}
    if calls:
        details[calls[0].tool_call_id] = extra.get("tool_metadata") or details.get(calls[0].tool_call_id)
    for call, metadata in details.items():
        if isinstance(metadata, dict) and metadata.get("exit_code") not in (None, 0):
            yield call
    if extra.get("tool_result_is_error") is True and calls:
        yield calls[0].tool_call_id


def reading_of(steps, metrics, totals=None):
    results = [result for step in steps if step.observation for result in step.observation.results]
    tokens = [
        sum(metric.prompt_tokens or 0 for metric in metrics),
        sum(metric.completion_tokens or 0 for metric in metrics),
        sum(metric.cached_tokens or 0 for metric in metrics),
    ]
    return Reading(
        [message_text(step.message) for step in steps if step.source == "user"],
        [text for step in steps if step.source == "agent" if words(text := message_text(step.message))],
        [call.tool_call_id for step in steps for call in step.tool_calls or []],
        [result.source_call_id for result in results if result.content is not None],
        sorted({call for step in steps for call in failures_of(step)}, key=str),
        totals or tokens,
    )


def of_trajectory(trajectory):
    if trajectory is None:
        return None
    return reading_of(trajectory.steps, [step.metrics for step in trajectory.steps if step.metrics])


def with_totals(trajectory):
    """Codex and Mistral Vibe keep totals, and Harbor's final metrics are those."""
    if trajectory is None:
        return None
    final = trajectory.final_metrics
    totals = final and [final.total_prompt_tokens or 0, final.total_completion_tokens or 0, final.total_cached_tokens or 0]
    return reading_of(trajectory.steps, [], totals)


class Harbor:
    """Harbor's converters, each for one log. `scratch` is a folder for what they expect or write."""

    def __init__(self, scratch):
        self.scratch = scratch

    def agent(self, kind):
        agent = kind(logs_dir=self.scratch / "agent", model_name=None)
        agent._compute_cost_from_pricing = lambda *_, **__: None
        return agent

    def alone(self, path, name=None):
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.scratch))
        link = folder / (name or path.name)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(path.resolve())
        return folder, link

    def claude(self, path):
        agent = self.agent(claude_code.ClaudeCode)
        agent._estimate_step_costs = lambda *_: None
        return of_trajectory(agent._convert_events_to_trajectory(self.alone(path)[0]))

    def codex(self, path):
        return with_totals(self.agent(codex.Codex)._convert_events_to_trajectory(self.alone(path)[0]))

    def gemini(self, path):
        agent = self.agent(gemini_cli.GeminiCli)
        document = agent._load_gemini_session(path)
        return of_trajectory(document and agent._convert_gemini_to_atif(document))

    def copilot(self, path):
        return of_trajectory(self.agent(copilot_cli.CopilotCli)._convert_jsonl_to_trajectory(path))

    def opencode(self, path):
        """Every prompt with its answers, as `opencode run --format json` prints their parts."""
        document = opencode_records(path)[0]
        if "messages" not in document:
            return None
        readings, events = [], []
        printed = {"step-start": "step_start", "step-finish": "step_finish", "tool": "tool_use"}
        for message in document.get("messages") or []:
            user = message["info"].get("role") == "user"
            if user and events:
                readings.append(events)
                events = []
            parts = message.get("parts") or []
            if user:
                texts = [part.get("text", "") for part in parts if part.get("type") == "text"]
                events.append({"type": "user", "parts": [{"type": "text", "text": "\n".join(texts)}]})
            else:
                events += [{"type": printed.get(part.get("type"), part.get("type")), "part": part} for part in parts]
        whole = Reading([], [], [], [], [], [0, 0, 0])
        for events in [*readings, events]:
            agent = self.agent(opencode.OpenCode)
            reading = of_trajectory(agent._convert_events_to_trajectory(events))
            if reading:
                for kind in KINDS:
                    getattr(whole, kind).extend(getattr(reading, kind))
                whole.tokens[:] = [a + b for a, b in zip(whole.tokens, reading.tokens)]
        return whole

    def pi(self, path):
        agent, events = self.agent(pi.Pi), list(enumerate(records_of(path), 1))
        trajectory = agent._convert_session_events_to_trajectory(agent._active_session_events(events))
        return trajectory and reading_of(trajectory.steps, agent._accounting_metrics(events, 0))

    def openclaw(self, path):
        steps = openclaw.openclaw_session_jsonl_to_atif_steps(path, instruction="", model_name="none")
        return steps and reading_of(steps, [step.metrics for step in steps if step.metrics])

    def qwen(self, path):
        return of_trajectory(self.agent(qwen_code.QwenCode)._convert_events_to_trajectory(records_of(path)))

    def kimi(self, path):
        events = [record.get("message") for record in records_of(path)]
        events = [event for event in events if isinstance(event, dict) and "payload" in event]
        if events:
            return of_trajectory(self.agent(kimi_cli.KimiCli)._convert_events_to_trajectory(events))
        link = self.alone(path, "session/agents/main/wire.jsonl")[1]
        parsed = kimi_code_trajectory.parse_wire(link)
        steps = kimi_code_trajectory.to_trajectory(parsed, agent_name="kimi", agent_version=None, model_name=None)
        return of_trajectory(steps)

    def grok(self, path):
        agent = self.agent(grok_build.GrokBuild)
        return of_trajectory(agent._convert_messages_to_trajectory(agent._parse_chat_history(path)))

    def hermes(self, path):
        lines = "\n".join(json.dumps(record) for record in records_of(path))
        return of_trajectory(self.agent(hermes.Hermes)._convert_hermes_session_to_atif(lines, "session"))

    def antigravity(self, path):
        agent = self.agent(antigravity_cli.AntigravityCli)
        records = agent._load_step_transcript(path)
        return of_trajectory(records and agent._convert_step_transcript_to_atif(records))

    def junie(self, path):
        return of_trajectory(self.agent(junie.Junie)._convert_events_to_trajectory(records_of(path), "session"))

    def vibe(self, path):
        if path.name != "messages.jsonl":
            return None
        agent = self.agent(vibe.Vibe)
        agent._has_usable_pricing = lambda: False
        return with_totals(agent._convert_sessions_to_trajectory([path.parent]))

    def cortex(self, path):
        document = {"session_id": "session", "history": cortex_records(path)}
        return of_trajectory(cortex_code._convert_conversation_to_trajectory(document, None, "0"))

    def devin(self, path):
        """Harbor takes the session that was used last: the others are removed from a copy."""
        database, session = session_of(path)
        agent = self.agent(devin.Devin)
        agent.logs_dir = pathlib.Path(tempfile.mkdtemp(dir=self.scratch))
        copy = agent.logs_dir / "sessions.db"
        shutil.copyfile(database, copy)
        with sqlite3.connect(copy) as connection:
            connection.execute("DELETE FROM sessions WHERE id <> ?", (session,))
        messages, _ = agent._load_messages_from_db()
        return of_trajectory(agent._messages_to_trajectory(messages, session))

    def cline(self, path):
        document = records_of(path)[0]
        return of_trajectory(cline.convert_messages_to_trajectory(document, agent_name="cline", agent_version="0"))


PROVIDERS = [name for name, _ in inspect.getmembers(Harbor, inspect.isfunction) if name not in ("__init__", "agent", "alone")]


# --- causes ------------------------------------------------------------------------------------------------

# Beginnings of text that no user typed, by provider.
MACHINE_TEXT = {
    "claude": r"<(system-reminder|task-notification|local-command|bash-std|ide_|teammate-message)|Caveat: The messages below"
    r"|\[Request interrupted|This session is being continued|Operation stopped by hook|\{\"task",
    "codex": r"# AGENTS\.md instructions|<(user_instructions|environment_context|turn_aborted|skill>|subagent_notification"
    r"|recommended_plugins|user_action|permissions|apps_instructions|INSTRUCTIONS)|Warning: ",
    "gemini": r"System: Please continue",
    "qwen": r"<qwen:",
    "grok": r"<(user_info|system-reminder)",
    "openclaw": r"A new session was started via /new or /reset|Read HEARTBEAT\.md",
}

# The text of a skill that the user named, in the user's role.
SKILL_TEXT = re.compile(r'<skill name="|\[IMPORTANT: The user has invoked the "')

# Calls and results that Harbor does not read: of Codex, of the scripts that its model writes, and of Junie.
OTHER_ITEMS = {"tool_search_call", "tool_search_output", "mcp_tool_call_end", "CommandExecution", "McpToolCall"}
OTHER_ITEMS |= {"FileChange", "FileChangesBlockUpdatedEvent", "McpBlockUpdatedEvent", "TestRunBlockUpdatedEvent"}

# The blocks of Junie that are calls.
JUNIE_BLOCKS = {f"{name}BlockUpdatedEvent" for name in ("Tool", "Terminal", "Mcp", "ViewFiles", "FileChanges", "TestRun")}

# What Pi makes of `/skill:name arguments`, and Hermes of `/name arguments`.
SKILL_PROMPTS = {
    "pi": re.compile(r'<skill name="(.*?)".*?</skill>\s*(.*)', re.DOTALL),
    "hermes": re.compile(r'\[IMPORTANT: The user has invoked the "(.*?)" skill(?:.*skill invocation: (.*))?', re.DOTALL),
}

# Client commands of Claude Code that ask the model nothing.
CLIENT_COMMAND = re.compile(r"<command-name>/?(clear|context|exit|quit|model|login|logout|effort|plan|cost|config|resume"
                            r"|status|help|mcp|plugin|permissions|fast|rename|usage|agents|hooks|memory|doctor)</command-name>")


class Log:
    """What the raw records of one log say."""

    def __init__(self, provider, path):
        self.provider = provider
        self.path = path
        self.records = RECORDS.get(provider, records_of)(path)
        self.marked, self.queued, self.steered, self.progress, self.commands = set(), set(), set(), set(), set()
        self.shell, self.progress_calls, self.open_steps, self.open_texts = set(), set(), set(), set()
        self.unprinted, self.left, self.left_calls, self.early_calls = set(), set(), set(), set()
        self.shell_outputs, self.shell_calls, self.failed_steps, self.summaries, self.client_texts = (set() for _ in range(5))
        self.unread, self.open_prompts = set(), set()
        self.events, self.items = collections.Counter(), collections.Counter()
        self.calls, self.results = collections.Counter(), collections.defaultdict(list)
        self.kinds = collections.defaultdict(set)
        self.models, self.told = collections.defaultdict(set), collections.defaultdict(set)
        for record in self.records:
            self.read(record)
        reader = {"pi": self.read_branches, "antigravity": self.read_steps, "junie": self.read_blocks}.get(provider)
        if reader:
            reader()

    def read_branches(self):
        """Texts of Pi's log on branches that the user left: those that the last entry does not follow."""
        entries = {record["id"]: record for record in self.records if "id" in record and record.get("type") != "session"}
        active, entry = set(), next(reversed(entries), None)
        while entry in entries and entry not in active:
            active.add(entry)
            entry = entries[entry].get("parentId")
        for entry in entries.keys() - active:
            self.leave(entries[entry])

    def leave(self, record):
        """Takes a record for one of a branch that the user left."""
        self.left.update(map(words, strings_of(record)))
        self.left_calls.update(call for call in map(block_call, blocks_of(record)) if call)

    def read_steps(self):
        """Failed steps of Antigravity, by the names that we give to its calls: step and position."""
        expected = []
        for record in self.records:
            calls = record.get("tool_calls") or []
            if calls:
                expected = [f"{record['step_index']}.{position}" for position in range(len(calls))]
            elif expected and record.get("source") == "MODEL" and record.get("type") != "PLANNER_RESPONSE":
                step = expected.pop(0)
                if record.get("status") == "ERROR":
                    self.failed_steps.add(step)

    def read_blocks(self):
        """The blocks of Junie's tools. Harbor's steps begin with the first record of usage."""
        begun = False
        for record in self.records:
            event = (record.get("event") or {}).get("agentEvent") or {}
            kind, step = str(event.get("kind")), event.get("stepId")
            begun |= kind == "LlmResponseMetadataEvent"
            if kind in JUNIE_BLOCKS:
                self.results[step].append(event)
                self.kinds[step].add(kind)
                self.calls[step] = 1
                if not begun:
                    self.early_calls.add(step)

    def read(self, record):
        texts = [words(text) for text in strings_of(record)]
        kind, message = record.get("type"), record.get("message")
        origin = record.get("origin")
        origin = origin.get("kind") if isinstance(origin, dict) else None
        if record.get("isMeta") or record.get("isCompactSummary") or origin not in (None, "user", "human"):
            self.marked.update(texts)
        if record.get("subtype") in ("notification", "mid_turn_user_message", "cron"):
            self.marked.update(texts)
        if kind in ("compaction", "branch_summary"):
            self.summaries.update(texts)
        if isinstance(message, dict) and message.get("model") in CLIENT_MODELS:
            self.client_texts.update(texts)
        if isinstance(message, dict) and message.get("role") == "assistant" and message.get("id"):
            self.models[message["id"]].add(message.get("model"))
            self.told[message["id"]].update(texts)
        metadata = record.get("metadata") if self.provider == "devin" else None
        if record.get("injected") or not (metadata or {}).get("is_user_input", True):
            self.marked.update(texts)
        if record.get("is_main") is False:
            self.leave(record)
        data = record.get("data") if isinstance(record.get("data"), dict) else {}
        if kind == "user.message" and data.get("source") not in (None, "user", "command"):
            self.marked.update(texts)
        if kind == "tool.user_requested":
            self.shell.update(texts)
            self.shell_calls.add(data.get("toolCallId"))
        if data.get("toolCallId") in self.shell_calls:
            self.shell_outputs.update(texts)
        if kind == "queue-operation" or kind == "attachment":
            self.queued.update(texts)
        payload = record.get("payload") if isinstance(record.get("payload"), dict) else {}
        item = payload.get("item") if isinstance(payload.get("item"), dict) else {}
        told = (payload.get("type"), item.get("type"))
        if kind == "event_msg" and (told[0] in ("user_message", "entered_review_mode") or told[1] == "UserMessage"):
            self.events.update(set(texts))
        if kind == "response_item" and payload.get("role") == "user":
            self.items.update(set(texts))
        if kind == "response_item" and payload.get("type") == "agent_message":
            self.unread.update(texts)
        if isinstance(message, dict) and message.get("type") in ("TurnBegin", "SteerInput"):
            self.unprinted.update(texts)
        if kind == "turn.steer":
            self.steered.update(texts)
        if kind == "progress" or isinstance(message, dict) and message.get("type") == "SubagentEvent":
            self.progress.update(texts)
            self.progress_calls.update(call for call in map(block_call, blocks_of(record)) if call)
            return
        if isinstance(message, dict) and message.get("role") == "bashExecution":
            self.shell.update(texts)
        for text in strings_of(record) if self.provider in SKILL_PROMPTS else ():
            for skill, arguments in SKILL_PROMPTS[self.provider].findall(text):
                self.commands.add(words(f"{'skill:' if self.provider == 'pi' else ''}{skill}{arguments}"))
        for text in strings_of(record.get("message")) if kind == "user" else ():
            command = re.search(r"<command-name>(.*?)</command-name>", text)
            arguments = re.search(r"<command-args>(.*?)</command-args>", text, re.DOTALL)
            typed = re.search(r"<bash-input>(.*?)</bash-input>", text, re.DOTALL)
            if command:
                self.commands.add(words(command[1] + (arguments[1] if arguments else "")))
            if typed:
                self.shell.add(words(typed[1]))
        for block in blocks_of(record):
            kind, call = block.get("type") or record.get("type"), block_call(block)
            if call is None:
                continue
            self.kinds[call].add(kind)
            if is_result(block):
                self.results[call].append(block)
            if is_call(block):
                self.calls[call] += 1
        for message in record.get("messages") or [] if self.provider == "gemini" else []:
            if message.get("type") not in ("user", "gemini"):
                self.unread.update(map(words, strings_of(message)))
        by_user, turn = False, set()
        for message in record.get("messages") or [] if self.provider == "opencode" else []:
            parts = message.get("parts") or []
            self.marked.update(words(part.get("text")) for part in parts if part.get("synthetic"))
            outside = parts_outside_steps(parts)
            self.open_steps.update(part.get("callID") for part in outside)
            self.open_texts.update(words(part.get("text")) for part in outside)
            if message["info"].get("role") == "user":
                self.open_prompts.update(turn)
                turn = {words(part.get("text")) for part in parts}
            elif len(outside) < len(parts):
                turn = set()
            if message["info"].get("summary") is True:
                self.summaries.update(map(words, strings_of(parts)))
            if by_user:
                self.shell.update(map(words, strings_of([part.get("state") for part in parts])))
            by_user = any(part.get("text") == "The following tool was executed by the user" for part in parts)
            self.shell.add(words(message.get("shell")))
        self.open_prompts.update(turn)


def parts_outside_steps(parts):
    """The parts of an answer of OpenCode that are not between the start and the end of a step."""
    kinds = [part.get("type") for part in parts]
    begin = kinds.index("step-start") if "step-start" in kinds else len(kinds)
    end = len(kinds) - kinds[::-1].index("step-finish") if "step-finish" in kinds else 0
    return [part for place, part in enumerate(parts) if not begin <= place < end]


def blocks_of(value):
    """Every object in a JSON value."""
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from blocks_of(item)
    elif isinstance(value, list):
        for item in value:
            yield from blocks_of(item)


def block_call(block):
    """The id of the call that a block is or answers."""
    for name in ("tool_use_id", "call_id", "toolCallId", "tool_call_id", "callID", "callId"):
        if isinstance(block.get(name), str):
            return block[name]
    return block.get("id") if isinstance(block.get("id"), str) else None


# Fields that only a result has: of several agents, of Kimi and of Qwen.
RESULT_FIELDS = {"result", "return_value", "response"}


def is_result(block):
    kind = str(block.get("type") or block.get("role") or "")
    named = "result" in kind.lower() or "output" in kind or kind in ("tool.execution_complete", "tool", "mcp_tool_call_end")
    return named or bool(RESULT_FIELDS & block.keys()) or block.keys() >= {"tool_use_id", "content"}


def is_call(block):
    kind = str(block.get("type") or "").lower()
    named = "call" in kind and "output" not in kind or "use" in kind or "execution_start" in kind
    return named or "args" in block or "arguments" in block or (kind == "tool" and "state" in block)


# How a result tells of a failure without the flag that Harbor keeps.
FAILED = re.compile(
    r'(?:exit|code|status)[\\\\"\w ]*:? *-?[1-9]|"(?:status|finish_reason)": "(?:error|failed|cancelled)"|"success": false|"is_?error": true'
    r"|verification failed|Failed to find expected lines|invalid hunk|aborted by user|write_stdin failed|execution error"
    r"|API error|Operation Cancelled|already stopped|does not exist|No such file"
    r'|[\\\\]*"error[\\\\]*": *[\\\\]*"[^"\\\\]',
    re.IGNORECASE,
)

# What Harbor writes into a step without words.
MADE_UP_TEXT = re.compile(
    r"Executed |Tool call$|LLM response metadata|\[tool call\]$|\(tool use\)$|\(no assistant text\)$|\(error\) |\[unparsed "
)

# The models of answers that no model wrote: of Claude Code, and of the gateway of OpenClaw.
CLIENT_MODELS = {"<synthetic>", "gateway-injected", "delivery-mirror"}

# Our tag of a picture or a file in a prompt.
PICTURE = re.compile(r"\[.*? \d+ bytes\]|\[file .*?\]")


def cause_of_prompt(side, text, log, other):
    start = words(text)
    machine = MACHINE_TEXT.get(log.provider)
    bare = words(PICTURE.sub("", text))
    if side == "harbor":
        if CLIENT_COMMAND.search(text):
            return "client_command"
        if "<command-name>" in text or "<command-message>" in text:
            return "command"
        if text.lstrip().startswith("<bash-input>"):
            return "shell_input"
        if machine and re.match(machine, text.lstrip()):
            return "machine_text"
        if SKILL_TEXT.match(text):
            return "skill_text"
        if start in log.marked:
            return "machine_text"
        if any(is_same_prompt(text, prompt) for prompt in other):
            return "wrapped"
        return None
    if start in log.commands:
        return "command"
    if start in log.shell:
        return "shell_input"
    if start in log.steered:
        return "steered"
    if start in log.unprinted:
        return "not_printed"
    if log.provider == "junie":
        return "no_prompts"
    if start in log.left:
        return "other_branch"
    if start in log.open_prompts:
        return "open_step"
    if any(is_same_prompt(prompt, text) for prompt in other):
        return "wrapped"
    if start in log.progress:
        return "subagent_progress"
    if log.events[start.removeprefix("review")] > log.items[start]:
        return "event_only"
    return "queued" if start in log.queued or bare in log.queued else None


def cause_of_answer(side, text, log, other):
    start = words(text)
    if any(start in squeezed(answer) or words(answer) in squeezed(text) for answer in other):
        return "joined"
    if side == "harbor":
        orphans = {words(text) for call, found in log.results.items() if not log.calls[call] for text in strings_of(found)}
        told = {"client_text": log.client_texts, "summary": log.summaries, "shell_input": log.shell_outputs, "no_call": orphans}
        made_up = "made_up_text" if MADE_UP_TEXT.match(text) else None
        return next((cause for cause, texts in told.items() if start in texts), made_up)
    if start in log.left:
        return "other_branch"
    if start in log.open_texts:
        return "open_step"
    if start in log.unread:
        return "other_item"
    if any(start in log.told[response] for response, models in log.models.items() if len(models) > 1):
        return "no_id"
    return "subagent_progress" if start in log.progress else None


def is_same_prompt(harbor, ours):
    """Whether Harbor's prompt holds ours, apart from our tags of pictures and files."""
    mine = words(PICTURE.sub("", ours))
    if not mine:
        return harbor.startswith('{"type": "image"')
    return mine in squeezed(harbor)


def is_without_id(call):
    """Whether the log has no id for a call of ours, or one that it uses for several calls."""
    return not call or bool(re.fullmatch(r"\d+\.\d+", call)) or "[" in call


def cause_of_unread(call, log):
    """Why Harbor reads neither a call of ours nor its result."""
    if call in log.progress_calls:
        return "subagent_progress"
    if call in log.left_calls:
        return "other_branch"
    if log.kinds[call] & OTHER_ITEMS:
        return "other_item"
    if call in log.early_calls:
        return "before_usage"
    return "shell_input" if call in log.shell_calls else "open_step" if call in log.open_steps else None


def cause_of_call(side, call, log):
    if side == "harbor":
        made_up = call and re.match(r"api_call_\d+_web_search_|ws[_-]|antigravity-", call)
        return "no_id" if made_up or log.calls[call] > 1 else None
    if is_without_id(call):
        return "no_id"
    return cause_of_unread(call, log) or (None if log.results[call] else "unanswered")


def cause_of_result(side, call, log):
    if side == "harbor":
        return cause_of_call(side, call, log)
    if is_without_id(call):
        return "no_id"
    if cause := cause_of_unread(call, log):
        return cause
    if not log.calls[call]:
        return "no_call"
    texts = [text for block in log.results[call] for text in strings_of([block.get(name) for name in ("content", "output")])]
    return None if any(text.strip() for text in texts) else "empty_result"


def cause_of_failure(side, call, log):
    if side == "harbor":
        return None
    if call is None or "[" in call:
        return "no_id"
    if cause := cause_of_unread(call, log):
        return cause
    told = json.dumps(log.results[call])
    return "told_otherwise" if call in log.failed_steps or FAILED.search(told) else None


def claude_counts(usage):
    read, written = (usage.get(f"cache_{name}_input_tokens") or 0 for name in ("read", "creation"))
    return ((usage.get("input_tokens") or 0) + read + written, usage.get("output_tokens") or 0, read)


def tokens_of_claude(log):
    """Per response: the last count and the largest, of the log's own rows and of progress records."""
    own, progress = collections.defaultdict(list), collections.defaultdict(list)
    for record in log.records:
        data = record.get("data")
        inner = data.get("message") if record.get("type") == "progress" and isinstance(data, dict) else record
        message = inner.get("message") if isinstance(inner, dict) else None
        if isinstance(message, dict) and isinstance(message.get("usage"), dict) and message.get("model") != "<synthetic>":
            found = own if inner is record else progress
            found[message.get("id")].append(claude_counts(message["usage"]))
    for response, counts in progress.items():
        if response not in own:
            yield "subagent_progress", negative(max(counts))
    for counts in own.values():
        yield "largest_count", minus(counts[-1], max(counts, key=sum))


def tokens_of_gemini(log):
    """Harbor takes `input` for a sum of which `cached` is a part."""
    for block in blocks_of(log.records):
        tokens = block.get("tokens")
        if isinstance(tokens, dict) and (tokens.get("cached") or 0) > (tokens.get("input") or 0):
            yield "cache_outside_input", (tokens["input"] - max(tokens["input"], tokens["cached"]), 0, 0)


def copilot_sums(data):
    """The sums of a shutdown by model: input, output and input read from the cache."""
    sums = {}
    for model, metrics in (data.get("modelMetrics") or {}).items():
        usage = metrics.get("usage") if isinstance(metrics, dict) else None
        sums[model] = tuple((usage or {}).get(name) or 0 for name in ("inputTokens", "outputTokens", "cacheReadTokens"))
    if not any(map(any, sums.values())):
        details = data.get("tokenDetails") or {}
        counts = collections.Counter({name: (detail or {}).get("tokenCount") or 0 for name, detail in details.items()})
        sums[data.get("currentModel")] = (counts["input"] + counts["cache_read"], counts["output"], counts["cache_read"])
    return sums


def tokens_of_copilot(log):
    """What Copilot sums at the end of a run: messages have no input, and not every output.

    The sums of newer versions are those of the session: they grew by what the run's messages name, or more.
    """
    responses, before = {}, {}
    for number, record in enumerate(log.records):
        data = record.get("data") if isinstance(record.get("data"), dict) else {}
        if record.get("type") == "assistant.message":
            response, count = data.get("apiCallId") or number, data.get("outputTokens") or 0
            yield "pieces", (0, min(count, responses.get(response, 0)), 0)
            responses[response] = max(count, responses.get(response, 0))
        if record.get("type") != "session.shutdown":
            continue
        told = sum(responses.values())
        sums = copilot_sums(data)
        growth = {model: minus(counts, before.get(model, (0, 0, 0))) for model, counts in sums.items()}
        has_grown = before and before.keys() <= sums.keys() and all(min(counts) >= 0 for counts in growth.values())
        if not has_grown or sum(counts[1] for counts in growth.values()) < told:
            growth = sums
        used = tuple(map(sum, zip(*growth.values()))) if growth else (0, 0, 0)
        yield "copilot_input", (-used[0], min(told - used[1], 0), -used[2])
        responses, before = {}, sums


def tokens_of_codex(log):
    """The last total and the largest: a total that falls began to count again."""
    totals = []
    for record in log.records:
        payload = record.get("payload")
        info = payload.get("info") if isinstance(payload, dict) and payload.get("type") == "token_count" else None
        total = info.get("total_token_usage") if isinstance(info, dict) else None
        if isinstance(total, dict):
            totals.append(tuple(total.get(name) or 0 for name in ("input_tokens", "output_tokens", "cached_input_tokens")))
    if totals:
        yield "total_fell", minus(totals[-1], max(totals))


def tokens_of_opencode(log):
    """Reasoning and tokens written to the cache, which OpenCode keeps apart from the rest."""
    for block in blocks_of(log.records):
        if block.get("type") == "step-finish":
            tokens = block.get("tokens") or {}
            yield "reasoning_apart", (0, -(tokens.get("reasoning") or 0), 0)
            yield "written_apart", (-((tokens.get("cache") or {}).get("write") or 0), 0, 0)


def tokens_of_openclaw(log):
    for block in blocks_of(log.records):
        usage = block.get("usage")
        if isinstance(usage, dict):
            yield "written_apart", (-(usage.get("cacheWrite") or 0), 0, 0)


def tokens_of_qwen(log):
    """Reasoning, where the total shows that it is apart from the output."""
    for record in log.records:
        usage = record.get("usageMetadata")
        names = ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount")
        counts = [(usage or {}).get(name) or 0 for name in names]
        if counts[2] and usage.get("totalTokenCount") == sum(counts):
            yield "reasoning_apart", (0, -counts[2], 0)


def tokens_of_kimi(log):
    """Usage of compactions, of all turns but the last, and of subagents, whose requests may be told again."""
    told = set()
    for record in log.records:
        usage = record.get("usage")
        if record.get("type") == "usage.record" and record.get("usageScope") == "session" and isinstance(usage, dict):
            counts = [usage.get(name) or 0 for name in ("inputOther", "inputCacheRead", "inputCacheCreation", "output")]
            yield "between_turns", (-sum(counts[:3]), -counts[3], -counts[1])
        message = record.get("message")
        if not isinstance(message, dict) or message.get("type") != "SubagentEvent":
            continue
        event = message["payload"].get("event") or {}
        payload = event.get("payload") or {}
        usage = payload.get("token_usage")
        if event.get("type") == "StatusUpdate" and usage and payload.get("message_id") not in told:
            told.add(payload.get("message_id"))
            counts = [usage.get(name) or 0 for name in ("input_other", "input_cache_read", "input_cache_creation", "output")]
            yield "subagent_progress", (-sum(counts[:3]), -counts[3], -counts[1])


def tokens_of_junie(log):
    """What was read from the cache and written to it, which Junie keeps apart from the input."""
    for block in blocks_of(log.records):
        for usage in block.get("modelUsage") or []:
            read, written = (usage.get(name) or 0 for name in ("cacheInputTokens", "cacheCreateTokens"))
            yield "cache_apart", (-read - written, 0, written)


def tokens_of_vibe(log):
    """The sums of the session that this one continues: Vibe goes on counting from them."""
    folder = log.path.parent
    parent = vibe_meta(folder).get("parent_session_id")
    for other in map(vibe_meta, folder.parent.iterdir() if parent else ()):
        if other.get("session_id") == parent:
            stats = other.get("stats") or {}
            yield "continued", (stats.get("session_prompt_tokens") or 0, stats.get("session_completion_tokens") or 0, 0)


def vibe_meta(folder):
    path = folder / "meta.json"
    return json.loads(path.read_text()) if path.is_file() else {}


def tokens_of_devin(log):
    """Requests of branches that the user left and of subagents; the log may have one request twice."""
    seen = {devin_request(record) for record in log.records if record["is_main"]}
    for record in log.records:
        usage = (record.get("metadata") or {}).get("metrics")
        if usage and devin_request(record) not in seen:
            seen.add(devin_request(record))
            names = ("input_tokens", "cache_read_tokens", "cache_creation_tokens", "output_tokens")
            counts = [usage.get(name) or 0 for name in names]
            yield "other_branch", (-sum(counts[:3]), -counts[3], -counts[1])


def devin_request(record):
    return (record.get("metadata") or {}).get("request_id")


TOKEN_CAUSES = {
    "claude": tokens_of_claude,
    "gemini": tokens_of_gemini,
    "codex": tokens_of_codex,
    "copilot": tokens_of_copilot,
    "opencode": tokens_of_opencode,
    "openclaw": tokens_of_openclaw,
    "qwen": tokens_of_qwen,
    "kimi": tokens_of_kimi,
    "junie": tokens_of_junie,
    "vibe": tokens_of_vibe,
    "devin": tokens_of_devin,
}


def minus(a, b):
    return tuple(x - y for x, y in zip(a, b))


def negative(a):
    return minus((0, 0, 0), a)


def causes_of_tokens(log, difference):
    """The fewest causes whose sums are the difference of Harbor and ours, or None."""
    sums = collections.defaultdict(lambda: (0, 0, 0))
    for cause, tokens in TOKEN_CAUSES.get(log.provider, lambda _: ())(log):
        sums[cause] = tuple(x + y for x, y in zip(sums[cause], tokens))
    for size in range(1, len(sums) + 1):
        for chosen in itertools.combinations(sums, size):
            if tuple(map(sum, zip(*(sums[cause] for cause in chosen)))) == difference:
                return chosen
    return None


# --- comparing -----------------------------------------------------------------------------------------------


def items_that_differ(kind, harbor, mine):
    """Items of one side only, as pairs of the side and the item."""
    if kind in ("prompt", "answer"):
        theirs, own = collections.Counter(map(words, harbor)), collections.Counter(map(words, mine))
        shown = {words(text): text for text in [*harbor, *mine]}
        by_side = {side: {words(text): text for text in texts} for side, texts in (("harbor", harbor), ("ours", mine))}
    else:
        theirs, own = collections.Counter(harbor), collections.Counter(mine)
        shown, by_side = None, None
    for side, rest in (("harbor", theirs - own), ("ours", own - theirs)):
        for item, count in rest.items():
            for _ in range(count):
                yield side, by_side[side][item] if shown else item


def differences(log, harbor, mine):
    """Every difference of a log, as (kind, side, item, cause or None)."""
    for kind in KINDS:
        theirs, own = getattr(harbor, kind), getattr(mine, kind)
        for side, item in items_that_differ(kind, theirs, own):
            if kind in ("prompt", "answer"):
                cause_of_text = cause_of_prompt if kind == "prompt" else cause_of_answer
                cause = cause_of_text(side, item, log, own if side == "harbor" else theirs)
            else:
                cause = {"call": cause_of_call, "result": cause_of_result, "failure": cause_of_failure}[kind](side, item, log)
            yield kind, side, item, cause
    difference = minus(harbor.tokens, mine.tokens)
    if any(difference):
        causes = causes_of_tokens(log, difference)
        item = "input {:+}, output {:+}, cache_read {:+}".format(*difference)
        for cause in causes or (None,):
            yield "tokens", "harbor", item, cause


def convert(harbor, name, path):
    """Harbor's reading of a log; None when it makes nothing of it, and why."""
    try:
        reading = getattr(harbor, name)(path)
    except Exception as failure:  # noqa: BLE001, the converters raise whatever a strange record leads to
        return None, f"{type(failure).__name__}: {failure}".split("\n")[0][:120]
    return reading, None if reading else "no trajectory"


def compare(name, logs, mine, harbor, verbose):
    """Prints the differences of one provider; gives how many have no cause and which causes there were."""
    counts, used, unexplained, unread = collections.Counter(), collections.Counter(), 0, []
    for path in sorted(mine):
        reading, why = convert(harbor, name, pathlib.Path(path))
        shown = os.path.relpath(path, logs.parent)
        if reading is None:
            unread.append(f"{shown} ({why})")
            continue
        counts["logs"] += 1
        for kind in KINDS:
            counts[kind] += len(getattr(mine[path], kind))
        for kind, side, item, cause in differences(Log(name, pathlib.Path(path)), reading, mine[path]):
            unexplained += cause is None
            used[kind, side, cause] += 1
            if cause is None or verbose:
                print(f"  {shown}: {kind} of {side}: {str(item)[:100]!r}: {cause or 'UNEXPLAINED'}")
    total = ", ".join(f"{counts[kind]} {kind}s" for kind in KINDS)
    print(f"{name}: {counts['logs']} logs with {total}; {sum(used.values()) - unexplained} differences explained, {unexplained} not")
    for (kind, side, cause), count in sorted(used.items(), key=str):
        print(f"  {kind} only of {side}: {count} {cause or 'UNEXPLAINED'}")
    if unread:
        print(f"  not read by Harbor: {len(unread)}: {'; '.join(unread[:4])}")
    return unexplained, {cause for _, _, cause in used}, counts["logs"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sessions", type=pathlib.Path)
    parser.add_argument("logs", type=pathlib.Path)
    parser.add_argument("--provider", action="append", choices=PROVIDERS)
    parser.add_argument("-v", "--verbose", action="store_true", help="print explained differences too")
    options = parser.parse_args()
    unexplained, used, compared, absent = 0, set(), 0, []
    with tempfile.TemporaryDirectory(prefix="compare-harbor-") as scratch:
        scratch = pathlib.Path(scratch)
        for name in options.provider or PROVIDERS:
            logs = (options.logs / name).resolve()
            if not logs.is_dir():
                absent.append(name)
                continue
            mine = ours(options.sessions.resolve(), logs, scratch / f"{name}.store")
            rows, causes, read = compare(name, logs, mine, Harbor(scratch), options.verbose)
            unexplained, used, compared = unexplained + rows, used | causes, compared + read
    print()
    for cause in sorted(used & set(CAUSES)):
        print(f"{cause}: {CAUSES[cause]}")
    for name, why in NOT_CONVERTED.items():
        print(f"Not compared: {name}: {why}.")
    if absent:
        print(f"Not compared, as there is no folder of them: {', '.join(absent)}.")
    known = {*PROVIDERS, *(name for names in NOT_CONVERTED for name in names.split(", "))}
    for folder in sorted(path.name for path in options.logs.iterdir() if path.is_dir() and path.name not in known):
        print(f"UNEXPLAINED: {folder} is neither compared nor in `NOT_CONVERTED`.")
        unexplained += 1
    return 1 if unexplained else 0 if compared else 2


if __name__ == "__main__":
    sys.exit(main())
