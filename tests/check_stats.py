#!/usr/bin/env python3
"""Compares `sessions stats` with sums taken here from raw Claude Code and Codex logs.

    python3 tests/check_stats.py SESSIONS LOGS

SESSIONS  the binary of this project (give it LD_LIBRARY_PATH if it needs that for libduckdb)
LOGS      a folder with LOGS/claude and LOGS/codex, or one of them

The logs are read into a store of their own. Which file is which session, and which records are
copies of another session's, is asked from that store (other tests check it); everything else is
computed here from the lines: calls, results, errors, durations, tokens, cost. Prints every
difference; exit code 1 when there is one, 2 when something could not be run.
"""

import argparse
import collections
import datetime
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

TOKENS = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "cache_write_1h_tokens",
    "reasoning_tokens",
)
ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        print(f"{' '.join(map(str, command))}\n{done.stderr.strip() or done.stdout.strip()}", file=sys.stderr)
        sys.exit(2)
    return done.stdout


class Store:
    def __init__(self, binary, dir, logs):
        self.command = [binary, "--store", dir]
        run([*self.command, "ingest", "--quiet", *logs])

    def rows(self, sql):
        out = run([*self.command, "query", "--quiet", "--max-rows", "1000000", "--output", "ndjson", sql])
        return [tuple(json.loads(line).values()) for line in out.splitlines()]

    def groups(self, by, *filters):
        out = run([*self.command, "--json", "stats", "--by", by, "--limit", "500", *filters])
        answer = json.loads(out)
        if answer["metadata"]["results_truncated"]:
            print(f"by {by}: more groups than an answer holds; not compared")
            return None
        keys = answer["data"]["group_by"]

        def of_group(group, key):
            return shown_tool(group.get(key)) if key == "tool" else group.get(key)

        return {tuple(of_group(g["group"], key) for key in keys): g for g in answer["data"]["groups"]}


# --- the logs ----------------------------------------------------------------------------------------


def objects(path):
    """Every object of a log with the byte where it begins."""
    offset = 0
    for raw in path.read_bytes().split(b"\n"):
        line = raw.decode("utf-8", errors="replace")
        at = 0
        while at < len(line):
            begin = len(line) - len(line[at:].lstrip(" \t\r\ufeff\0"))
            try:
                value, end = json.JSONDecoder(strict=False).raw_decode(line, begin)
            except ValueError:
                break
            if isinstance(value, dict):
                yield offset + len(line[:begin].encode()), value
            at = end
        offset += len(raw) + 1


def instant(text):
    try:
        time = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except (AttributeError, ValueError):
        return None
    return time.astimezone(datetime.timezone.utc) if time.tzinfo else None


Piece = collections.namedtuple("Piece", "time model request prompt tokens copied modes")
Call = collections.namedtuple("Call", "time tool copied")
Result = collections.namedtuple("Result", "time tool failed ms copied")


class Log:
    """What a log holds, of any agent."""

    def __init__(self, copies, copied_usage):
        self.copies, self.copied_usage = copies, copied_usage
        self.calls, self.results, self.pieces = [], [], []
        self.blocks = collections.Counter()
        # The calls without a result, and the results that stand before their call, by id.
        self.open, self.early = {}, {}
        self.time = self.model = None
        self.copied = False

    def begin(self, offset, record):
        self.copied, self.copies_usage = offset in self.copies, offset in self.copied_usage
        self.at = instant(record.get("timestamp")) or self.time
        self.time = self.at

    def call(self, id, tool):
        self.calls.append(Call(self.at, tool, self.copied))
        if id in self.early:
            at = self.early.pop(id)
            self.results[at] = self.results[at]._replace(tool=tool)
        elif id:
            self.open.setdefault(id, []).append((tool, self.at))

    def result(self, id, failed, ms=None):
        waiting = self.open.get(id)
        tool, began = waiting.pop() if waiting else (None, None)
        if id and not tool:
            self.early.setdefault(id, len(self.results))
        if ms is None and began and self.at and self.at >= began:
            ms = int((self.at - began) / datetime.timedelta(milliseconds=1))
        self.results.append(Result(self.at, tool, failed, ms, self.copied))

    def usage(self, tokens, request, prompt, modes=()):
        self.pieces.append(Piece(self.at, self.model, request, prompt, tokens, self.copies_usage, modes))


def number(value):
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def total(tokens):
    return sum(count or 0 for count in tokens[:4])


def minus(a, b):
    return tuple(None if x is None and y is None else (x or 0) - (y or 0) for x, y in zip(a, b))


