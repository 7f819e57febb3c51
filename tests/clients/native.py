#!/usr/bin/env python3
"""Proves `sessions resume --with AGENT --native` with real agents: each resumes a session of another agent in an
empty home. The request that its scripted model then gets must hold the turns, the calls and the results of that
session, and the store counts them once.

    python3 tests/clients/native.py SESSIONS DIR/node_modules/.bin [CLIENT]...

Needs what restore.py needs. Nothing leaves this machine. Exit code 1 when something is wrong.
"""

import json
import pathlib
import subprocess
import sys
import time

import restore
from restore import FACT, SEALED, Wrong

# Each agent continues a session of the one before it in this list.
ORDER = ["claude", "codex", "gemini", "opencode", "pi"]
PROMPTS = ["What is the budget of the harbour?", "Forty-one, says the file."]


def totals(home):
    """What the store counts: prompts, calls, tokens."""
    home.ours("ingest", "--quiet", is_json=False)
    return home.ours("stats", "--by", "project")["data"]


def check_native(source, target, binary, programs):
    """An agent resumes a session of another one; yields what is wrong."""
    with restore.empty_home(binary, source, programs, "masked") as home:
        target.work = home.work
        home.turn(source.start(PROMPTS[0]), PROMPTS[1])
        found = home.session()
        session = found["session_id"]
        before = totals(home)
        # The model is the same, the agent is the other one.
        home.client = home.turns.client = target
        home.environment |= target.prepare(home.folder, home.address)
        target.ready(home)
        command = home.resume_natively(session, target)
        after = totals(home)
        if before != after:
            yield f"the copied turns count: {before} before, {after} after"

        # It lists the session by its first prompt or its title, without asking for hidden ones.
        target.list_command = [word for word in target.list_command if word != "--include-non-interactive"]
        if not target.is_listed(home, "What is the budget", found["title"]):
            yield "the list of the client lacks the session"

        _, request = home.turn(target.headless(command, "And is that in crowns?"), "In crowns, indeed.")
        texts = [*PROMPTS, FACT, session]
        yield from restore.check_history({}, request, texts)
        if SEALED in json.dumps(restore.history(request)):
            yield "the request has what another service sealed"
        name, arguments = source.read_call([source.tool])
        said = json.dumps(restore.history(request))
        if name not in said or not all(word in said for word in arguments.values()):
            yield f"the request lacks the call of {name}"

        home.ours("ingest", "--quiet", is_json=False)
        continued = home.ours("show", command[-1])["data"]["session"]
        if continued.get("parent_session_id") != session or continued.get("relation") != "continued_from":
            yield f"the new session does not name the old one: {continued}"
        calls = [group["tool_calls"] for group in totals(home)["groups"]]
        if calls != [2]:
            yield f"the store counts {calls} calls, not one of each agent"


def main():
    if len(sys.argv) < 3:
        print(__doc__)
        return 2
    binary, programs = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).absolute()
    clients = {client.name: client for client in restore.CLIENTS}
    failures = []
    for at, name in enumerate(ORDER):
        if sys.argv[3:] and name not in sys.argv[3:]:
            continue
        source, found, started = clients[ORDER[at - 1]], [], time.monotonic()
        try:
            found.extend(check_native(source, clients[name], binary, programs))
        except (Wrong, subprocess.TimeoutExpired) as wrong:
            found.append(str(wrong))
        failures += [f"{name} after {source.name}: {what}" for what in found]
        print(f"{name} after {source.name}: {len(found)} faults in {time.monotonic() - started:.1f} s", flush=True)
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
