#!/usr/bin/env python3
"""Compares the tokens that `sessions` counts with those of ccusage 20, by provider, day and model.

    python3 tests/compare_ccusage.py SESSIONS CCUSAGE LOGS [--provider NAME]... [-v] [--prove]

SESSIONS  the binary of this project (give it LD_LIBRARY_PATH if it needs that for libduckdb)
CCUSAGE   the native binary of ccusage, for example out of the npm package @ccusage/ccusage-linux-x64
LOGS      a folder with one folder of logs per provider: LOGS/claude, LOGS/codex, ...

Both read the same logs: ccusage out of a temporary tree in the layout it expects. Prints every
difference, and at the end what was compared and what was not; exit code 1 when a difference is not
explained or ccusage knows an agent that this script does not, 2 when nothing could be compared.

`--prove` shows that the reasons explain exact amounts: it changes one count in a copy of the logs, of
which `sessions` reads the copy alone, and expects a difference that is not explained.

A difference is explained when it is the sum of known reasons, each computed from the logs:
  rules   below (`RULES`), where ccusage and `sessions` count by different rules on purpose
  lines   of compare_ccusage.toml, which names file, line and reason
The reasons are counted independently of both programs, from the raw lines.
"""

import argparse
import collections
import datetime
import itertools
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import tomllib

FIELDS = ("input", "output", "cache_read", "cache_write")
ZERO = (0, 0, 0, 0)

# Our side: what is new in every request, once. Output without reasoning where ccusage keeps that apart.
OURS = """
SELECT strftime(timestamp, '%Y-%m-%d'), model, sum(input_tokens), sum(output_tokens),
       sum(cache_read_tokens), sum(cache_write_tokens), sum(reasoning_tokens)
FROM events WHERE event_type = 'token_usage' AND NOT is_replay AND timestamp IS NOT NULL
GROUP BY ALL
"""


def plus(a, b):
    return tuple(x + y for x, y in zip(a, b))


def minus(a, b):
    return tuple(x - y for x, y in zip(a, b))


def day_of(timestamp):
    try:
        time = datetime.datetime.fromisoformat(timestamp.replace("Z", "+00:00"))
    except (AttributeError, ValueError):
        return None
    return time.astimezone(datetime.timezone.utc).strftime("%Y-%m-%d") if time.tzinfo else None


def logs_of(folder, *endings):
    files = (pathlib.Path(dir) / name for dir, _, names in os.walk(folder) for name in names)
    return sorted(path for path in files if path.name.endswith(endings))


def day_of_seconds(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%d")


def rows_of(database, query):
    """The rows of a query to a database that is not changed; none if it lacks the table."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return list(connection.execute(query))
    except sqlite3.OperationalError:
        return []
    finally:
        connection.close()


def json_or_none(text):
    try:
        return json.loads(text)
    except ValueError:
        return None


# --- the trees that ccusage reads --------------------------------------------------------------------


def tree_of_links(name):
    """ccusage walks the folder `name` recursively: a link to the logs will do."""

    def build(logs, tree):
        (tree / name).symlink_to(logs.resolve(), target_is_directory=True)

    return build


def tree_of_copies(pattern, *endings):
    """Every log at a path of its own; `{n}` is a running number and `{end}` the ending."""

    def build(logs, tree):
        found = [p for p in logs_of(logs, *endings) if not p.name.endswith((".metadata.json", "projects.json"))]
        for n, path in enumerate(found):
            target = tree / pattern.format(n=n, end=path.suffix)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)

    return build


def tree_of_threads(logs, tree):
    """Amp's threads, under the names they have."""
    for path in logs_of(logs, ".json"):
        target = tree / "threads" / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def tree_of_openclaw(logs, tree):
    """OpenClaw's logs under the names they have, which tell copies apart."""
    for n, folder in enumerate(sorted({path.parent for path in logs_of(logs, "") if ".jsonl" in path.name})):
        target = tree / "agents" / str(n) / "sessions"
        shutil.copytree(folder, target, ignore=lambda _, names: [name for name in names if ".jsonl" not in name])


def tree_of_databases(inside):
    """Every database at its name in the folder `inside`."""

    def build(logs, tree):
        (tree / inside).mkdir(parents=True, exist_ok=True)
        for path in logs_of(logs, ".db", ".sqlite"):
            shutil.copyfile(path, tree / inside / path.name)

    return build


def tree_of_zcode(logs, tree):
    """ZCode repeats the counts of messages in the rows of `model_usage`, which are all that ccusage reads."""
    tree_of_databases("cli/db")(logs, tree)
    names = "id, session_id, started_at, model_id, provider_id, status, input_tokens, output_tokens, reasoning_tokens, "
    names += "cache_creation_input_tokens, cache_read_input_tokens, computed_total_tokens"
    for path in logs_of(tree, ".sqlite"):
        with sqlite3.connect(path) as connection:
            connection.execute("DROP TABLE model_usage")
            connection.execute(f"CREATE TABLE model_usage ({names})")
            for id, session, info, tokens in zcode_messages(path):
                place = (id, session, info["time"]["created"], info["modelID"], info["providerID"], "completed")
                read_in, out, cache = tokens["input"], tokens["output"], tokens["cache"]
                row = (*place, read_in, out, 0, cache["write"], cache["read"], read_in + out)
                connection.execute(f"INSERT INTO model_usage VALUES ({', '.join('?' * len(row))})", row)


def zcode_messages(path):
    for row in rows_of(path, "SELECT id, session_id, data FROM message"):
        info = json.loads(row["data"])
        if isinstance(info.get("tokens"), dict):
            yield row["id"], row["session_id"], info, info["tokens"]


def kilo_of_opencode(logs, folder):
    """Kilo's database is that of OpenCode 1 under another name."""
    for number, path in enumerate(logs_of(logs, ".db")):
        target = folder / str(number) / "kilo.db"
        target.parent.mkdir(parents=True)
        shutil.copyfile(path, target)
        with sqlite3.connect(target) as connection:
            for table in ("session_v2", "session_message"):
                connection.execute(f"DROP TABLE IF EXISTS {table}")


def grok_with_counts(logs, folder):
    """Grok's logs with an `updates.jsonl` next to each, which holds the counts of its turns."""
    if logs.is_dir():
        shutil.copytree(logs, folder)
    for number, path in enumerate(logs_of(folder, "chat_history.jsonl")):
        updates = []
        for turn, _ in enumerate(path.read_bytes().split(b"\n")[:5]):
            counts = {"inputTokens": 1000 + turn, "outputTokens": 90 + number, "cachedReadTokens": 400, "reasoningTokens": 7}
            usage = dict(counts, modelUsage={"grok-4.5": counts})
            params = {"sessionId": path.parent.name, "_meta": {"eventId": f"{number}-{turn}"}}
            params["update"] = {"sessionUpdate": "turn_completed", "usage": usage}
            updates.append(json.dumps({"timestamp": MADE_AT + turn, "params": params}, separators=(",", ":")))
        path.with_name("updates.jsonl").write_text("\n".join(updates) + "\n")


def tree_of_grok(logs, tree):
    for n, path in enumerate(logs_of(logs, "updates.jsonl")):
        shutil.copytree(path.parent, tree / "sessions" / "project" / str(n))


def hermes_database(_logs, folder):
    """A database of Hermes, in the schema of its source: a session with requests of its own and one for its title."""
    folder.mkdir(parents=True)
    with sqlite3.connect(folder / "state.db") as connection:
        connection.executescript(HERMES_TABLES)
        session = ("s1", "cli", "claude-sonnet-4-6", MADE_AT, 900, 90, 3000, 200, 20, 4)
        connection.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL)", session)
        for number, (role, text) in enumerate([("user", "Look"), ("assistant", "I look."), ("user", "And?"), ("assistant", "Done.")]):
            message = ("s1", role, text, MADE_AT + number)
            connection.execute("INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, ?, ?, ?)", message)
        usage = [("s1", "claude-sonnet-4-6", "", 900, 90, 3000, 200, 20), ("s1", "claude-haiku-4-5", "title", 300, 9, 0, 0, 0)]
        for row in usage:
            row = (*row, MADE_AT + 1, MADE_AT + 2)
            connection.execute(f"INSERT INTO session_model_usage VALUES ({', '.join('?' * len(row))})", row)