def says(block):
    """Whether a text has words: an answer may be blank before a call."""
    text = block.get("text")
    return isinstance(text, str) and bool(text.strip())


def claude_usage(usage):
    parts = usage.get("cache_creation")
    parts = parts if isinstance(parts, dict) else {}
    short, hour = (number(parts.get(f"ephemeral_{time}_input_tokens")) for time in ("5m", "1h"))
    written = number(usage.get("cache_creation_input_tokens"))
    if short is not None or hour is not None:
        written = (short or 0) + (hour or 0)
    thinking = usage.get("output_tokens_details")
    read = number(usage.get("cache_read_input_tokens"))
    reasoning = number(thinking.get("thinking_tokens")) if isinstance(thinking, dict) else None
    return (number(usage.get("input_tokens")), number(usage.get("output_tokens")), read, written, hour, reasoning)


def claude(path, log):
    known, said = {}, set()
    for offset, record in objects(path):
        log.begin(offset, record)
        data = record.get("data") if record.get("type") == "progress" else None
        if isinstance(data, dict) and isinstance(data.get("message"), dict):
            inner, agent = data["message"], f"agent-{data.get('agentId')}.jsonl"
            if not isinstance(inner.get("message"), dict) or inner.get("type") not in ("assistant", "user"):
                continue
            own = (path.with_name(agent), path.with_suffix("") / "subagents" / agent)
            if "agentId" not in data or any(file.exists() for file in own):
                continue
            # What an agent said stands in a list alone (2.1.12), which has all so far each time.
            for message in data.get("normalizedMessages") or ():
                parts = (message.get("message") or {}).get("content")
                is_said = message.get("type") == "assistant" and isinstance(parts, list) and parts
                if is_said and all(part.get("type") == "text" for part in parts) and message["uuid"] not in said:
                    said.add(message["uuid"])
                    log.blocks["message"] += sum(map(says, parts)) * (not log.copied)
            record = inner
        message = record.get("message")
        if record.get("type") not in ("assistant", "user") or not isinstance(message, dict):
            continue
        content = message.get("content")
        blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
        if record["type"] == "user":
            for block in blocks:
                if block.get("type") == "tool_result":
                    twin = record.get("toolUseResult")
                    twin = twin if isinstance(twin, dict) else {}
                    ms = number(twin.get("totalDurationMs"))
                    ms = number(twin.get("durationMs")) if ms is None else ms
                    seconds = twin.get("durationSeconds")
                    if ms is None and isinstance(seconds, (int, float)):
                        ms = math.floor(seconds * 1000 + 0.5)
                    log.result(block.get("tool_use_id"), block.get("is_error") is True, ms)
                    log.blocks["tool_result"] += not log.copied
            continue
        if record.get("isApiErrorMessage") is True or message.get("model") == "<synthetic>":
            continue
        log.model = message.get("model") or log.model
        for block in blocks:
            kind = block.get("type") or ""
            if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
                log.call(block.get("id"), block.get("name"))
                log.blocks["tool_call"] += not log.copied
            elif kind.endswith("_tool_result"):
                log.result(block.get("tool_use_id"), None)
                log.blocks["tool_result"] += not log.copied
            elif kind == "text":
                log.blocks["message"] += says(block) and not log.copied
            elif kind in ("thinking", "redacted_thinking"):
                log.blocks["reasoning"] += not log.copied
        if not blocks:
            log.blocks["message"] += says({"text": content}) and not log.copied
        # Every line of an answer repeats what is known of its usage; the largest is the answer's.
        usage = message.get("usage")
        request = (message["id"], record.get("requestId")) if message.get("id") else None
        tokens = claude_usage(usage) if isinstance(usage, dict) else (None,) * 6
        before = known.get(request) if request else None
        if request and before is None:
            known[request] = (None,) * 6
        if all(count is None for count in tokens) or (before and total(tokens) <= total(before)):
            continue
        prompt = total(tokens) - (tokens[1] or 0)
        log.usage(minus(tokens, before) if before else tokens, request, prompt, modes(usage))
        if request:
            known[request] = tokens


FAILURES = (
    "apply_patch verification failed",
    "error:",
    "exec_command failed",
    "execution error",
    "failed in sandbox",
    "failed to ",
    "write_stdin failed",
    "aborted",
)


