#!/usr/bin/env python3
"""Runs the commands of the first week with the program of another platform, and compares what they print and
write with the native program of the same commit.

    python3 tests/compare_platforms.py NATIVE FOREIGN windows|arm LIBRARIES

NATIVE     the program of this machine
FOREIGN    the program of the other platform: one for Windows runs under wine, one for aarch64 under qemu-user
LIBRARIES  the folder with the libraries that FOREIGN needs (xtask/src/foreign/mod.rs makes it)

Each program has an empty home, a store, and a copy of the sample sessions. Folders, the separators of paths
below them, and times and sizes that no two runs have in common are replaced before the comparison. Prints
every difference; exit code 1 when there is one.
"""

import argparse
import datetime
import difflib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIMEOUT_SECONDS = 120
MAX_WINE_FAILURES = 3
MAX_DIFF_LINES = 30
SYSROOT = "/usr/aarch64-linux-gnu"
STARTER = "start_under_qemu.so"

# What is not compared, with the reason. docs/install.md has the same lines.
LEFT_OUT = {
    "windows": [
        "forget and compact: wine 8 keeps the name of a removed file until the file is closed; they have not run on Windows itself",
        "doctor: the folders of desktop programs are others",
        "the picker and other screens: they need a console",
        "the linker and C library of releases (MSVC): zig has the GNU ones",
        "hard limits of a query's process: Unix only",
    ],
    "arm": ["times and memory: qemu-user translates every instruction"],
}
SKIPPED_COMMANDS = {"windows": ["forget", "compact", "doctor"], "arm": []}

# A hook under an emulator needs longer than its time limit.
SETTINGS = "[hooks]\ntimeout_ms = 60000\n"

SAMPLES = "sample-sessions"
SESSION = "9ae82b3a-fd82-48da-afd8-479f58648cbe"
QUERIES = (
    "SELECT provider, count(*) AS n FROM sessions GROUP BY ALL ORDER BY ALL",
    "SELECT tool_name, count(*) AS n, max(length(text)) AS longest FROM events GROUP BY ALL ORDER BY ALL",
    "SELECT min(timestamp), max(timestamp) FROM events",
)
HOOK = {"session_id": "new", "hook_event_name": "SessionStart", "source": "startup", "cwd": "/home/mira/code/harbor"}
PROMPT = {**HOOK, "hook_event_name": "UserPromptSubmit", "prompt": "which session fixed the retry budget last week?"}
CLIENT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "platforms", "version": "1"}}
REQUESTS = (
    {"id": 1, "method": "initialize", "params": CLIENT},
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list"},
    {"id": 3, "method": "tools/call", "params": {"name": "search_events", "arguments": {"query": "budget"}}},
)