# When the logs that this script makes were written, in seconds.
MADE_AT = 1793000000

HERMES_TABLES = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, model TEXT, started_at REAL, input_tokens INTEGER,
    output_tokens INTEGER, cache_read_tokens INTEGER, cache_write_tokens INTEGER, reasoning_tokens INTEGER,
    message_count INTEGER, billing_provider TEXT, estimated_cost_usd REAL, actual_cost_usd REAL);
CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, timestamp REAL);
CREATE TABLE session_model_usage (session_id TEXT, model TEXT, task TEXT, input_tokens INTEGER,
    output_tokens INTEGER, cache_read_tokens INTEGER, cache_write_tokens INTEGER, reasoning_tokens INTEGER,
    first_seen REAL, last_seen REAL);
"""


def tree_of_opencode(logs, tree):
    """OpenCode's store has a file for every message; an exported session holds them in one."""
    tree_of_databases("")(logs, tree)
    for path in logs_of(logs, ".json"):
        document = json_or_none(path.read_text(errors="replace"))
        messages = document.get("messages") if isinstance(document, dict) else None
        for message in messages or []:
            info = message.get("info", {})
            if info.get("id") and info.get("sessionID"):
                target = tree / "storage/message" / info["sessionID"] / f"{info['id']}.json"
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(json.dumps(info))
        stored = [n for n, part in enumerate(path.parts) if part.startswith("storage")]
        if stored:
            target = tree.joinpath("storage", *path.parts[stored[0] + 1 :])
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


# The variable that points ccusage at its tree (HOME is the tree too), the part of the tree that it
# names, how the tree is made, whether ccusage leaves reasoning out of the output, and whether its days
# are those on which files were written, so that only whole sums can be compared.
Provider = collections.namedtuple("Provider", "variable inside build apart undated", defaults=(False, False))

PROVIDERS = {
    "claude": Provider("CLAUDE_CONFIG_DIR", "", tree_of_links("projects")),
    "codex": Provider("CODEX_HOME", "", tree_of_links("sessions")),
    "gemini": Provider("GEMINI_DATA_DIR", "", tree_of_copies("tmp/{n}/chats/session-{n}{end}", ".json", ".jsonl"), True),
    "opencode": Provider("OPENCODE_DATA_DIR", "", tree_of_opencode, True),
    "copilot": Provider("COPILOT_HOME", "", tree_of_copies("session-state/{n}/events.jsonl", ".jsonl")),
    "pi": Provider("PI_AGENT_DIR", "sessions", tree_of_copies("sessions/--{n}--/{n}.jsonl", ".jsonl")),
    "qwen": Provider("QWEN_DATA_DIR", "", tree_of_copies("projects/{n}/chats/{n}.jsonl", ".jsonl")),
    "kimi": Provider("KIMI_DATA_DIR", "", tree_of_copies("sessions/{n}/{n}/wire.jsonl", ".jsonl")),
    "amp": Provider("AMP_DATA_DIR", "", tree_of_threads),
    "droid": Provider("DROID_SESSIONS_DIR", "sessions", tree_of_links("sessions"), undated=True),
    "openclaw": Provider("OPENCLAW_DIR", "", tree_of_openclaw),
    "goose": Provider("GOOSE_PATH_ROOT", "", tree_of_databases("data/sessions")),
    "kilo": Provider("KILO_DATA_DIR", "", tree_of_databases(""), True),
    "zcode": Provider("ZCODE_HOME", "", tree_of_zcode),
    "grok": Provider("GROK_HOME", "", tree_of_grok),
    "hermes": Provider("HERMES_HOME", "", tree_of_databases("")),
}