def codex_ended(event):
    """What the client tells of a call before its output: milliseconds, and whether a tool of an MCP server failed."""
    took, result = event.get("duration"), event.get("result")
    ms = took["secs"] * 1000 + took["nanos"] // 10**6 if isinstance(took, dict) else None
    if not isinstance(result, dict):
        return ms, None
    ok = result.get("Ok")
    return ms, True if "Err" in result else ok.get("isError") is True if isinstance(ok, dict) else None


def codex_end(event):
    """A tool's run by its end alone: its id, its name, whether it failed, milliseconds."""
    kind, end = event.get("type"), event
    if kind == "item_completed":
        end = event.get("item") or {}
        kind = end.get("type")
    id = end.get("call_id") or end.get("id")
    ms, failed = codex_ended(end)
    if kind in ("exec_command_end", "CommandExecution"):
        if end.get("source") == "user_shell":
            return None
        code = end.get("exit_code")
        return id, "exec_command", None if code is None else code != 0, ms
    if kind in ("mcp_tool_call_end", "McpToolCall"):
        of = end.get("invocation") or end
        return id, f"mcp__{of.get('server')}__{of.get('tool')}", failed, ms
    if kind in ("patch_apply_end", "FileChange"):
        done = end.get("success")
        return id, "apply_patch", None if done is None else not done, ms
    if kind == "Extension":
        return id, "web_search" if "query" in end else end.get("kind"), None, ms
    return None


def codex_output(item, ended):
    """Whether a tool's output tells a failure, and how long it took."""
    output = next((item[key] for key in ("output", "tools", "result") if key in item), None)
    code = seconds = success = None
    if isinstance(output, dict) and "content" in output:
        success, output = output.get("success"), output["content"]
        header = False
    else:
        header = True
    if isinstance(output, list):
        output = "\n".join(part.get("text") or "" for part in output if isinstance(part, dict))
    text = output if isinstance(output, str) else ""
    try:
        inner = json.loads(text) if text.lstrip().startswith("{") else None
    except ValueError:
        inner = None
    if isinstance(inner, dict):
        header = False
        if isinstance(inner.get("output"), str) and isinstance(inner.get("metadata"), dict):
            text = inner["output"]
            code = number(inner["metadata"].get("exit_code"))
            seconds = inner["metadata"].get("duration_seconds")
    if header and text.startswith("failed in sandbox"):
        found = re.search(r"exit code: (\d+)", text)
        code = int(found[1]) if found else None
    elif header:
        for line in text.splitlines()[:8]:
            if line == "Output:":
                break
            found = re.fullmatch(r"(?:Exit code: |Process exited with code )\s*(-?\d+)\s*", line)
            code = int(found[1]) if found and code is None else code
            found = re.fullmatch(r"Wall time: ([\d.]+) seconds", line)
            seconds = float(found[1]) if found and seconds is None else seconds
    failed = code != 0 if code is not None else not success if success is not None else ended[1]
    if failed is None and text.startswith(FAILURES):
        failed = True
    # Halves go up.
    told = None if seconds is None else math.floor(seconds * 1000 + 0.5)
    return failed, told if ended[0] is None else ended[0]


def codex_usage(usage):
    read_in, cached = number(usage.get("input_tokens")), number(usage.get("cached_input_tokens"))
    written = number(usage.get("cache_write_input_tokens"))
    fresh = None if read_in is None else max(read_in - (cached or 0) - (written or 0), 0)
    out, reasoning = number(usage.get("output_tokens")), number(usage.get("reasoning_output_tokens"))
    return (fresh, out, cached, written, None, reasoning)


def codex(path, log):
    totals, ended, told = None, {}, set()
    for offset, record in objects(path):
        log.begin(offset, record)
        payload = record.get("payload")
        item = payload if isinstance(payload, dict) else record
        if record.get("type") == "response_item":
            told |= {item.get("call_id"), item.get("id")}
        end = codex_end(item)
        if end and end[0] not in told:
            id, tool, failed, ms = end
            log.call(id, tool)
            log.result(id, failed, ms)
        elif end:
            ended[end[0]] = codex_ended(item.get("item") or item)
        elif record.get("type") == "turn_context":
            log.model = item.get("model") or log.model
        elif record.get("type") == "event_msg" and item.get("type") == "token_count":
            info = item.get("info")
            if not isinstance(info, dict):
                continue
            now, last = (info.get(f"{name}_token_usage") for name in ("total", "last"))
            now, last = (codex_usage(usage) if isinstance(usage, dict) else None for usage in (now, last))
            before, totals = totals, now or totals
            if now is None and last is None or now is not None and now == before:
                continue
            grown = minus(now, before) if now and before else None
            if now and before and all(count is None or count >= 0 for count in grown):
                tokens = grown
            else:
                tokens = last or now
            log.usage(tokens, None, total(tokens) - (tokens[1] or 0))
        elif record.get("type") == "response_item" or not isinstance(payload, dict):
            kind = item.get("type") or ""
            if kind in (
                "function_call",
                "custom_tool_call",
                "local_shell_call",
                "tool_search_call",
                "web_search_call",
                "image_generation_call",
            ):
                name = item.get("name") or kind.removesuffix("_call")
                space = item.get("namespace")
                log.call(item.get("call_id"), f"{space}__{name}" if space else name)
            elif kind in (
                "function_call_output",
                "custom_tool_call_output",
                "tool_search_output",
                "local_shell_call_output",
            ):
                log.result(item.get("call_id"), *codex_output(item, ended.pop(item.get("call_id"), (None, None))))


