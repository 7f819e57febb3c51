#!/usr/bin/env python3
"""Proves `sessions restore` with real agents: each holds a session with a scripted model in an empty home,
its log is deleted and restored, and the agent lists the session and resumes it. The request that the model
then gets must contain the old turns, and what the model sealed in them byte for byte. `secrets --scrub` is
proved in the same way, and so is `resume` of a session that another machine pushed, there and back.

    python3 tests/clients/restore.py SESSIONS DIR/node_modules/.bin [CLIENT]...

Needs what agents.py needs, and Pi with its Node.js. Nothing leaves this machine. Exit code 1 when something is
wrong.
"""

import base64
import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import termios
import time

import agents
import scripted_model

FACT = "The harbour budget is 41 crowns."
# What the model seals, like signatures and encrypted reasoning: clients send it back as it is.
SEALED = base64.b64encode(bytes(range(60, 240))).decode()
SECRET = "ghp_" + "Zk4Yt9QmXw2LrB7vNc5Hd8Js1Pf6Ga3TeUoR"
SCREEN_SECONDS = 40


SHIM = """#!/bin/sh
# Stands for an agent with a screen: notes what it was started with. What has no screen runs.
if [ "$1" = import ]; then exec {program} "$@"; fi
printf '%s\\n' "$(basename "$0")" "$@" > {started}
"""


class Turns(scripted_model.Conversation):
    """A model that reads a file in each turn and then answers."""

    sealed_thought = SEALED

    def __init__(self, client):
        super().__init__(None, None)
        self.client = client
        # What it does next.
        self.script = []

    def accepts(self, tools):
        return any(name.endswith(self.client.tool) for name in tools)

    def next_call(self, tools, results):
        self.tools, self.results = tools, results
        step = self.script.pop(0) if self.script else "text"
        return self.client.read_call(tools) if step == "call" else None