# Providers whose logs are made if there are none with counts: the ending of such logs, and of whose logs and how.
MADE_OF = {
    "kilo": ("kilo.db", "opencode", kilo_of_opencode),
    "grok": ("updates.jsonl", "grok", grok_with_counts),
    "hermes": ("state.db", "hermes", hermes_database),
}

# Agents of ccusage that are not compared, and why. One that is neither here nor above is a failure.
OTHER_FILES = {
    "codebuff": "ccusage takes counts of the run state, too, which no known version of Codebuff writes",
    "antigravity": "ccusage reads conversations/*.db, `sessions` the transcripts, which hold no tokens",
}


# What ccusage calls a model where the log names none (with Codex it says so itself).
GUESSED = {"kimi": "kimi-for-coding", "qwen": "unknown"}

# What ccusage has before the name of a model: its own mark, and with Kimi Code the name that a person's
# settings give the model. `llm.request` records tell the name under which it was asked (`model` next
# to `modelAlias`), which is what has a price.
PREFIX = {"pi": "[pi] ", "openclaw": "[openclaw] ", "kimi": "moonshot-ai/"}


# --- running both ------------------------------------------------------------------------------------


def run(command, **variables):
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, **variables))
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def ours(binary, logs, store, apart):
    run([binary, "ingest", "--quiet", "--store", store, logs])
    rows = run([binary, "query", "--quiet", "--max-rows", "100000", "--output", "ndjson", "--store", store, OURS])
    counts = collections.defaultdict(lambda: ZERO)
    for day, model, *tokens in (json.loads(row).values() for row in rows.splitlines()):
        read_in, out, read, write, reasoning = (int(count or 0) for count in tokens)
        counts[day, model] = plus(counts[day, model], (read_in, out - reasoning * apart, read, write))
    return counts


def agents_of(binary):
    """The agents that ccusage has a command for."""
    return re.findall(r"^  (\w+) +Show .* usage commands$", run([binary, "--help"]), re.MULTILINE)


def theirs(binary, name, report, tree):
    provider = PROVIDERS[name]
    variables = {provider.variable: str(tree / provider.inside), "HOME": str(tree)}
    text = run([binary, name, report, "--json", "--offline", "--timezone", "UTC"], **variables)
    counts = collections.defaultdict(lambda: ZERO)
    for row in json.loads(text)[report]:
        period = row["date"] if report == "daily" else row["month"]
        models = row.get("modelBreakdowns") or [dict(m, modelName=k) for k, m in row.get("models", {}).items()]
        for model in models:
            # A model that ccusage took because the log names none is no model.
            label = model["modelName"].removeprefix(PREFIX.get(name, ""))
            if model.get("isFallback") or label == GUESSED.get(name):
                label = None
            keys = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheCreationTokens")
            tokens = tuple(model[key] for key in keys)
            counts[period, label] = plus(counts[period, label], tokens)
    return counts


# --- reasons: (rule, day, model, ccusage minus ours, file, line) -------------------------------------

Reason = collections.namedtuple("Reason", "rule day model tokens where")

RULES = {
    "agent_progress": "requests of subagents that stand only in `agent_progress` records, as their own log is "
    "missing. ccusage counts them in `daily` alone; they are real, so counting them is right.",
    "repeated": "lines of one message without requestId: ccusage 20.0.24 counts every time stamp again in `daily` "
    "alone (its later releases and its other reports do not). Once is right.",
    "spaced": "lines with a space behind \"usage\": ccusage looks for the bytes `\"usage\":{` only. Reading them is right.",
    "no_shutdown": "output that Copilot's messages name behind the last `session.shutdown`: ccusage reads the sums of "
    "shutdowns only, and a run that is open or was killed left none. The output was made, so counting it is right; "
    "what such a run read is in no record, and the session's confidence says `partial`.",
    "exec": "what `droid exec` printed as stream-json, with its usage; ccusage reads settings files only. Counting it is right.",
    "cached_twice": "Qwen's promptTokenCount includes cachedContentTokenCount, as with Gemini; ccusage counts the "
    "cached tokens as input and as cache reads. Once is right.",
    "replaced": "messages that stand only in a `$set` record, which replaces the list of messages; ccusage skips "
    "such records. Counting them is right.",
    "copies": "the same message of the same session in several files, earlier states of one log or forks "
    "that copy its beginning. ccusage adds them up; once is right.",
    "whole_copies": "logs that another log begins with, or equals. Where ccusage does not tell them apart it adds "
    "them up, as much as it counts in them alone; once is right.",
    "early": "requests of subagents whose first counts stand in a record of the parent, written while the response "
    "began. ccusage takes the first one in `daily` alone; what the subagent's own log says at the end is right.",
    "told_again": "a `StatusUpdate` of Kimi CLI that repeats the counts of a request (same message_id). ccusage adds it "
    "up; once is right.",
    "subagents": "requests of Kimi CLI's subagents, which are in `SubagentEvent` records of the parent's log. ccusage does "
    "not read those; they are real, so counting them is right.",
    "run_sums": "sums of a Copilot version whose `session.shutdown` counts one run: they fell since the last shutdown, or "
    "are what the messages of the run name. ccusage takes them for sums of the session and counts their growth.",
    "summaries": "requests of Pi for a summary, with their usage in `compaction` and `branch_summary` records; ccusage "
    "reads messages only. Counting them is right.",
    "openai_cache": "input of OpenAI's models, which Amp names `cacheCreationInputTokens` although these models charge "
    "nothing for writing to the cache. ccusage takes the name; plain input is right.",
    "thoughts_apart": "tokens of reasoning in Qwen Code that the total shows to be apart from the output; they are charged "
    "as output, and ccusage drops them.",
    "cache_inside": "ccusage reads the sums of Goose's sessions, whose input includes the cache; the rows of `usage_ledger` "
    "tell them apart.",
    "other_model": "a row of Goose's `usage_ledger` of another model or day than the session, as whose ccusage counts it.",
    "not_in_sums": "a compression in Goose's `usage_ledger` that the sums of the session do not include. ccusage reads the "
    "sums only; it was a request, so counting it is right.",
    "older_files": "sessions of Goose in files from before its database, which ccusage does not read.",
    "tasks": "requests of Hermes for titles and the like, which are only in `session_model_usage`; ccusage reads the sums "
    "of sessions, which do not include them. Counting them is right.",
    "other_agent": "responses of Claude Code, Codex or Gemini CLI that ZCode ran: these have logs of their own, so counting "
    "them there, and once, is right.",
    "compaction": "the request that wrote a summary: Kimi's `usage.record` with usageScope session, after an "
    "`llm.request` of the kind compaction. ccusage takes it for a running total and drops it. It is a request of its "
    "own, so counting it is right.",
    "reasoning_inside": "OpenCode's messages whose total is the sum without reasoning: there reasoning is part of the "
    "output. Ours is compared without reasoning, as ccusage leaves it out where it is next to the output.",
    "own_requests": "requests of Qwen Code itself, such as for a title, which only its telemetry reports "
    "(`qwen-code.api_response`). ccusage reads responses only; counting them is right.",
}