# --- sums --------------------------------------------------------------------------------------------


def modes(usage):
    """The words for a mode of a request of Claude that is not priced as usual."""
    normal = {None, "", "standard", "default", "auto", "global", "not_available"}
    words = (usage.get(key) for key in ("service_tier", "speed", "inference_geo"))
    return tuple(word for word in words if word not in normal)


def rates():
    table = tomllib.loads((ROOT / "schemas/prices.toml").read_text())["models"]
    named = {alias: rate for rate in table.values() for alias in rate.get("aliases", ())}
    named.update(table)

    def rate(model):
        for name in (model, re.sub(r"\[1m\]$", "", model), re.sub(r"-(\d{8}|\d{4}-\d\d-\d\d)$", "", model)):
            if name in named:
                return named[name]
        return None

    return rate


def cost(tokens, prompt, rate):
    long = rate.get("long")
    rate = long if long and prompt > long["above_tokens"] else rate
    hour = tokens[4] or 0
    short = 0 if tokens[3] is None else tokens[3] - hour
    counts = (tokens[0] or 0, tokens[1] or 0, tokens[2] or 0, short, hour)
    names = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h")
    used = [(count, rate.get(name)) for count, name in zip(counts, names) if count]
    if any(price is None for _, price in used):
        return None
    return sum(count * price / 1e6 for count, price in used)


def day(time):
    return time.strftime("%Y-%m-%d") if time else None


def rank(values, percent):
    return sorted(values)[max(math.ceil(len(values) * percent / 100) - 1, 0)]


class Sums:
    """The numbers of one group; only those that were counted are there."""

    def __init__(self):
        self.numbers = collections.Counter()
        self.ms = []

    def as_dict(self):
        numbers = {name: count for name, count in self.numbers.items() if count}
        if self.ms:
            numbers.update(p50=rank(self.ms, 50), p95=rank(self.ms, 95), duration=sum(self.ms))
        return numbers


def shown_model(name):
    """Returns a model under the name that groups have: without its vendor and the date of its release."""
    if not name:
        return name
    name = re.sub(r"(?<=.)([-@]20\d{6}|-20\d\d-\d\d-\d\d)$", "", name.rsplit("/", 1)[-1])
    if not re.match(r"claude|opus|sonnet|haiku", name):
        return name
    name = name.replace(".", "-")
    return name if name.startswith("claude") else f"claude-{name}"


def shown_tool(name):
    """Returns a tool under the name of its group: spellings that differ in case and spaces are one."""
    return " ".join(name.lower().split()) if name else name


def expected(logs):
    rate = rates()
    groups = collections.defaultdict(lambda: collections.defaultdict(Sums))

    def add(name, amount, **keys):
        for by, key in keys.items():
            groups[by][key if isinstance(key, tuple) else (key,)].numbers[name] += amount

    for session, provider, log in logs:
        for call in log.calls:
            if not call.copied:
                add("tool_calls", 1, tool=shown_tool(call.tool), day=day(call.time), session=session)
        for result in log.results:
            if result.copied:
                continue
            told = None if result.failed is None else "failed" if result.failed else "ok"
            keys = {"tool": shown_tool(result.tool), "day": day(result.time), "provider_error": (provider, told)}
            add("tool_results", 1, **keys)
            add("tool_errors", int(result.failed is True), **keys)
            if result.ms is not None and result.ms >= 0:
                groups["tool"][(shown_tool(result.tool),)].ms.append(result.ms)
        for kind, count in log.blocks.items():
            add("events", count, event_type=kind)
        prompts = collections.Counter()
        for piece in log.pieces:
            prompts[piece.request] = max(prompts[piece.request], piece.prompt)
        for piece in log.pieces:
            for name, count in zip(TOKENS, piece.tokens):
                add(f"recorded {name}", count or 0, session=session)
                if not piece.copied:
                    add(name, count or 0, model=shown_model(piece.model), day=day(piece.time))
            if piece.copied:
                continue
            priced = rate(piece.model) if piece.model else None
            prompt = prompts[piece.request] if piece.request else piece.prompt
            spent = cost(piece.tokens, prompt, priced) if priced else None
            for mode in piece.modes:
                factor = priced.get("modes", {}).get(mode) if priced else None
                spent = None if spent is None or factor is None else spent * factor
            if spent is None:
                add("unpriced", total(piece.tokens), model=shown_model(piece.model))
            else:
                add("cost", spent, model=shown_model(piece.model), day=day(piece.time))
    return groups


