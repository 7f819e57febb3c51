#!/usr/bin/env python3
"""Compares token counts with those in the metadata files next to collected logs.

compare_metadata.py SESSIONS LOGS

The "Entire" CLI keeps `<session>.metadata.json` next to `<session>.jsonl`, with its own token counts of
one checkpoint. What it counts is put together from our events by rule, and has to be equal:

- up to the moment at which the checkpoint was made (`created_at`): the log goes on after it;
- from the line at which the checkpoint began. Builds before `FROM_START` counted from the beginning of
  the log, and so do all where nothing was written since (the line is the log's end);
- the agent's own requests, without those of subagents that stand only in progress records;
- in the agent's own terms (`in_terms_of`).

Exit code 1 when a file differs, 2 when none could be compared.
"""

import collections
import json
import pathlib
import subprocess
import sys
import tempfile

AGENTS = ["claude", "codex", "gemini", "opencode", "copilot"]
FIELDS = ["input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens"]

# A build of this morning counts a whole log from line 752 on, one of the afternoon from its line on.
FROM_START = "2026-02-10T12"

USAGE = """
SELECT session_id, source_offset, strftime(timestamp, '%Y-%m-%dT%H:%M:%S.%g'), coalesce(input_tokens, 0),
    coalesce(output_tokens, 0), coalesce(cache_read_tokens, 0), coalesce(cache_write_tokens, 0),
    coalesce(reasoning_tokens, 0)
FROM events WHERE event_type = 'token_usage' AND NOT is_sidechain
"""


def rows(sessions, store, sql):
    command = [sessions, "--store", store, "query", "--output", "ndjson", "--max-rows", "1000000", sql]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    return [list(json.loads(line).values()) for line in answer.stdout.splitlines()]


def start_of(log, metadata):
    """Byte at which the counted part of a log begins, and how that is called."""
    line = metadata.get("checkpoint_transcript_start") or 0
    if not line or log.suffix != ".jsonl":
        return 0, "from the beginning"
    if metadata["created_at"] < FROM_START:
        return 0, "from the beginning, as its build did not know better"
    lines = log.read_bytes().splitlines(keepends=True)
    if line >= len(lines):
        return 0, "from the beginning, as nothing was written since the last checkpoint"
    return sum(map(len, lines[:line])), "from the line where the checkpoint began"


def in_terms_of(agent, version, fresh, output, read, written, reasoning):
    """Our sums as Entire gives them for an agent, and in words."""
    if agent == "codex" and version.startswith("0.5."):
        # Its own field of the log, which holds what was cached, and reasoning added to the output again.
        return (fresh + read, output + reasoning, read, written), "cached input is input too, reasoning twice"
    if agent == "gemini":
        return (fresh + read, output - reasoning, read, written), "cached input is input too, no reasoning"
    if agent == "opencode":
        return (fresh, output - reasoning, read, written), "no reasoning"
    if agent == "copilot":
        return (fresh + read, output, read, written), "cached input is input too"
    return (fresh, output, read, written), "as ours"


def main():
    sessions, logs = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    equal, wrong, silent, alone = collections.Counter(), 0, 0, 0
    with tempfile.TemporaryDirectory() as store:
        folders = [str(logs / agent) for agent in AGENTS if (logs / agent).is_dir()]
        subprocess.run([sessions, "--store", store, "--quiet", "ingest", *folders], check=True)
        of = {row[0]: row for row in rows(sessions, store, "SELECT source_path, session_id, provider FROM sessions")}
        usage = collections.defaultdict(list)
        for session, *rest in rows(sessions, store, USAGE):
            usage[session].append(rest)
        for path in sorted(logs.rglob("*.metadata.json")):
            metadata = json.loads(path.read_text())
            stem = str(path)[: -len(".metadata.json")]
            log = next((p for p in (stem + ".jsonl", stem + ".json") if p in of), None)
            theirs = metadata.get("token_usage")
            if not theirs or not any(theirs.get(name) for name in FIELDS):
                silent += 1
                continue
            if log is None:
                alone += 1
                continue
            _, session, agent = of[log]
            want = tuple(theirs.get(name) or 0 for name in FIELDS)
            start, begins = start_of(pathlib.Path(log), metadata)
            end = metadata["created_at"][:23]
            before = [event for event in usage[session] if event[0] >= start and event[1] <= end]
            sums = [sum(event[at] for event in before) for at in range(2, 7)]
            got, terms = in_terms_of(agent, metadata.get("cli_version", ""), *sums)
            if got == want:
                went_on = len(before) < sum(event[0] >= start for event in usage[session])
                equal[agent, terms, begins + (", the log went on" if went_on else "")] += 1
            else:
                wrong += 1
                print(f"DIFFERS {path.relative_to(logs)}: {want}, ours {got} ({terms}; {begins})")
    for (agent, terms, part), count in sorted(equal.items()):
        print(f"{agent:<9} {count:>3} equal: {terms}; {part}")
    print(f"{sum(equal.values())} equal, {wrong} differ; {silent} files hold no tokens, {alone} have no log next to them")
    return 1 if wrong else 0 if equal else 2


if __name__ == "__main__":
    sys.exit(main())