def claude_tokens(usage):
    parts = usage.get("cache_creation")
    if isinstance(parts, dict):
        written = sum(parts.get(f"ephemeral_{time}_input_tokens") or 0 for time in ("5m", "1h"))
    else:
        written = usage.get("cache_creation_input_tokens") or 0
    return (usage["input_tokens"], usage["output_tokens"], usage.get("cache_read_input_tokens") or 0, written)


def claude_lines(logs):
    """Every line with usage: whether it is progress, its request, session, day, model, tokens, place."""
    for path in logs_of(logs, ".jsonl"):
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
            record = json_or_none(line) if b'"usage"' in line else None
            if not isinstance(record, dict):
                continue
            data = record.get("data")
            progress = data.get("message") if isinstance(data, dict) else None
            inner = progress if isinstance(progress, dict) else record
            message = inner.get("message")
            usage = message.get("usage") if isinstance(message, dict) else None
            day = day_of(inner.get("timestamp"))
            if not isinstance(usage, dict) or "input_tokens" not in usage or not day:
                continue
            if message.get("model") in (None, "<synthetic>"):
                continue
            yield {
                "progress": inner is progress,
                "path": str(path),
                "id": message.get("id"),
                "request": inner.get("requestId"),
                "session": record.get("sessionId"),
                "time": inner["timestamp"],
                "key": (day, message["model"]),
                "tokens": claude_tokens(usage),
                "compact": b'"usage":{' in line,
                "where": f"{path.relative_to(logs.parent)}:{number}",
            }


def largest(lines):
    return max(lines, key=lambda line: sum(line["tokens"]))


def claude_reasons(logs, report):
    lines = list(claude_lines(logs))
    recorded = {line["id"] for line in lines if not line["progress"]}
    requests = collections.defaultdict(list)
    for line in lines:
        if line["id"]:
            requests[line["id"], line["request"], line["session"]].append(line)
    for (message, request, _), group in requests.items():
        once = largest(group)
        only_progress = all(line["progress"] for line in group)
        if not any(line["compact"] for line in group):
            yield Reason("spaced", *once["key"], minus(ZERO, once["tokens"]), once["where"])
        elif only_progress and message in recorded:
            continue
        elif only_progress:
            # Only `daily` counts them: more than ours as long as we do not, the others less once we do.
            tokens = once["tokens"] if report == "daily" else minus(ZERO, once["tokens"])
            yield Reason("agent_progress", *once["key"], tokens, once["where"])
        if report == "daily" and (first := min(group, key=lambda line: line["path"]))["progress"]:
            in_parent = largest(line for line in group if line["path"] == first["path"])
            if in_parent["tokens"] != once["tokens"]:
                yield Reason("early", *once["key"], minus(in_parent["tokens"], once["tokens"]), first["where"])
        if request is None and report == "daily":
            times = collections.defaultdict(list)
            for line in group:
                times[line["time"]].append(line)
            for line in (largest(again) for again in times.values() if once not in again):
                yield Reason("repeated", *line["key"], line["tokens"], line["where"])


def gemini_messages(path):
    """The messages of a log with tokens, by id: those ccusage reads, and those in `$set` only."""
    text = path.read_text(errors="replace")
    whole = json_or_none(text)
    records = [whole] if isinstance(whole, dict) else map(json_or_none, text.splitlines())
    session, read, replaced = None, {}, {}
    for record in (record for record in records if isinstance(record, dict)):
        session = session or record.get("sessionId")
        update = record.get("$set")
        lists = ((update, replaced), ({"messages": [record]}, read), (record, read))
        for holder, found in lists:
            for message in (holder.get("messages") or []) if isinstance(holder, dict) else []:
                if isinstance(message, dict) and isinstance(message.get("tokens"), dict) and message.get("id"):
                    found[message["id"]] = message
    return session, read, {id: message for id, message in replaced.items() if id not in read}


def gemini_reasons(logs, _report):
    seen = set()
    for path in logs_of(logs, ".json", ".jsonl"):
        session, read, replaced = gemini_messages(path)
        for rule, messages in (("copies", read), ("replaced", replaced)):
            for id, message in messages.items():
                tokens, day = message["tokens"], day_of(message.get("timestamp"))
                cached = tokens.get("cached") or 0
                read_in = max((tokens.get("input") or 0) - cached, 0) + (tokens.get("tool") or 0)
                counts = (read_in, tokens.get("output") or 0, cached, 0)
                where = f"{path.relative_to(logs.parent)}: message {id}"
                if rule == "replaced":
                    yield Reason(rule, day, message.get("model"), minus(ZERO, counts), where)
                elif (session, id) in seen:
                    yield Reason(rule, day, message.get("model"), counts, where)
                seen.add((session, id))