def of_answer(group, names):
    tokens = group.get("tokens", {})
    spread = group.get("duration_ms", {})
    numbers = {name: group.get(name) for name in ("tool_calls", "tool_results", "tool_errors", "events")}
    numbers.update(p50=spread.get("p50"), p95=spread.get("p95"), duration=spread.get("total"))
    numbers.update(cost=group.get("cost_usd"), unpriced=group.get("unpriced_tokens"))
    numbers.update({name: tokens.get("counted_once", {}).get(name) for name in TOKENS})
    recorded = tokens.get("as_recorded", tokens.get("counted_once", {}))
    numbers.update({f"recorded {name}": recorded.get(name) for name in TOKENS})
    return {name: numbers[name] for name in names if numbers[name]}


COMPARED = {
    "tool": ("tool_calls", "tool_results", "tool_errors", "p50", "p95", "duration"),
    "model": (*TOKENS, "cost", "unpriced"),
    "day": ("tool_calls", "tool_results", "tool_errors", *TOKENS, "cost"),
    "session": ("tool_calls", *(f"recorded {name}" for name in TOKENS)),
    "provider_error": ("tool_results", "tool_errors"),
    "event_type": ("events",),
}


def compare(by, got, want):
    names, different, equal = COMPARED[by], 0, 0
    if by == "event_type":
        # What only the decoders can tell apart is compared elsewhere.
        got = {key: group for key, group in got.items() if key in want}
    for key in sorted(set(got) | set(want), key=str):
        ours = of_answer(got[key], names) if key in got else {}
        theirs = {name: count for name, count in want[key].as_dict().items() if name in names} if key in want else {}
        for name in names:
            a, b = ours.get(name, 0), theirs.get(name, 0)
            if abs(a - b) > (1e-5 if name == "cost" else 0):
                different += 1
                print(f"  by {by} {key}: {name} is {a}, from the logs {b}")
            else:
                equal += bool(a)
    print(f"by {by}: {equal} numbers equal, {different} not")
    return different, equal


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sessions", type=pathlib.Path)
    parser.add_argument("logs", type=pathlib.Path)
    options = parser.parse_args()
    folders = [options.logs.resolve() / name for name in ("claude", "codex")]
    folders = [folder for folder in folders if folder.is_dir()]
    if not folders:
        sys.exit(f"{options.logs} holds neither claude nor codex")
    readers = {"claude": claude, "codex": codex}
    different = equal = 0
    with tempfile.TemporaryDirectory(prefix="check-stats-") as scratch:
        store = Store(options.sessions.resolve(), scratch, folders)
        copies = collections.defaultdict(lambda: (set(), set()))
        for path, offset, is_usage in store.rows(
            "SELECT DISTINCT source_path, source_offset, event_type = 'token_usage' "
            "FROM events JOIN sessions USING (session_id) WHERE is_replay"
        ):
            copies[path][is_usage].add(offset)
        logs = []
        for path, session, provider in store.rows("SELECT source_path, session_id, provider FROM sessions"):
            if provider in readers and not path.endswith((".gz", ".zst")):
                log = Log(*copies[path])
                readers[provider](pathlib.Path(path), log)
                logs.append((session, provider, log))
        want = expected(logs)
        for by in COMPARED:
            filters = ("--provider", "claude") if by == "event_type" else ()
            got = store.groups(by.replace("_error", ",error"), *filters)
            if got is not None:
                wrong, right = compare(by, got, want[by])
                different, equal = different + wrong, equal + right
    print(f"{len(logs)} logs: {equal} numbers equal, {different} not")
    return 1 if different else 0 if equal else 2


if __name__ == "__main__":
    sys.exit(main())