# The commands in their order, with what they read on stdin.
STEPS = [
    (["ingest", SAMPLES, "--json"], None),
    (["ingest", SAMPLES, "--quiet"], None),
    (["search", "budget", "--json"], None),
    (["search", "/assert.*failed/", "--json", "--limit", "50"], None),
    (["search", "budget.remaining() is:error", "--color", "always"], None),
    (["search", "zzqqxx"], None),
    (["find", "which session was that about the retry budget", "--json"], None),
    (["find", "retry budget", "--color", "always"], None),
    (["list", "--json", "--limit", "500"], None),
    (["list", "--color", "always"], None),
    (["show", SESSION, "--json", "--detail-level", "full"], None),
    (["show", SESSION, "--detail-level", "turns", "--color", "always"], None),
    (["event", f"{SESSION}:13", "--json"], None),
    (["tail", SESSION, "--once"], None),
    (["analyze", SESSION, "--json"], None),
    (["analyze", "--json"], None),
    (["blame", "src/retry.rs", "--json"], None),
    (["resume", SESSION, "--print"], None),
    (["stats", "--by", "agent", "--all", "--json"], None),
    (["stats", "--by", "tool", "--all", "--color", "always"], None),
    (["usage", "--all", "--json"], None),
    (["usage", "--all", "--color", "always"], None),
    *[(["query", query, "--output", "json"], None) for query in QUERIES],
    (["query", "SELECT 1 AS one", "-o", "one.parquet", "--output", "parquet"], None),
    (["query", "SELECT * FROM read_csv('/etc/passwd')"], None),
    (["label", SESSION, "--add", "kept", "--note", "the fix"], None),
    (["list", "--label", "kept", "--json"], None),
    (["export", "jsonl", "-o", "all.jsonl"], None),
    (["export", "parquet", "-o", "all"], None),
    (["export", "markdown", SESSION, "-o", "session.md"], None),
    (["export", "html", SESSION, "-o", "session.html"], None),
    (["export", "arrow", "--table", "usage", "-o", "usage.arrow"], None),
    (["report", "-o", "report.html"], None),
    (["skill", "--output", "skill/SKILL.md"], None),
    (["plugin", "build", "plugins"], None),
    (["setup", "claude", "--write", "--json"], None),
    (["setup", "codex", "--write", "--json"], None),
    (["setup", "gemini", "--write"], None),
    (["setup", "claude", "--hooks"], None),
    (["setup", "claude", "--check", "--json"], None),
    (["hook", "session-start", "--client", "claude"], json.dumps(HOOK)),
    (["hook", "prompt", "--client", "claude"], json.dumps(PROMPT)),
    (["mcp"], "".join(json.dumps({"jsonrpc": "2.0", **request}) + "\n" for request in REQUESTS)),
    (["push", "lake", "--dry-run"], None),
    (["forget", SESSION], None),
    (["forget", SESSION, "--yes"], None),
    (["search", "budget", "--json"], None),
    (["forget", SESSION, "--undo"], None),
    (["ingest", SAMPLES, "--quiet"], None),
    (["compact"], None),
    (["list", "--json", "--limit", "500"], None),
    (["ingest", "--verify", SAMPLES, "--quiet"], None),
    (["status", "--json"], None),
    (["config", "--json"], None),
    (["doctor", "--json"], None),
    (["uninstall", "--yes"], None),
    (["open", "--sinc"], None),
]


NOW = datetime.datetime.now(datetime.timezone.utc)
# What no two runs have in common: the present, times that a command takes, and sizes that depend on the
# length of paths.
VOLATILE = [
    (re.compile(NOW.strftime("%Y-%m-%dT") + r"[0-9:.]+Z"), "<now>"),
    (re.compile(NOW.strftime("%Y%m%dT") + r"[0-9]+Z"), "<now>"),
    (re.compile(r'("(?:[a-z_]*_ms|generation|store_bytes|store_ratio|mb_per_second|tokens|tokens_output)\\?": ?)[0-9.]+'), r"\g<1>0"),
    # A server that is slow to start says that it still looks for new logs.
    (re.compile(r'\\?"warnings\\?":\[\{\\?"code\\?":\\?"INDEX_STALE\\?"[^]]*\],?'), ""),
    (re.compile(r"in [0-9.]+ (?:ms|s)\b(?:, [0-9.]+ MB/s)?"), "in <time>"),
    (re.compile(r"after [0-9.]+ (?:ms|s)\b"), "after <time>"),
    (re.compile(r"freed +[0-9]+ of [0-9]+ bytes"), "freed <bytes>"),
]
# What Windows says in other words.
OTHER_WORDS = [
    ("Path not found. (os error 3)", "No such file or directory (os error 2)"),
    ("plugins\\README.md", "plugins/README.md"),
]
# What configurations have only there: quotes around paths with backslashes, and the variables that name
# the folders of a user.
OTHER_CONFIGURATION = [
    (re.compile(r"""\\"(<program>|<folder>/store)\\\""""), r"\1"),
    (re.compile(r"'(<program>|<folder>/store)'"), r'"\1"'),
    (re.compile(r'env_vars = \["APPDATA", "TEMP", "TMP"\]\n'), ""),
    (re.compile(r',\s*"env": \{\s*"APPDATA": "\$APPDATA",\s*"TEMP": "\$TEMP",\s*"TMP": "\$TMP"\s*\}'), ""),
]