def qwen_own_requests(logs):
    """Requests that telemetry reports and no response has: those whose counts no record repeats."""
    seen = set()
    for path in logs_of(logs, ".jsonl"):
        reported, answered = [], collections.Counter()
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
            record = json_or_none(line)
            record = record if isinstance(record, dict) else {}
            usage = record.get("usageMetadata")
            if isinstance(usage, dict):
                answered[usage.get("promptTokenCount"), usage.get("candidatesTokenCount")] += 1
            payload = record.get("systemPayload")
            event = payload.get("uiEvent") if isinstance(payload, dict) else None
            if not isinstance(event, dict) or event.get("event.name") != "qwen-code.api_response":
                continue
            if not event.get("subagent_name") and day_of(record.get("timestamp")):
                reported.append((number, record, event))
        for number, record, event in reported:
            read_in, out = event.get("input_token_count") or 0, event.get("output_token_count") or 0
            if answered[read_in, out]:
                answered[read_in, out] -= 1
                continue
            if record.get("uuid") in seen:
                continue
            seen.add(record.get("uuid"))
            cached = event.get("cached_content_token_count") or 0
            counts = minus(ZERO, (max(read_in - cached, 0), out, cached, 0))
            where = f"{path.relative_to(logs.parent)}:{number}"
            yield Reason("own_requests", day_of(record["timestamp"]), event.get("model"), counts, where)


def qwen_reasons(logs, _report):
    yield from qwen_own_requests(logs)
    seen = set()
    for path in logs_of(logs, ".jsonl"):
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
            record = json_or_none(line) if b"usageMetadata" in line else None
            usage = record.get("usageMetadata") if isinstance(record, dict) else None
            if not isinstance(usage, dict) or not day_of(record.get("timestamp")):
                continue
            names = ("promptTokenCount", "candidatesTokenCount", "cachedContentTokenCount", "thoughtsTokenCount")
            read_in, out, cached, thoughts = (usage.get(name) or 0 for name in names)
            place = day_of(record["timestamp"]), record.get("model")
            where = f"{path.relative_to(logs.parent)}:{number}"
            if record.get("uuid") and (record["uuid"], number) in seen:
                yield Reason("copies", *place, (read_in, out, cached, 0), where)
                continue
            seen.add((record.get("uuid"), number))
            yield Reason("cached_twice", *place, (cached, 0, 0, 0), where)
            if thoughts and usage.get("totalTokenCount") == read_in + out + thoughts:
                yield Reason("thoughts_apart", *place, (0, -thoughts, 0, 0), where)


# The records of Copilot that name the model of what follows, and the field with the name.
COPILOT_MODELS = {
    "session.start": "selectedModel",
    "session.resume": "selectedModel",
    "session.model_change": "newModel",
    "session.auto_mode_resolved": "chosenModel",
    "session.shutdown": "currentModel",
    "assistant.message": "model",
}


def copilot_reasons(logs, _report):
    yield from copilot_run_sums(logs)
    for path in logs_of(logs, ".jsonl"):
        calls, model = {}, None
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
            record = json_or_none(line)
            data = record.get("data") if isinstance(record, dict) else None
            if not isinstance(data, dict):
                continue
            kind = record.get("type")
            field = "model" if str(kind).startswith("tool.") else COPILOT_MODELS.get(kind)
            if field and not record.get("agentId") and data.get(field) not in (None, "", "auto"):
                model = data[field]
            if kind == "session.shutdown":
                calls = {}
            elif kind == "assistant.message" and day_of(record.get("timestamp")):
                # The pieces of one response repeat its count.
                calls[data.get("apiCallId") or number] = number, record["timestamp"], data, model
        # Outputs before the first record with a model have the next one, as there is no shutdown.
        for number, time, data, named in calls.values():
            counts = (0, -(data.get("outputTokens") or 0), 0, 0)
            where = f"{path.relative_to(logs.parent)}:{number}"
            yield Reason("no_shutdown", day_of(time), data.get("model") or named or model, counts, where)


def copilot_sums(data):
    """The sums of a shutdown by model."""
    sums = {}
    for model, metrics in (data.get("modelMetrics") or {}).items():
        usage = (metrics.get("usage") if isinstance(metrics, dict) else None) or {}
        names = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")
        read_in, out, read, written = (usage.get(name) or 0 for name in names)
        sums[model] = (read_in - read - written, out, read, written)
    return sums


def copilot_run_sums(logs):
    """The sums of single runs, where ccusage counts how much they exceed those of the last run."""
    for path in logs_of(logs, ".jsonl"):
        responses, before = {}, {}
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
            record = json_or_none(line)
            data = record.get("data") if isinstance(record, dict) else None
            if not isinstance(data, dict):
                continue
            if record.get("type") == "assistant.message":
                responses[data.get("apiCallId") or number] = data.get("outputTokens") or 0
            if record.get("type") != "session.shutdown":
                continue
            sums = copilot_sums(data)
            growth = {model: minus(counts, before.get(model, ZERO)) for model, counts in sums.items()}
            is_total = before.keys() <= sums.keys() and all(min(counts) >= 0 for counts in growth.values())
            is_total &= sum(counts[1] for counts in growth.values()) >= sum(responses.values())
            for model in before.keys() & sums.keys() if not is_total else ():
                counted = tuple(max(count, 0) for count in growth[model])
                where = f"{path.relative_to(logs.parent)}:{number}"
                yield Reason("run_sums", day_of(record.get("timestamp")), model, minus(counted, sums[model]), where)
            responses, before = {}, sums


