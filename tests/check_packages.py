#!/usr/bin/env python3
"""Installs every package of `cargo xtask dist` from its file, each in an empty home and without Rust on PATH,
and lets it ingest the sample sessions, search, call a tool over stdio, and check a registration.

    python3 tests/check_packages.py PACKAGES ALL [--uv UV] [--mcpb MCPB]

PACKAGES  the folder of `cargo xtask dist`
ALL       a folder of `cargo xtask dist --summary` with archives of all platforms, for the other manifests
UV        the program uv; MCPB the program mcpb of npm

Prints what each installation took. Exit code 1 when something is wrong.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "sample-sessions"
MAX_FIRST_SEARCH_SECONDS = 10
MAX_LAUNCHER_MS = 60
ROUNDS = 15


class Failure(Exception):
    """A step that did not do what it should."""


class Room:
    """An empty home, and an environment without Rust."""

    def __init__(self, folder):
        self.home = folder
        self.environment = {"HOME": str(folder), "PATH": path_without_rust(), "TMPDIR": str(folder / "tmp")}
        (folder / "tmp").mkdir()
        # A program for development finds DuckDB by this.
        if "LD_LIBRARY_PATH" in os.environ:
            self.environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]

    def run(self, *command, text=None, codes=(0,)):
        """Runs a program and returns what it printed."""
        command = [str(word) for word in command]
        done = subprocess.run(
            command, env=self.environment, cwd=self.home, input=text, capture_output=True, text=True, timeout=300
        )
        if done.returncode not in codes:
            raise Failure(f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout


def path_without_rust():
    """The folders of PATH, without those that have cargo or rustc."""
    folders = os.environ["PATH"].split(os.pathsep)
    return os.pathsep.join(
        folder for folder in folders if not any((pathlib.Path(folder) / name).exists() for name in ("cargo", "rustc"))
    )


def try_program(room, *program):
    """Ingests, searches, calls a tool, and checks a registration. Returns the seconds of ingest and search."""
    started = time.monotonic()
    room.run(*program, "ingest", "--quiet", SAMPLES)
    answer = json.loads(room.run(*program, "--json", "search", "error"))
    seconds = time.monotonic() - started
    if answer["status"] != "ok" or not answer["data"]["matches"]:
        raise Failure(f"the search found nothing: {answer}")
    room.run(*program, "search", "zzqqxx", codes=(1,))

    result = call_tool(room, *program)
    if result["data"]["matches"] != answer["data"]["matches"]:
        raise Failure("the tool found something else than the command")
    room.run(*program, "setup", "claude", "--write")
    checked = json.loads(room.run(*program, "--json", "setup", "claude", "--check"))["checks"][0]
    if checked.get("problem") or not checked["tools"]:
        raise Failure(f"setup --check: {checked}")
    return seconds


def call_tool(room, *program):
    """The answer of search_events over stdio."""
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "packages", "version": "1"}}
    lines = [
        {"id": 1, "method": "initialize", "params": client},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "search_events", "arguments": {"query": "error"}}},
    ]
    text = "".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines)
    answers = [json.loads(line) for line in room.run(*program, "mcp", text=text).splitlines()]
    result = next(answer for answer in answers if answer.get("id") == 2)["result"]
    return result["structuredContent"]


def find(folder, pattern):
    """The one file of this name."""
    found = list(folder.glob(pattern))
    if len(found) != 1:
        raise Failure(f"{folder} has {len(found)} files {pattern}")
    return found[0]


def check_archive(room, packages, _):
    archive = find(packages, "sessions-mcp-*-*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(room.home / "archive", filter="data")
    folder = find(room.home / "archive", "*")
    check_binstall(archive, folder)
    return try_program(room, folder / "sessions")


def check_binstall(archive, folder):
    """The places that Cargo.toml gives to cargo-binstall are those of the archive."""
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text())
    binstall = manifest["package"]["metadata"]["binstall"]
    version = manifest["workspace"]["package"]["version"]
    name = manifest["package"]["name"]
    values = {
        "name": name,
        "version": version,
        "repo": manifest["workspace"]["package"]["repository"],
        "target": folder.name.removeprefix(f"{name}-{version}-"),
        "bin": "sessions",
        "binary-ext": "",
    }
    fill = lambda text: re.sub(r"\{ ([a-z-]+) \}", lambda match: values[match[1]], text)
    if pathlib.PurePosixPath(fill(binstall["pkg-url"])).name != archive.name:
        raise Failure(f"cargo binstall would fetch {fill(binstall['pkg-url'])}, not {archive.name}")
    if not (folder.parent / fill(binstall["bin-dir"])).exists():
        raise Failure(f"cargo binstall would look for {fill(binstall['bin-dir'])}")


def check_pip(room, packages, _):
    room.run("python3", "-m", "venv", "venv")
    room.run("venv/bin/pip", "install", "--quiet", "--no-index", find(packages, "*.whl"))
    return try_program(room, room.home / "venv/bin/sessions")


def check_uvx(room, packages, args):
    wheel = find(packages, "*.whl")
    # The cache is in the empty home.
    room.environment["UV_OFFLINE"] = "1"
    room.environment["UV_PYTHON_DOWNLOADS"] = "never"
    return try_program(room, args.uv, "tool", "run", "--from", wheel, "sessions-mcp")


def install_npm(room, packages):
    launcher = [file for file in packages.glob("sessions-mcp-[0-9]*.tgz")]
    platform = [file for file in packages.glob("*.tgz") if file not in launcher]
    (room.home / "project").mkdir()
    flags = ["--offline", "--no-audit", "--no-fund", "--ignore-scripts"]
    room.run("npm", "install", "--prefix", room.home / "project", *flags, *launcher, *platform)
    return room.home / "project/node_modules/.bin"


def check_npm(room, packages, _):
    programs = install_npm(room, packages)
    seconds = try_program(room, programs / "sessions-mcp")
    direct = find(room.home / "project/node_modules", "sessions-mcp-*-*/bin/sessions")
    added = measure(room, programs / "sessions") - measure(room, direct)
    print(f"    the launcher of npm adds {added:.0f} ms to the start of a server")
    if added > MAX_LAUNCHER_MS:
        raise Failure(f"the launcher of npm adds {added:.0f} ms, more than {MAX_LAUNCHER_MS}")
    room.run(programs / "sessions", "search", codes=(2,))
    return seconds


def measure(room, program):
    """The milliseconds until the server answers the first request, at best: more is the load of the machine."""
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}) + "\n"
    times = []
    for _ in range(ROUNDS):
        started = time.monotonic()
        server = subprocess.Popen(
            [program, "mcp"], env=room.environment, cwd=room.home, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        server.stdin.write(request.encode())
        server.stdin.flush()
        server.stdout.readline()
        times.append((time.monotonic() - started) * 1000)
        server.stdin.close()
        server.wait()
    return min(times)


def check_npx(room, packages, _):
    install_npm(room, packages)
    command = ["npx", "--offline", "--prefix", room.home / "project", "--no-install", "sessions-mcp"]
    return try_program(room, *command)


def check_debian(room, packages, _):
    root = room.home / "root"
    for folder in ("info", "updates", "triggers"):
        (root / "var/lib/dpkg" / folder).mkdir(parents=True)
    for file in ("status", "available"):
        (root / "var/lib/dpkg" / file).touch()
    # Its dependencies are installed in this system, not in the empty one.
    room.environment["PATH"] += ":/usr/sbin:/sbin"
    force = "--force-depends,not-root,bad-path"
    room.run("dpkg", f"--root={root}", force, "--log=/dev/null", "--install", find(packages, "*.deb"))
    listed = room.run("dpkg-query", f"--admindir={root}/var/lib/dpkg", "--show", "sessions-mcp")
    if not listed.startswith("sessions-mcp"):
        raise Failure(f"dpkg does not know the package: {listed}")
    return try_program(room, root / "usr/bin/sessions")


def check_mcpb(room, packages, args):
    room.run(args.mcpb, "unpack", find(packages, "*.mcpb"), room.home / "bundle")
    room.run(args.mcpb, "validate", room.home / "bundle/manifest.json")
    room.run(args.mcpb, "pack", room.home / "bundle", room.home / "again.mcpb")
    room.run(args.mcpb, "unpack", room.home / "again.mcpb", room.home / "again")
    manifest = json.loads((room.home / "again/manifest.json").read_text())
    config = manifest["server"]["mcp_config"]
    program = config["command"].replace("${__dirname}", str(room.home / "again"))
    if config["args"] != ["mcp"]:
        raise Failure(f"the bundle starts {config}")
    return try_program(room, program)


def check_installer(room, packages, _):
    room.run("sh", packages / "install.sh", "--prefix", room.home / "prefix", "--from", f"file://{packages}")
    return try_program(room, room.home / "prefix/bin/sessions")


def check_plugins(room, packages, _):
    """The launcher of a plugin with the program that install.sh installed."""
    room.run("sh", packages / "install.sh", "--from", f"file://{packages}")
    program = room.home / ".local/bin/sessions"
    seconds = try_program(room, program)
    room.run(program, "plugin", "build", room.home / "plugins")
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}) + "\n"
    answer = room.run(room.home / "plugins/portable/bin/sessions-mcp", text=request)
    if json.loads(answer)["result"] != {}:
        raise Failure(f"the launcher of the plugin answers {answer}")
    return seconds


def check_manifests(folder, tools):
    """Checks the syntax of what other package managers read; yields what is wrong."""
    for command in (
        ["ruby", "-c", folder / "sessions-mcp.rb"],
        ["sh", "-n", folder / "install.sh"],
        [tools / "shellcheck", folder / "install.sh"],
        [tools / "shellcheck", ROOT / "src/plugin/files/sessions-mcp", ROOT / "src/plugin/files/sessions-hook"],
        [tools / "hadolint", folder / "Dockerfile"],
    ):
        if shutil.which(command[0]) is None:
            print(f"SKIPPED: {command[0]} is not installed, {command[-1].name} is not checked")
            continue
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            yield f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}"
    yield from check_flake(folder / "flake.nix")

    scoop = json.loads((folder / "sessions-mcp.json").read_text())
    if not scoop["architecture"]["64bit"]["hash"] or scoop["bin"] != "sessions.exe":
        yield f"the manifest for Scoop: {scoop}"
    winget = [json.loads(file.read_text()) for file in sorted(folder.glob("AgentSessions.Sessions*.yaml"))]
    kinds = sorted(manifest["ManifestType"] for manifest in winget)
    if kinds != ["defaultLocale", "installer", "version"]:
        yield f"the manifests for winget are {kinds}"
    if len({manifest["PackageVersion"] for manifest in winget}) != 1:
        yield "the manifests for winget have different versions"


def check_flake(file):
    """Parses the flake with the grammar of Nix; yields what is wrong."""
    try:
        import tree_sitter
        import tree_sitter_nix
    except ImportError:
        print("SKIPPED: tree-sitter-nix is not installed, flake.nix is not checked")
        return
    language = tree_sitter.Language(tree_sitter_nix.language())
    tree = tree_sitter.Parser(language).parse(file.read_bytes())
    if tree.root_node.has_error:
        yield f"{file} is not Nix: {tree.root_node}"


CHECKS = {
    "archive": check_archive,
    "pip": check_pip,
    "uvx": check_uvx,
    "npm": check_npm,
    "npx": check_npx,
    "debian": check_debian,
    "mcpb": check_mcpb,
    "install.sh": check_installer,
    "plugins": check_plugins,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", type=pathlib.Path)
    parser.add_argument("all", type=pathlib.Path)
    # The programs are started from the empty homes.
    parser.add_argument("--uv", type=lambda path: pathlib.Path(path).absolute())
    parser.add_argument("--mcpb", type=lambda path: pathlib.Path(path).absolute())
    args = parser.parse_args()
    packages = args.packages.resolve()
    failures = []
    for name, check in CHECKS.items():
        if (name == "uvx" and not args.uv) or (name == "mcpb" and not args.mcpb):
            print(f"SKIPPED: {name}: no program was named for it")
            continue
        with tempfile.TemporaryDirectory() as folder:
            started = time.monotonic()
            try:
                first_search = check(Room(pathlib.Path(folder).resolve()), packages, args)
            except (Failure, OSError, KeyError, ValueError, subprocess.TimeoutExpired) as failure:
                failures.append(f"{name}: {failure!r}" if not isinstance(failure, Failure) else f"{name}: {failure}")
                continue
            whole = time.monotonic() - started
            print(f"{name:<12} ingest and first search {first_search:5.2f} s, everything {whole:5.2f} s", flush=True)
            if first_search > MAX_FIRST_SEARCH_SECONDS:
                failures.append(f"{name}: ingest and first search took {first_search:.1f} s")
    failures += check_manifests(args.all.resolve(), pathlib.Path(sys.executable).parent)
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