class Side:
    """A program with a home, a store and a folder to work in."""

    def __init__(self, folder, program):
        self.folder = folder
        self.home = folder / "home"
        self.work = folder / "work"
        self.home.mkdir(parents=True)
        shutil.copytree(ROOT / SAMPLES, self.work / SAMPLES)
        # A program there is one of a clone, which `uninstall` leaves in its place.
        bin = folder / "target/debug"
        bin.mkdir(parents=True)
        self.program = pathlib.Path(shutil.copy2(program, bin))
        self.command = [str(self.program)]
        self.environment = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "SESSIONS_STORE": str(folder / "store"),
            "SESSIONS_MACHINE": "pier",
            "SESSIONS_USER": "mira",
            "TZ": "UTC",
            "COLUMNS": "100",
        }
        self.folders = [(str(self.program), "<program>"), (str(self.home), "<home>"), (str(folder), "<folder>")]

    def write_settings(self):
        folder = self.home / ".config/sessions"
        folder.mkdir(parents=True)
        (folder / "settings.toml").write_text(SETTINGS)

    def run(self, arguments, text):
        """Runs the program and returns its exit code and what it printed, comparable between platforms."""
        done = self.start(arguments, (text or "").encode())
        return {
            "exit code": str(done.returncode),
            "stdout": self.normalize(done.stdout),
            "stderr": self.normalize(done.stderr),
        }

    def start(self, arguments, text):
        if arguments[0] == "mcp":
            return self.ask_server(arguments, text)
        return subprocess.run(
            self.command + arguments,
            env=self.environment,
            cwd=self.work,
            input=text,
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
        )

    def ask_server(self, arguments, text):
        """Closes the input after the last answer: a server waits a moment only for calls that still run then."""
        command = self.command + arguments
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(command, env=self.environment, cwd=self.work, **pipes) as server:
            server.stdin.write(text)
            server.stdin.flush()
            answers = b"".join(server.stdout.readline() for request in REQUESTS if "id" in request)
            rest, errors = server.communicate(timeout=TIMEOUT_SECONDS)
        return subprocess.CompletedProcess(command, server.returncode, answers + rest, errors)

    def files(self):
        """The files that the program wrote outside its store, comparable between platforms."""
        found = {}
        for folder in (self.home, self.work):
            for path in sorted(folder.rglob("*")):
                name = path.relative_to(folder)
                if path.is_file() and not self.is_foreign(name):
                    found[self.normalize(name.as_posix().encode())] = self.normalize(path.read_bytes())
        return found

    def is_foreign(self, name):
        """Whether something else than the program wrote a file."""
        return name.parts[0] == SAMPLES

    def close(self):
        pass

    def normalize(self, data):
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return data.hex(" ", 32)
        for folder, placeholder in self.folders:
            text = text.replace(folder, placeholder)
        for pattern, placeholder in VOLATILE:
            text = pattern.sub(placeholder, text)
        return text


class Wine(Side):
    """A program for Windows."""

    def __init__(self, folder, program, libraries):
        super().__init__(folder, program)
        # Windows looks for libraries next to the program.
        for library in libraries.glob("*.dll"):
            shutil.copy2(library, self.program.parent)
        self.command = ["wine", str(self.program)]
        self.environment |= {"WINEPREFIX": str(folder / "prefix"), "WINEDEBUG": "-all"}
        subprocess.run(["wineboot", "--init"], env=self.environment, capture_output=True, check=True)
        profile = self.run_wine("cmd", "/c", "echo %USERPROFILE%")
        self.home = folder / "prefix/drive_c" / profile.removeprefix("C:\\").replace("\\", "/")
        self.ready = {path.relative_to(self.home) for path in self.home.rglob("*")}
        windows = lambda path: "Z:" + str(path).replace("/", "\\")
        self.environment["SESSIONS_STORE"] = windows(folder / "store")
        self.folders = [
            (windows(self.program), "<program>"),
            (profile, "<home>"),
            (windows(folder), "<folder>"),
        ]

    def start(self, arguments, text):
        """Starts the program again if wine failed: wine 8 does so now and then when a process with threads ends."""
        for _ in range(MAX_WINE_FAILURES):
            try:
                done = super().start(arguments, text)
            except subprocess.TimeoutExpired:
                continue
            if b"wine: " not in done.stderr and b"wine client error" not in done.stderr:
                return done
        raise RuntimeError(f"wine failed {MAX_WINE_FAILURES} times: sessions {' '.join(arguments)}")

    def run_wine(self, *command):
        done = subprocess.run(["wine", *command], env=self.environment, capture_output=True, check=True, text=True)
        return done.stdout.strip()

    def is_foreign(self, name):
        return super().is_foreign(name) or name in self.ready

    def normalize(self, data):
        """Replaces folders in all forms: as they are, in a JSON string, and with slashes."""
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return super().normalize(data)
        for folder, placeholder in self.folders:
            for separator in ("\\\\", "\\", "/"):
                text = text.replace(folder.replace("\\", separator), placeholder)
        for words, native in OTHER_WORDS:
            text = text.replace(words, native)
        # What follows a folder is a path. One with both separators stays as it is, and differs.
        text = re.sub(r"(<(?:folder|home)>)((?:\\+[^\s\\/\"'`:,;<>|)]+)+)(?![\\/])", with_slashes, text)
        for pattern, native in OTHER_CONFIGURATION:
            text = pattern.sub(native, text)
        return super().normalize(text.encode())

    def close(self):
        subprocess.run(["wineserver", "--kill"], env=self.environment, check=False)