def pi_reasons(logs, _report):
    seen = set()
    for path in logs_of(logs, ".jsonl"):
        model = None
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
            record = json_or_none(line) if b'"usage"' in line else None
            record = record if isinstance(record, dict) else {}
            is_summary = record.get("type") in ("compaction", "branch_summary")
            message = record if is_summary else record.get("message")
            usage = message.get("usage") if isinstance(message, dict) else None
            if not isinstance(usage, dict) or not record.get("id") or not day_of(record.get("timestamp")):
                continue
            key = record["id"], record["timestamp"]
            model = message.get("model") or model
            counts = tuple(usage.get(name) or 0 for name in ("input", "output", "cacheRead", "cacheWrite"))
            where = f"{path.relative_to(logs.parent)}:{number}"
            if is_summary and key not in seen:
                yield Reason("summaries", day_of(record["timestamp"]), model, minus(ZERO, counts), where)
            elif key in seen and not is_summary:
                yield Reason("copies", day_of(record["timestamp"]), model, counts, where)
            seen.add(key)


def kimi_cli_reasons(path, where):
    """Requests of subagents, and those whose counts are told again."""
    seen = set()
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        record = json_or_none(line) if b"StatusUpdate" in line else None
        message = record.get("message") if isinstance(record, dict) else None
        if not isinstance(message, dict):
            continue
        is_subagent = message.get("type") == "SubagentEvent"
        payload = message.get("payload") or {}
        payload = (payload.get("event") or {}).get("payload") or {} if is_subagent else payload
        usage, request = payload.get("token_usage"), payload.get("message_id")
        if not isinstance(usage, dict) or not request:
            continue
        names = ("input_other", "output", "input_cache_read", "input_cache_creation")
        counts = tuple(usage.get(name) or 0 for name in names)
        day = day_of_seconds(record.get("timestamp") or 0)
        if is_subagent and request not in seen:
            yield Reason("subagents", day, None, minus(ZERO, counts), f"{where}:{number}")
        elif request in seen and not is_subagent:
            yield Reason("told_again", day, None, counts, f"{where}:{number}")
        seen.add(request)


def kimi_reasons(logs, _report):
    for path in logs_of(logs, ".jsonl"):
        yield from kimi_cli_reasons(path, path.relative_to(logs.parent))
        model = None
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
            record = json_or_none(line) if b'"type"' in line else None
            record = record if isinstance(record, dict) else {}
            if record.get("type") == "llm.request":
                model = record.get("model") if record.get("kind") == "compaction" else None
            usage = record.get("usage")
            is_session = record.get("type") == "usage.record" and record.get("usageScope") == "session"
            if not is_session or not model or not isinstance(usage, dict):
                continue
            day = day_of_seconds((record.get("time") or 0) / 1000)
            names = ("inputOther", "output", "inputCacheRead", "inputCacheCreation")
            counts = minus(ZERO, [usage.get(name) or 0 for name in names])
            where = f"{path.relative_to(logs.parent)}:{number}"
            yield Reason("compaction", day, model, counts, where)
            model = None


def opencode_reasons(logs, _report):
    seen = set()
    for path in logs_of(logs, ".json"):
        document = json_or_none(path.read_text(errors="replace"))
        document = document if isinstance(document, dict) else {}
        stored = [document] if document.get("role") else []
        for info in [m.get("info", {}) for m in document.get("messages") or [] if isinstance(m, dict)] + stored:
            tokens = info.get("tokens")
            created = (info.get("time") or {}).get("created")
            if not isinstance(tokens, dict) or info.get("id") in seen or not created:
                continue
            seen.add(info.get("id"))
            cache, reasoning = tokens.get("cache") or {}, tokens.get("reasoning") or 0
            parts = (tokens.get("input"), tokens.get("output"), cache.get("read"), cache.get("write"))
            if reasoning and tokens.get("total") == sum(part or 0 for part in parts):
                day = day_of_seconds(created / 1000)
                where = f"{path.relative_to(logs.parent)}: message {info.get('id')}"
                yield Reason("reasoning_inside", day, info.get("modelID"), (0, reasoning, 0, 0), where)


def droid_reasons(logs, _report):
    for path in logs_of(logs, ".jsonl"):
        model = None
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
            record = json_or_none(line)
            record = record if isinstance(record, dict) else {}
            model = record.get("model") or model
            usage = record.get("usage")
            if record.get("type") == "completion" and isinstance(usage, dict):
                names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
                counts = minus(ZERO, [usage.get(name) or 0 for name in names])
                where = f"{path.relative_to(logs.parent)}:{number}"
                yield Reason("exec", None, model, counts, where)


def amp_reasons(logs, _report):
    for path in logs_of(logs, ".json"):
        document = json_or_none(path.read_text(errors="replace"))
        for message in (document.get("messages") or []) if isinstance(document, dict) else []:
            usage = message.get("usage") or {}
            written, day = usage.get("cacheCreationInputTokens") or 0, day_of(usage.get("timestamp"))
            if written and day and not usage.get("inputTokens"):
                where = f"{path.relative_to(logs.parent)}: message {message.get('messageId')}"
                yield Reason("openai_cache", day, usage.get("model"), (-written, 0, 0, written), where)


def goose_reasons(logs, _report):
    for path in logs_of(logs, ".db"):
        ledger = collections.defaultdict(list)
        for row in rows_of(path, "SELECT * FROM usage_ledger"):
            ledger[row["session_id"]].append(row)
        for session in rows_of(path, "SELECT * FROM sessions"):
            rows = ledger[session["id"]]
            missing = (session["accumulated_total_tokens"] or 0) - sum(row["total_tokens"] for row in rows)
            compressions = [row for row in rows if row["is_compaction"]]
            is_next_to_it = missing < 0 and missing == -sum(row["total_tokens"] for row in compressions)
            place = session["created_at"][:10], json.loads(session["model_config_json"] or "{}").get("model_name")
            for row in rows:
                where = f"{path.relative_to(logs.parent)}: ledger {row['id']}"
                own_place = day_of_seconds(row["created_timestamp"]), row["model"]
                counts = (row["input_tokens"], row["output_tokens"], 0, 0)
                read, written = row["cache_read_tokens"] or 0, row["cache_write_tokens"] or 0
                yield Reason("cache_inside", *own_place, (read + written, 0, -read, -written), where)
                if is_next_to_it and row["is_compaction"]:
                    yield Reason("not_in_sums", *own_place, minus(ZERO, counts), where)
                elif own_place != place:
                    yield Reason("other_model", *own_place, minus(ZERO, counts), where)
                    yield Reason("other_model", *place, counts, where)
    for path in logs_of(logs, ".jsonl"):
        header, *messages = map(json_or_none, path.read_text(errors="replace").splitlines())
        counts = (header.get("accumulated_input_tokens") or 0, header.get("accumulated_output_tokens") or 0, 0, 0)
        day = day_of_seconds(messages[0]["created"]) if messages else None
        yield Reason("older_files", day, None, minus(ZERO, counts), str(path.relative_to(logs.parent)))