class Home:
    """An empty home with an agent, a model and a store."""

    def __init__(self, binary, client, programs, folder, keep):
        self.binary, self.client, self.programs, self.keep = binary, client, programs, keep
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()
        (self.work / "notes.txt").write_text(FACT + "\n")
        kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
        path = os.pathsep.join([str(programs), os.environ["PATH"]])
        self.environment = {**kept, "PATH": path, "HOME": str(folder), "LANG": "C.UTF-8", "TERM": "xterm-256color"}
        settings = folder / ".config" / "sessions" / "settings.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text(f'[store]\nkeep_logs = "{keep}"\n')
        self.turns = Turns(client)

    def ours(self, *arguments, is_json=True):
        """Runs `sessions`, and returns its answer."""
        command = [self.binary, *arguments, *(["--json"] if is_json else [])]
        done = agents.run(command, self.environment, self.work)
        if done.returncode != 0:
            raise Wrong(f"sessions {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return json.loads(done.stdout) if is_json else done.stdout

    def turn(self, command, answer):
        """Runs a turn of the agent without a terminal. Returns the last request of its model."""
        self.turns.script, self.turns.final_text = ["call", "text"], answer
        before = len(self.turns.requests)
        done = agents.run([self.programs / command[0], *command[1:]], self.environment, self.work)
        said = done.stdout + done.stderr
        if done.returncode != 0 or answer not in said or len(self.turns.requests) == before:
            raise Wrong(f"{command} ended with {done.returncode}, {len(self.turns.requests)} requests: {said[-3000:]}")
        return self.turns.requests[-1], self.turns.requests[before]

    def first_turn(self, prompt, answer):
        """Begins a session: on a screen, if the lists of the agent show only such sessions."""
        if not self.client.needs_screen:
            self.turn(self.client.start(prompt), answer)
            return
        self.turns.script, self.turns.final_text = ["call", "text"], answer
        shown = self.screen(self.client.start_on_screen(prompt), [answer])
        if answer not in shown:
            raise Wrong(f"the screen does not show the answer: {shown[-3000:]}")

    def sessions(self):
        self.ours("ingest", "--quiet", is_json=False)
        return self.ours("list")["data"]["sessions"]

    def session(self):
        """The one session of the store."""
        found = self.sessions()
        if len(found) != 1:
            raise Wrong(f"the store has {len(found)} sessions: {found}")
        return found[0]

    def resume_command(self, session_id):
        """The command that `sessions resume --print` prints."""
        printed = self.ours("resume", session_id, "--print")
        return [printed["program"], *printed["arguments"]]

    def publish(self, machine, another):
        """Lets this home be a machine that publishes everything, and finds the folder of another one in its own."""
        settings = self.folder / ".config" / "sessions" / "settings.toml"
        text = f'[identity]\nmachine = "{machine}"\nuser = "mira"\n[publish]\ninclude = ["**"]\ncontent = "full"\n'
        settings.write_text(f'{settings.read_text()}{text}[projects]\n"{another}" = "{self.work}"\n')

    def sync(self, lake):
        for command in (["ingest", "--quiet"], ["push", str(lake)], ["pull", str(lake)]):
            self.ours(*command, is_json=False)

    def age(self, files):
        """A log that changed a minute ago may be in use."""
        if not files:
            # The rows of a session say when they changed.
            time.sleep(61)
        for file in files:
            os.utime(file, (time.time() - 120,) * 2)

    def bring(self, session_id):
        """Resumes a session of another machine, without starting the client. Returns the command."""
        return self.resume_without_start(session_id, self.client)

    def resume_natively(self, session_id, target):
        """Resumes a session with another agent, which is not started. Returns the command."""
        return self.resume_without_start(session_id, target, "--with", target.name, "--native")

    def resume_without_start(self, session_id, target, *flags):
        shims, started = self.folder / "shims", self.folder / "started"
        shims.mkdir(exist_ok=True)
        shim = shims / target.name
        shim.write_text(SHIM.format(program=self.programs / target.name, started=started))
        shim.chmod(0o755)
        environment = {**self.environment, "PATH": f"{shims}:{self.environment['PATH']}"}
        command = [self.binary, "resume", session_id, *flags]
        done = agents.run(command, environment, self.work)
        if done.returncode != 0:
            raise Wrong(f"{command}: {done.stdout}{done.stderr}")
        return started.read_text().splitlines()

    def screen(self, command, wanted):
        """What a program shows in a terminal, until it shows one of the texts `wanted`."""
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(self.work)
            os.execve(self.programs / command[0], [str(word) for word in command], self.environment)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
        shown, deadline = b"", time.monotonic() + SCREEN_SECONDS
        try:
            while time.monotonic() < deadline and not any(text in plain_text(shown) for text in wanted):
                if select.select([terminal], [], [], 0.5)[0]:
                    try:
                        data = os.read(terminal, 65536)
                    except OSError:
                        break
                    if not data:
                        break
                    shown += data
                    for question, answer in TERMINAL_ANSWERS:
                        if question in data:
                            os.write(terminal, answer)
        finally:
            for end in (signal.SIGTERM, signal.SIGKILL):
                with contextlib.suppress(OSError):
                    time.sleep(0.5)
                    os.killpg(child, end)
            os.waitpid(child, 0)
            os.close(terminal)
        return plain_text(shown)


# What programs ask a terminal: the place of the cursor, what it can do.
TERMINAL_ANSWERS = [
    (b"\x1b[6n", b"\x1b[1;1R"),
    (b"\x1b[c", b"\x1b[?62;c"),
    (b"\x1b[?u", b"\x1b[?0u"),
]


def plain_text(shown):
    """The words that a terminal got, without what moves the cursor and colours them."""
    text = re.sub(rb"\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[=>()][A-B0]?", b" ", shown)
    return re.sub(r"\s+", " ", text.decode(errors="replace"))


class Wrong(Exception):
    """Something that is not as it should be."""


class Client:
    # The end of the name of the tool that reads a file.
    tool = ""
    needs_screen = False

    def read_call(self, tools):
        name = next(name for name in tools if name.endswith(self.tool))
        return name, self.arguments()

    def arguments(self):
        raise NotImplementedError

    def start(self, prompt):
        """The command that begins a session without a terminal."""
        raise NotImplementedError

    def headless(self, command, prompt):
        """The command that resumes a session, as a turn without a terminal."""
        raise NotImplementedError

    def delete(self, home, session, files):
        """Deletes the log of a session."""
        for file in files:
            file.unlink()

    def contents(self, home, session, files):
        """What the log of a session has."""
        return [file.read_bytes() for file in files if file.exists()]

    def create(self, home):
        """Lets the client create what it needs before a session of another machine comes."""

    # The text by which its list of sessions names the one of this check, and the command of the list.
    listed_as = "What is the budget"
    list_command = ()
    is_list_on_screen = True

    def is_listed(self, home, *others):
        """Whether the client's own list of sessions shows the session, by one of its names."""
        names = [self.listed_as, *others]
        if self.is_list_on_screen:
            shown = home.screen(self.list_command, names)
        else:
            done = agents.run([home.programs / self.list_command[0], *self.list_command[1:]], home.environment, home.work)
            shown = done.stdout + done.stderr
        return any(name in shown for name in names)

    def ready(self, home):
        """Prepares the home for the screens of the client."""


class Claude(Client, agents.Claude):
    tool = "Read"
    needs_screen = True
    listed_as = "And is that in crowns?"
    list_command = ["claude", "--resume"]

    def arguments(self):
        return {"file_path": str(self.work / "notes.txt")}

    def start(self, prompt):
        return ["claude", "--print", prompt, "--allowedTools", "Read"]

    def start_on_screen(self, prompt):
        return ["claude", prompt, "--allowedTools", "Read"]

    def headless(self, command, prompt):
        return [*command, "--print", prompt, "--allowedTools", "Read"]

    def ready(self, home):
        project = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        file = home.folder / ".claude.json"
        value = json.loads(file.read_text()) if file.exists() else {}
        value |= {"hasCompletedOnboarding": True, "theme": "dark"}
        value["customApiKeyResponses"] = {"approved": ["scripted"], "rejected": []}
        value.setdefault("projects", {}).setdefault(str(home.work), {}).update(project)
        file.write_text(json.dumps(value))


class Codex(Client, agents.Codex):
    tool = "exec_command"
    list_command = ["codex", "resume", "--include-non-interactive"]
    FLAGS = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]

    def arguments(self):
        return {"cmd": "cat notes.txt"}

    def start(self, prompt):
        return ["codex", "exec", *self.FLAGS, prompt]

    def headless(self, command, prompt):
        return [command[0], "exec", *command[1:], *self.FLAGS, prompt]

    def ready(self, home):
        settings = home.folder / ".codex" / "config.toml"
        trust = f'\n[projects."{home.work}"]\ntrust_level = "trusted"\n'
        if trust not in settings.read_text():
            settings.write_text(settings.read_text() + trust)


