#!/usr/bin/env python3
"""Compares the tokens that `sessions` counts with those of ccusage 20, by provider, day and model.

    python3 tests/compare_ccusage.py SESSIONS CCUSAGE LOGS [--provider NAME]... [-v] [--prove]

SESSIONS  the binary of this project (give it LD_LIBRARY_PATH if it needs that for libduckdb)
CCUSAGE   the native binary of ccusage, for example out of the npm package @ccusage/ccusage-linux-x64
LOGS      a folder with one folder of logs per provider: LOGS/claude, LOGS/codex, ...

Both read the same logs: ccusage out of a temporary tree in the layout it expects. Prints every
difference, and at the end what was compared and what was not; exit code 1 when a difference is not
explained, 2 when nothing could be compared.

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


def tree_of_opencode(logs, tree):
    """OpenCode's store has a file for every message; an exported session holds them in one."""
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
}

# Providers that both know, but by different files.
OTHER_FILES = {
    "antigravity": "ccusage reads conversations/*.db, `sessions` the transcripts, which hold no tokens",
    "grok": "the logs have no updates.jsonl, in which both find the tokens",
    "hermes": "the logs have no state.db, in which both find the tokens",
}


# What ccusage calls a model where the log names none (with Codex it says so itself).
GUESSED = {"kimi": "kimi-for-coding"}

# What ccusage has before the name of a model: its own mark, and with Kimi Code the name that a person's
# settings give the model. `llm.request` records tell the name under which it was asked (`model` beside
# `modelAlias`), which is what has a price.
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
    "repeated": "lines of one message without requestId: ccusage 20.0.24 counts every time stamp anew in `daily` "
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
                reported.append((number, record["timestamp"], event))
        for number, time, event in reported:
            read_in, out = event.get("input_token_count") or 0, event.get("output_token_count") or 0
            if answered[read_in, out]:
                answered[read_in, out] -= 1
                continue
            cached = event.get("cached_content_token_count") or 0
            counts = minus(ZERO, (max(read_in - cached, 0), out, cached, 0))
            where = f"{path.relative_to(logs.parent)}:{number}"
            yield Reason("own_requests", day_of(time), event.get("model"), counts, where)


def qwen_reasons(logs, _report):
    yield from qwen_own_requests(logs)
    for path in logs_of(logs, ".jsonl"):
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
            record = json_or_none(line) if b"cachedContentTokenCount" in line else None
            usage = record.get("usageMetadata") if isinstance(record, dict) else None
            if isinstance(usage, dict) and day_of(record.get("timestamp")):
                counts = (usage.get("cachedContentTokenCount") or 0, 0, 0, 0)
                where = f"{path.relative_to(logs.parent)}:{number}"
                yield Reason("cached_twice", day_of(record["timestamp"]), record.get("model"), counts, where)


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


def pi_reasons(logs, _report):
    seen = set()
    for path in logs_of(logs, ".jsonl"):
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
            record = json_or_none(line) if b'"usage"' in line else None
            message = record.get("message") if isinstance(record, dict) else None
            usage = message.get("usage") if isinstance(message, dict) else None
            if not isinstance(usage, dict) or not record.get("id") or not day_of(record.get("timestamp")):
                continue
            key = record["id"], record["timestamp"]
            if key in seen:
                counts = tuple(usage.get(name) or 0 for name in ("input", "output", "cacheRead", "cacheWrite"))
                where = f"{path.relative_to(logs.parent)}:{number}"
                yield Reason("copies", day_of(record["timestamp"]), message.get("model"), counts, where)
            seen.add(key)


def kimi_reasons(logs, _report):
    for path in logs_of(logs, ".jsonl"):
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
            time = datetime.datetime.fromtimestamp((record.get("time") or 0) / 1000, datetime.timezone.utc)
            names = ("inputOther", "output", "inputCacheRead", "inputCacheCreation")
            counts = minus(ZERO, [usage.get(name) or 0 for name in names])
            where = f"{path.relative_to(logs.parent)}:{number}"
            yield Reason("compaction", time.strftime("%Y-%m-%d"), model, counts, where)
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
                day = datetime.datetime.fromtimestamp(created / 1000, datetime.timezone.utc).strftime("%Y-%m-%d")
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
            more = found[1] + str(int(found[2]) + 1).encode()
            (folder / path.relative_to(logs)).write_bytes(text[: found.start()] + more + text[found.end() :])
            yield f"{path.relative_to(logs.parent)}: {found[0].decode()}"


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
    unexplained, used, compared, absent, found_changes = 0, set(), [], [], set()
    with tempfile.TemporaryDirectory(prefix="compare-ccusage-") as scratch:
        for name in options.provider or PROVIDERS:
            logs = options.logs / name
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
    if absent:
        print(f"Not compared, as there is no folder of them: {', '.join(absent)}.")
    for name, why in OTHER_FILES.items():
        print(f"Not comparable: {name}: {why}.")
    if options.prove:
        missed = [name for name in compared if name not in found_changes]
        print(f"Not noticed: {', '.join(missed) or 'nothing'}.")
        return 1 if missed else 0
    return 1 if unexplained else 0 if compared else 2


if __name__ == "__main__":
    sys.exit(main())