def hermes_reasons(logs, _report):
    for path in logs_of(logs, ".db"):
        for row in rows_of(path, "SELECT * FROM session_model_usage WHERE task <> ''"):
            names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
            where = f"{path.relative_to(logs.parent)}: {row['task']} of {row['session_id']}"
            yield Reason("tasks", day_of_seconds(row["first_seen"]), row["model"], minus(ZERO, [row[name] for name in names]), where)


def zcode_reasons(logs, _report):
    for path in logs_of(logs, ".sqlite"):
        for id, _, info, tokens in zcode_messages(path):
            if info["providerID"] in ("anthropic", "openai", "google"):
                read, written = tokens["cache"]["read"], tokens["cache"]["write"]
                counts = (tokens["input"] - read - written, tokens["output"], read, written)
                day = day_of_seconds(info["time"]["created"] / 1000)
                where = f"{path.relative_to(logs.parent)}: message {id}"
                yield Reason("other_agent", day, info["modelID"], counts, where)


REASONS = {
    "claude": claude_reasons,
    "gemini": gemini_reasons,
    "qwen": qwen_reasons,
    "copilot": copilot_reasons,
    "kimi": kimi_reasons,
    "opencode": opencode_reasons,
    "openclaw": pi_reasons,
    "pi": pi_reasons,
    "droid": droid_reasons,
    "amp": amp_reasons,
    "goose": goose_reasons,
    "zcode": zcode_reasons,
    "hermes": hermes_reasons,
}


def whole_copies(logs):
    """The logs that another log begins with, or equals."""
    texts = sorted((path.read_bytes(), path) for path in logs_of(logs, ""))
    pairs = itertools.pairwise(texts)
    return {path for (text, path), (following, _) in pairs if text and following.startswith(text)}


def link_logs(logs, paths, folder):
    """Makes a folder with some of the logs, under their names."""
    for path in paths:
        target = folder / path.relative_to(logs)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(path.resolve())
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def reasons(ccusage, name, report, logs, scratch):
    """All reasons of a provider. Those of a copy are what ccusage counts in it."""
    copies = whole_copies(logs)
    once = scratch / "once" / name
    if not once.exists():
        link_logs(logs, set(logs_of(logs, "")) - copies, once)
    yield from REASONS.get(name, lambda *_: ())(once, report)
    if copies and name != "claude":
        tree = scratch / "copies" / name
        tree.mkdir(parents=True)
        PROVIDERS[name].build(link_logs(logs, copies, scratch / "copied" / name), tree)
        for (day, model), tokens in theirs(ccusage, name, report, tree).items():
            yield Reason("whole_copies", day, model, tokens, f"{len(copies)} logs")


# A count of output in a log of any agent.
COUNT = re.compile(rb'("(?:output_tokens|outputTokens|output|candidatesTokenCount)": ?)([1-9][0-9]*)')


def changed_logs(logs, folder):
    """Copies the logs again and again, each time with another count changed by one."""
    for path in logs_of(logs, ".jsonl", ".json"):
        text = path.read_bytes()
        for found in itertools.islice(COUNT.finditer(text), 20):
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(logs, folder)
            changed = text[: found.start()] + one_more(found) + text[found.end() :]
            (folder / path.relative_to(logs)).write_bytes(changed)
            yield f"{path.relative_to(logs.parent)}: {found[0].decode()}"
    for path in logs_of(logs, ".db", ".sqlite"):
        columns = [(table, "output_tokens") for table in ("usage_ledger", "sessions")]
        for table, column in [*columns, ("message", "data"), ("part", "data")]:
            for row in rows_of(path, f"SELECT rowid AS place, {column} AS value FROM {table}"):
                shutil.rmtree(folder, ignore_errors=True)
                shutil.copytree(logs, folder)
                is_count = column == "output_tokens"
                more = (row["value"] or 0) + 1 if is_count else COUNT.sub(one_more, row["value"].encode(), 1).decode()
                with sqlite3.connect(folder / path.relative_to(logs)) as connection:
                    connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (more, row["place"]))
                yield f"{path.relative_to(logs.parent)}: {table} {row['place']}"


def one_more(found):
    return found[1] + str(int(found[2]) + 1).encode()


def lines_of_table(table, name):
    for entry in table.get("line", []):
        if entry["provider"] == name:
            tokens = tuple(entry["ccusage_minus_ours"].get(field, 0) for field in FIELDS)
            where = f"{entry['file']}:{entry['line']}"
            yield Reason(where, entry["day"], entry["model"], tokens, where)


def explanation(difference, reasons):
    """The fewest kinds of reasons whose sums are the difference, or None."""
    kinds = collections.defaultdict(lambda: ZERO)
    for reason in reasons:
        kinds[reason.rule] = plus(kinds[reason.rule], reason.tokens)
    for size in range(len(kinds) + 1):
        for chosen in itertools.combinations(kinds, size):
            total = ZERO
            for kind in chosen:
                total = plus(total, kinds[kind])
            if total == difference:
                return chosen
    return None


# --- comparing ---------------------------------------------------------------------------------------