class Gemini(Client, agents.Gemini):
    tool = "read_file"
    listed_as = "In crowns, indeed."
    list_command = ["gemini", "--list-sessions"]
    is_list_on_screen = False
    FLAGS = ["--model", "gemini-2.5-pro", "--approval-mode", "yolo", "--prompt"]

    def arguments(self):
        return {"file_path": str(self.work / "notes.txt")}

    def start(self, prompt):
        return ["gemini", *self.FLAGS, prompt]

    def headless(self, command, prompt):
        return [*command, *self.FLAGS, prompt]

    def ready(self, home):
        # On a busy machine it deletes a session as broken while it writes its summary.
        file = home.folder / ".gemini" / "settings.json"
        value = json.loads(file.read_text()) if file.exists() else {}
        value.setdefault("general", {})["sessionRetention"] = {"enabled": False}
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(value))


class OpenCode(Client, agents.OpenCode):
    tool = "read"
    # It asks the model for titles.
    listed_as = "says the file"
    list_command = ["opencode", "session", "list"]
    is_list_on_screen = False

    def prepare(self, home, address):
        environment = super().prepare(home, address)
        settings = home / ".config" / "opencode" / "opencode.json"
        value = json.loads(settings.read_text())
        # The API of Anthropic has signatures.
        value["provider"]["scripted"]["npm"] = "@ai-sdk/anthropic"
        value["provider"]["scripted"]["models"]["scripted"]["reasoning"] = True
        settings.write_text(json.dumps(value))
        return environment

    def arguments(self):
        return {"filePath": str(self.work / "notes.txt")}

    def start(self, prompt):
        return ["opencode", "run", "--model", "scripted/scripted", prompt]

    def headless(self, command, prompt):
        return [command[0], "run", *command[1:], "--model", "scripted/scripted", prompt]

    def delete(self, home, session, files):
        done = agents.run([home.programs / "opencode", "session", "delete", session], home.environment, home.work)
        if done.returncode != 0:
            raise Wrong(f"the session is not deleted: {done.stdout}{done.stderr}")

    def contents(self, home, session, files):
        database = home.folder / ".local" / "share" / "opencode" / "opencode.db"
        with contextlib.closing(sqlite3.connect(database)) as connection:
            tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1").fetchall()
            rows = {name: connection.execute(f"SELECT * FROM {name} ORDER BY rowid").fetchall() for (name,) in tables}
        return {name: sorted(row for row in found if session in row) for name, found in rows.items()}

    def create(self, home):
        self.is_listed(home)


