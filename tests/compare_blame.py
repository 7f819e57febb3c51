"""Compares `sessions blame` with `git blame`, over clones of the repositories of real sessions.

    python3 tests/compare_blame.py SESSIONS STORE CLONE...

SESSIONS is the program and STORE a store with the sessions. Every file of a clone that a session
edited is looked at. A line that was committed more than ten minutes before the edit that is said to
have written it is wrong, and makes the script fail. With `--control` each clone has to be at a commit
from before the sessions, and every line that has a session is wrong.
"""

import collections
import datetime
import json
import pathlib
import subprocess
import sys

SLACK_SECONDS = 600
EDITED = (
    "SELECT DISTINCT unnest(files) AS path FROM events "
    "WHERE event_type = 'tool_call' AND tool_kind IN ('edit', 'write', 'execute') "
    "AND files IS NOT NULL"
)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    return done.stdout


def edited_files(program, store, clone):
    """The files of the clone whose path ends a path of an edit."""
    rows = run(
        program, "--store", store, "--quiet", "query", EDITED, "--output", "json", "--max-rows", "1000000"
    )
    tracked = set(run("git", "-C", clone, "ls-files").splitlines())
    found = set()
    for row in json.loads(rows):
        parts = row["path"].replace("\\", "/").split("/")
        ends = ("/".join(parts[start:]) for start in range(len(parts)))
        found.update(end for end in ends if end in tracked)
    return sorted(found)


def author_times(clone, name):
    lines = run("git", "-C", clone, "blame", "--line-porcelain", name).splitlines()
    return [int(line.split()[1]) for line in lines if line.startswith("author-time ")]


def check_clone(program, store, clone, is_control):
    """Prints the counts of a clone, and returns the number of wrong lines."""
    counts = collections.Counter()
    names = edited_files(program, store, clone)
    if is_control:
        names = run("git", "-C", clone, "ls-files").splitlines()
    for name in names:
        path = pathlib.Path(clone, name)
        if not path.is_file():
            continue
        printed = run(program, "--store", store, "--json", "blame", str(path))
        data = json.loads(printed)
        if "spans" not in data:
            continue
        counts["files"] += 1
        counts["lines"] += data["lines"]
        times = [] if is_control else author_times(clone, name)
        for span in data["spans"]:
            writer = span["written_by"]
            if writer is None or writer["timestamp"] is None:
                continue
            time = datetime.datetime.fromisoformat(writer["timestamp"].replace("Z", "+00:00"))
            for line in range(span["lines"][0], span["lines"][1] + 1):
                counts["with a session"] += 1
                is_early = line <= len(times) and times[line - 1] < time.timestamp() - SLACK_SECONDS
                if is_control or is_early:
                    counts["wrong"] += 1
                    print(f"{name}:{line}: {writer['event_id']}, {writer['timestamp']}")
    print(f"{clone}: {dict(counts)}")
    return counts["wrong"]


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--control"]
    if len(arguments) < 3:
        sys.exit(__doc__)
    program, store, *clones = arguments
    is_control = "--control" in sys.argv
    wrong = sum(check_clone(program, store, clone, is_control) for clone in clones)
    sys.exit(1 if wrong else 0)


main()