def compare(name, report, ours_by_day, ccusage, reasons, verbose):
    """Prints the differences of one report; gives the numbers of equal, explained and other rows."""
    length = 0 if PROVIDERS[name].undated else len("2026-01-01" if report == "daily" else "2026-01")
    cut = lambda day: (day or "")[:length]
    mine, other = collections.defaultdict(lambda: ZERO), collections.defaultdict(lambda: ZERO)
    for counts, rows in ((ours_by_day, mine), (ccusage, other)):
        for (day, model), tokens in counts.items():
            rows[cut(day), model] = plus(rows[cut(day), model], tokens)
    by_row = collections.defaultdict(list)
    for reason in reasons:
        by_row[cut(reason.day), reason.model].append(reason)
    counts = collections.Counter()
    used = collections.defaultdict(list)
    for row in sorted(set(mine) | set(other), key=str):
        difference = minus(other[row], mine[row])
        if difference == ZERO:
            counts["equal"] += mine[row] != ZERO
            continue
        chosen = explanation(difference, by_row[row])
        counts["unexplained" if chosen is None else "explained"] += 1
        if chosen is None or verbose:
            tokens = ", ".join(f"{field} {count:+}" for field, count in zip(FIELDS, difference) if count)
            why = "UNEXPLAINED" if chosen is None else ", ".join(chosen)
            print(f"  {row[0]} {row[1] or '(no model)'}: ccusage {tokens}: {why}")
        for reason in by_row[row]:
            if reason.rule in (chosen or ()):
                used[reason.rule].append(reason)
    rows = "sums by model" if PROVIDERS[name].undated else "rows"
    equal = f"{counts['equal']} {rows} equal" if other or mine else "neither counts a token"
    print(f"{name} {report}: {equal}, {counts['explained']} explained, {counts['unexplained']} not")
    for rule, found in used.items():
        total = ZERO
        for reason in found:
            total = plus(total, reason.tokens)
        tokens = ", ".join(f"{field} {count:+}" for field, count in zip(FIELDS, total) if count)
        print(f"  {rule}: {len(found)} requests, ccusage {tokens}; first {found[0].where}")
    return counts, set(used)


def changed_counts(binary, logs, scratch, counts, provider):
    """What `sessions` counts after one count of the logs was changed. Not all counts of a log are counted."""
    for number, place in enumerate(changed_logs(logs, scratch / "changed" / logs.name)):
        changed = ours(binary, scratch / "changed" / logs.name, scratch / f"{logs.name}.{number}.store", provider.apart)
        if changed != counts:
            print(f"{logs.name}: changed {place}")
            return changed
    sys.exit(f"{logs.name}: no count was changed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sessions", type=pathlib.Path)
    parser.add_argument("ccusage", type=pathlib.Path)
    parser.add_argument("logs", type=pathlib.Path)
    parser.add_argument("--provider", action="append", choices=PROVIDERS)
    parser.add_argument("--prove", action="store_true", help="change a count and expect an unexplained difference")
    parser.add_argument("-v", "--verbose", action="store_true", help="print explained rows too")
    options = parser.parse_args()
    table = tomllib.loads(pathlib.Path(__file__).with_suffix(".toml").read_text())
    unexplained, used, compared, absent, made, found_changes = 0, set(), [], [], [], set()
    with tempfile.TemporaryDirectory(prefix="compare-ccusage-") as scratch:
        for name in options.provider or PROVIDERS:
            logs = options.logs / name
            ending, other, make = MADE_OF.get(name, ("", name, None))
            if make and not logs_of(logs, ending):
                logs = pathlib.Path(scratch) / "made" / name
                make(options.logs / other, logs)
                made += [name] if logs.is_dir() else []
            if not logs.is_dir():
                absent.append(name)
                continue
            provider, tree = PROVIDERS[name], pathlib.Path(scratch) / name
            counts = ours(options.sessions.resolve(), logs, pathlib.Path(scratch) / f"{name}.store", provider.apart)
            if options.prove:
                counts = changed_counts(options.sessions.resolve(), logs, pathlib.Path(scratch), counts, provider)
            compared.append(name)
            tree.mkdir()
            provider.build(logs, tree)
            for report in ("daily", "monthly") if name == "claude" else ("daily",):
                ccusage_binary = options.ccusage.resolve()
                found = list(reasons(ccusage_binary, name, report, logs, pathlib.Path(scratch)))
                found += lines_of_table(table, name)
                ccusage = theirs(ccusage_binary, name, report, tree)
                rows, rules = compare(name, report, counts, ccusage, found, options.verbose)
                unexplained += rows["unexplained"]
                if rows["unexplained"]:
                    found_changes.add(name)
                used |= rules
    print()
    for rule in sorted(used & set(RULES)):
        print(f"{rule}: {RULES[rule]}")
    for entry in table.get("line", []):
        where = f"{entry['file']}:{entry['line']}"
        if where in used:
            print(f"{where}: {entry['reason']}")
    whole = [name for name in compared if PROVIDERS[name].undated]
    print(f"\nCompared, by day and model: {', '.join(name for name in compared if name not in whole) or 'nothing'}.")
    if whole:
        print(f"Compared by model, as ccusage takes the day on which a file was written: {', '.join(whole)}.")
    if made:
        print(f"Compared on logs that this script made, as there are none with counts: {', '.join(made)}.")
    if absent:
        print(f"Not compared, as there is no folder of them: {', '.join(absent)}.")
    for name, why in OTHER_FILES.items():
        print(f"Not comparable: {name}: {why}.")
    for name in sorted(set(agents_of(options.ccusage.resolve())) - {*PROVIDERS, *OTHER_FILES}):
        print(f"UNEXPLAINED: ccusage reads {name}, which is neither compared nor in `OTHER_FILES`.")
        unexplained += 1
    if options.prove:
        missed = [name for name in compared if name not in found_changes]
        print(f"Not noticed: {', '.join(missed) or 'nothing'}.")
        return 1 if missed else 0
    return 1 if unexplained else 0 if compared else 2


if __name__ == "__main__":
    sys.exit(main())