class Pi(Client, agents.Agent):
    name = "pi"
    tool = "read"
    list_command = ["pi", "--resume"]

    def prepare(self, home, address):
        settings = home / ".pi" / "agent" / "models.json"
        settings.parent.mkdir(parents=True, exist_ok=True)
        model = {"id": "scripted", "name": "scripted", "reasoning": True, "input": ["text"]}
        model |= {"contextWindow": 200000, "maxTokens": 8000}
        model["cost"] = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
        provider = {"baseUrl": address, "api": "anthropic-messages", "apiKey": "scripted", "models": [model]}
        settings.write_text(json.dumps({"providers": {"scripted": provider}}))
        (settings.parent / "settings.json").write_text(
            json.dumps({"defaultProvider": "scripted", "defaultModel": "scripted", "defaultThinkingLevel": "high"})
        )
        return {"PI_OFFLINE": "1"}

    def arguments(self):
        return {"path": str(self.work / "notes.txt")}

    def start(self, prompt):
        return ["pi", "--print", prompt]

    def headless(self, command, prompt):
        return [*command, "--print", prompt]


CLIENTS = [Claude(), Codex(), Gemini(), OpenCode(), Pi()]


def strings(value):
    """The texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


def history(request):
    """The turns of a request."""
    return request.get("messages", []) or request.get("input") or request.get("contents", [])


def check_history(earlier, later, texts):
    """A request must have these texts, and the turns of an earlier one. What the model sealed is among them, if
    the client sends it again after it ended: Gemini CLI does not."""
    present = list(strings(history(later)))
    for text in texts:
        if not any(text in other for other in present):
            yield f"the request lacks {text!r}"
    for text in strings(history(earlier)):
        # Gemini CLI describes the folder that it is in.
        if text not in present and not text.startswith("<session_context>"):
            yield f"the request lacks what an earlier one had: {text[:300]!r}"


@contextlib.contextmanager
def empty_home(binary, client, programs, keep):
    with tempfile.TemporaryDirectory(prefix="home-", ignore_cleanup_errors=True) as folder:
        home = Home(binary, client, programs, pathlib.Path(folder), keep)
        client.work = home.work
        with scripted_model.serve(home.turns) as address:
            home.address = address
            home.environment |= client.prepare(home.folder, address)
            client.ready(home)
            yield home


def log_of(home, session_id):
    """The files of a session."""
    command = [home.binary, "restore", session_id, "--dry-run", "--to", str(home.folder / "other"), "--json"]
    data = json.loads(agents.run(command, home.environment, home.work).stdout)["sessions"]
    return [
        home.folder / pathlib.Path(file["path"]).relative_to(home.folder / "other")
        for session in data
        for file in session.get("files", [])
    ]


def check_restore(home):
    """A session whose log was deleted is restored, listed and resumed; yields what is wrong."""
    client = home.client
    home.first_turn("What is the budget of the harbour?", "Forty-one, says the file.")
    session = home.session()["session_id"]
    command = home.resume_command(session)
    _, earlier = home.turn(client.headless(command, "And is that in crowns?"), "In crowns, indeed.")
    home.session()
    files = log_of(home, session)
    before = client.contents(home, session, files)
    client.delete(home, session, files)
    if client.contents(home, session, files) == before:
        yield "the log is not deleted"
    home.session()
    home.ours("restore", session)
    if client.contents(home, session, files) != before:
        yield "the restored log differs"
    if not client.is_listed(home):
        yield "the list of the client lacks the session"
    if home.resume_command(session) != command:
        yield "another command resumes the session"
    _, later = home.turn(client.headless(command, "Thank you, that is all."), "Goodbye then.")
    yield from check_history(earlier, later, TEXTS)
    yield from check_count(home, session, 3)
    yield from check_scrub(home, session, command, files)


# What every later request has.
TEXTS = ["What is the budget of the harbour?", FACT, "Forty-one, says the file.", "In crowns, indeed."]


def check_travel(home, other):
    """A session continues in the home of another machine, whose client resumes it, and returns."""
    client = home.client
    lake = home.folder / "lake"
    homes = {home: "pier", other: "quay"}
    for one, machine in homes.items():
        another = other if one is home else home
        one.publish(machine, another.work)
    client.work = home.work
    home.first_turn("What is the budget of the harbour?", "Forty-one, says the file.")
    session = home.session()["session_id"]
    _, earlier = home.turn(client.headless(home.resume_command(session), "And is that in crowns?"), "In crowns, indeed.")
    home.sync(lake)
    other.ours("pull", str(lake), is_json=False)

    client.work = other.work
    client.create(other)
    _, later = other.turn(client.headless(other.bring(session), "Thank you, that is all."), "Goodbye then.")
    yield from check_history(earlier, later, TEXTS)
    if not client.is_listed(other, "Thank you, that is all.", "Goodbye then."):
        yield "the list of the client there lacks the session"
    yield from check_count(other, session, 3)
    other.sync(lake)
    home.sync(lake)

    client.work = home.work
    if files := log_of(home, session):
        home.age(files)
    _, later = home.turn(client.headless(home.bring(session), "One more thing."), "Yes?")
    yield from check_history({}, later, [*TEXTS, "Thank you, that is all.", "Goodbye then."])
    yield from check_count(home, session, 4)


def check_scrub(home, session, command, files):
    """A secret that is scrubbed from the log of a session is not in later requests."""
    client = home.client
    (home.work / "notes.txt").write_text(f"The key is {SECRET}.\n")
    home.turn(client.headless(command, "Read it again."), "There is a key now.")
    home.session()
    home.age(files)
    home.ours("secrets", "--scrub", "--yes")
    if SECRET in str(client.contents(home, session, files)):
        yield "the scrubbed log has the secret"
    (home.work / "notes.txt").write_text(FACT + "\n")
    _, later = home.turn(client.headless(command, "Never mind."), "As you wish.")
    if SECRET in json.dumps(history(later)):
        yield "the request has the scrubbed secret"
    yield from check_history({}, later, ["Read it again.", "There is a key now.", "The key is [REDACTED"])
    yield from check_count(home, session, 5)


def check_count(home, session, prompts):
    """The store has this session only, with these prompts."""
    found = home.session()
    if found["session_id"] != session or found["counts"]["turns"] != prompts:
        yield f"the store has {found['counts']['turns']} prompts of session {found['session_id']}, not {prompts}"


CASES = {
    "exact": lambda home: check_restore(home("exact")),
    "masked": lambda home: check_restore(home("masked")),
    "another machine": lambda home: check_travel(home("exact"), home("masked")),
}


def main():
    if len(sys.argv) < 3:
        print(__doc__)
        return 2
    binary, programs = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).absolute()
    wanted = sys.argv[3:]
    failures = []
    for client in CLIENTS:
        if wanted and client.name not in wanted:
            continue
        for case, check in CASES.items():
            started = time.monotonic()
            found = []
            try:
                with contextlib.ExitStack() as homes:
                    found.extend(check(lambda keep: homes.enter_context(empty_home(binary, client, programs, keep))))
            except (Wrong, subprocess.TimeoutExpired) as wrong:
                found.append(str(wrong))
            failures += [f"{client.name}, {case}: {what}" for what in found]
            print(f"{client.name}, {case}: {len(found)} faults in {time.monotonic() - started:.1f} s", flush=True)
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