class Qemu(Side):
    """A program for Linux on aarch64."""

    def __init__(self, folder, program, libraries):
        super().__init__(folder, program)
        self.command = ["qemu-aarch64", "-E", f"LD_PRELOAD={libraries / STARTER}", str(self.program)]
        self.environment |= {"QEMU_LD_PREFIX": SYSROOT, "LD_LIBRARY_PATH": str(libraries)}


def with_slashes(path):
    return path[1] + re.sub(r"\\+", "/", path[2])


def diff(native, foreign):
    """The lines that differ; JSON is laid out first."""
    lines = [lay_out(text).splitlines() for text in (native, foreign)]
    return list(difflib.unified_diff(*lines, "native", "foreign", n=0, lineterm=""))[2:]


def lay_out(text):
    try:
        return json.dumps(unpack(json.loads(text)), indent=1, ensure_ascii=False)
    except ValueError:
        lines = text.splitlines()
        return "\n".join(lay_out(line) for line in lines) if len(lines) > 1 else text


def unpack(value):
    """Parses the JSON in strings of JSON, which the texts of a server's answers are."""
    if isinstance(value, dict):
        return {name: unpack(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [unpack(inner) for inner in value]
    if isinstance(value, str) and value.startswith("{"):
        try:
            return unpack(json.loads(value))
        except ValueError:
            pass
    return value


def compare(what, native, foreign):
    """Prints the parts of a step or of the files that differ, and returns whether there are some."""
    differs = False
    for part in sorted(native.keys() | foreign.keys()):
        if native.get(part) == foreign.get(part):
            continue
        differs = True
        print(f"{what}: {part} differs", flush=True)
        if part not in native or part not in foreign:
            print(f"    only the {'native' if part in native else 'foreign'} program has it")
            continue
        lines = diff(native[part], foreign[part])
        for line in lines[:MAX_DIFF_LINES]:
            print(f"    {line[:300]}")
        if len(lines) > MAX_DIFF_LINES:
            print(f"    and {len(lines) - MAX_DIFF_LINES} more lines")
    return differs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("native", type=pathlib.Path)
    parser.add_argument("foreign", type=pathlib.Path)
    parser.add_argument("platform", choices=sorted(PLATFORMS))
    parser.add_argument("libraries", type=pathlib.Path)
    args = parser.parse_args()
    skipped = SKIPPED_COMMANDS[args.platform]
    steps = [(arguments, text) for arguments, text in STEPS if arguments[0] not in skipped]
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch).resolve()
        native = Side(scratch / "native", args.native.resolve())
        if "LD_LIBRARY_PATH" in os.environ:
            native.environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
        side = PLATFORMS[args.platform]
        foreign = side(scratch / "foreign", args.foreign.resolve(), args.libraries.resolve())
        for program in (native, foreign):
            program.write_settings()
        try:
            failed = run_steps(native, foreign, steps)
        finally:
            foreign.close()
    print(f"{args.platform}: {len(steps)} commands and their files were compared, {len(failed)} of them differ")
    for reason in LEFT_OUT[args.platform]:
        print(f"left out: {reason}")
    return 1 if failed else 0


def run_steps(native, foreign, steps):
    """Returns the steps that differ."""
    failed = []
    for arguments, text in steps:
        # How long a command waits for new logs depends on the time that it has.
        arguments = arguments if arguments[0] == "ingest" else [*arguments, "--no-refresh"]
        if compare(f"sessions {' '.join(arguments)}", native.run(arguments, text), foreign.run(arguments, text)):
            failed.append(arguments)
    if compare("files", native.files(), foreign.files()):
        failed.append("files")
    return failed


PLATFORMS = {"windows": Wine, "arm": Qemu}

if __name__ == "__main__":
    sys.exit(main())
