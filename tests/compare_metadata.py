#!/usr/bin/env python3
"""Compares token counts with those in the metadata files beside collected logs.

compare_metadata.py SESSIONS LOGS

The "Entire" CLI keeps `<session>.metadata.json` beside `<session>.jsonl`, with its own token counts.
It counts by other rules, which are put into ours here: from the line on at which its checkpoint
began, without what stands only in progress records of subagents, and per agent: Codex and Gemini with
what was read from the cache as part of the input, Codex with reasoning once more beside the output,
Gemini and OpenCode without reasoning. Exit code 1 when a file differs for another reason.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

AGENTS = ["claude", "codex", "gemini", "opencode", "copilot"]
FIELDS = ["input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens"]


def rows(sessions, store, sql):
    command = [sessions, "--store", store, "query", "--output", "ndjson", "--max-rows", "1000000", sql]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    return [list(json.loads(line).values()) for line in answer.stdout.splitlines()]


def start_of(log, metadata):
    """Byte at which the counted part of a log begins."""
    names = ["checkpoint_transcript_start", "transcript_lines_at_start"]
    line = next((metadata[name] for name in names if metadata.get(name)), 0)
    if not line or log.suffix != ".jsonl":
        return 0
    return sum(len(text) for text in log.read_bytes().splitlines(keepends=True)[:line])


def candidates(agent, usage):
    """Our counts in the forms in which the other side may give them, with the reason."""
    fresh, output, read, written, reasoning = usage
    yield (fresh, output, read, written), "equal"
    yield (fresh + read, output, read, written), "its input holds what was read from the cache"
    yield (fresh + read, output + reasoning, read, written), "and its output reasoning twice"
    yield (fresh + read, output - reasoning, read, written), "and its output no reasoning"
    yield (fresh, output - reasoning, read, written), "its output holds no reasoning"


def main():
    sessions, logs = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    counts, wrong = {}, 0
    with tempfile.TemporaryDirectory() as store:
        folders = [str(logs / agent) for agent in AGENTS if (logs / agent).is_dir()]
        subprocess.run([sessions, "--store", store, "--quiet", "ingest", *folders], check=True)
        of = {row[0]: row for row in rows(sessions, store, "SELECT source_path, session_id, provider FROM sessions")}
        sql = """SELECT session_id, source_offset, coalesce(input_tokens, 0), coalesce(output_tokens, 0),
            coalesce(cache_read_tokens, 0), coalesce(cache_write_tokens, 0), coalesce(reasoning_tokens, 0),
            is_sidechain FROM events WHERE event_type = 'token_usage'"""
        usage = {}
        for session, *rest in rows(sessions, store, sql):
            usage.setdefault(session, []).append(rest)
        for path in sorted(logs.rglob("*.metadata.json")):
            metadata = json.loads(path.read_text())
            stem = str(path)[: -len(".metadata.json")]
            log = next((p for p in (stem + ".jsonl", stem + ".json") if p in of), None)
            theirs = metadata.get("token_usage")
            if log is None or not theirs or not any(theirs.get(name) for name in FIELDS):
                continue
            _, session, agent = of[log]
            want = tuple(theirs.get(name) or 0 for name in FIELDS)
            start = start_of(pathlib.Path(log), metadata)
            events = usage.get(session, [])
            parts = {
                "": [e for e in events if e[0] >= start and not e[6]],
                ", subagents too": [e for e in events if e[0] >= start],
                ", the whole log": [e for e in events if not e[6]],
            }
            found = None
            for part, chosen in parts.items():
                sums = [sum(event[at] for event in chosen) for at in range(1, 6)]
                for got, reason in candidates(agent, sums):
                    if got == want and found is None:
                        found = reason + part
            if found is None:
                whole = [sum(event[at] for event in events) for at in range(1, 6)]
                if sum(want) < whole[0] + whole[1] + 2 * whole[2] + whole[3] + whole[4]:
                    # A checkpoint in the middle: the log went on after it was counted.
                    found = "it counted a part of the log"
            if found is None:
                wrong += 1
                print(f"DIFFERS {path.relative_to(logs)}: {want}, ours {whole}")
            key = (agent, found or "differs")
            counts[key] = counts.get(key, 0) + 1
    for (agent, reason), count in sorted(counts.items()):
        print(f"{agent:<9} {count:>4}  {reason}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
