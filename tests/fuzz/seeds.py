#!/usr/bin/env python3
"""Writes seeds and dictionaries from the sample sessions: seeds.py FOLDER [SESSIONS]

The program SESSIONS publishes a session whose objects are seeds, too.

FOLDER gets seeds/<target>/ (decode: seeds/decode-<provider>/) and dict/<provider>.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SAMPLES = ROOT / "sample-sessions"
PROVIDERS = ROOT / "ingest/src/provider"
MOST = 64 << 10  # of a log that cannot be taken apart
PIECE = 8 << 10  # what is short is tried more often


def words(provider):
    """Texts in the decoder's code, and the keys and short texts of the samples."""
    found = set()
    for code in (PROVIDERS / provider).glob("*.rs"):
        found |= set(re.findall(r'"([^"\\{}\n]{2,40})"', code.read_text()))

    def walk(value):
        if isinstance(value, dict):
            found.update(key for key in value if len(key) <= 40)
            for field in value.values():
                walk(field)
        elif isinstance(value, list):
            for item in value:
                walk(item)
        elif isinstance(value, str) and re.fullmatch(r"[\w.:/-]{2,32}", value, re.ASCII):
            found.add(value)

    for path in logs(provider):
        text = path.read_text(errors="replace")
        for part in [text, *text.splitlines()]:
            try:
                walk(json.loads(part))
            except ValueError:
                pass
    escape = lambda word: "".join(f"\\x{b:02x}" if b in b'"\\' or not 32 <= b < 127 else chr(b) for b in word.encode())
    return [f'"{escape(word)}"' for word in sorted(found)]


def logs(provider):
    return sorted(path for path in (SAMPLES / provider).rglob("*") if path.is_file() and path.suffix != ".db")


def pieces(content):
    """Runs of lines; a document stays whole."""
    lines = content.splitlines(keepends=True)
    whole = lambda line: line.startswith(b"{") and line.rstrip().endswith(b"}")
    found = [b""]
    for line in lines:
        if len(lines) > 1 and whole(lines[0]) and found[-1] and len(found[-1]) + len(line) > PIECE:
            found.append(b"")
        found[-1] += line
    return found


LOG = """{"timestamp":"2026-10-29T06:00:00.000Z","type":"session_meta","payload":{"id":"s1","timestamp":"2026-10-29T06:00:00.000Z","cwd":"/srv/code/harbor","originator":"codex_cli_rs","cli_version":"0.50.0"}}
{"timestamp":"2026-10-29T06:00:01.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Moor the boat."}]}}
{"timestamp":"2026-10-29T06:00:02.000Z","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\\"command\\":[\\"ls\\"]}","call_id":"c1"}}
{"timestamp":"2026-10-29T06:00:03.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"no such berth"}}
"""


def published(sessions):
    """The objects of a session in a lake: its row, then its events."""
    with tempfile.TemporaryDirectory() as home:
        home = Path(home)
        environment = {**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}
        (home / ".config/sessions").mkdir(parents=True)
        (home / ".config/sessions/settings.toml").write_text("[publish]\ninclude = ['**']\ncontent = 'full'\n")
        (home / "rollout-s1.jsonl").write_text(LOG)
        for command in (["ingest", str(home / "rollout-s1.jsonl")], ["push", str(home / "lake")]):
            subprocess.run([sessions, "--quiet", *command], env=environment, check=True, stdout=subprocess.DEVNULL)
        return [next((home / "lake/v1" / table).rglob("*.parquet")).read_bytes() for table in ("sessions", "events")]


def main(out, sessions=None):
    def seed(target, name, head, content):
        folder = out / "seeds" / target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(head + content[: MOST - len(head)])

    (out / "dict").mkdir(parents=True, exist_ok=True)
    for provider in sorted(path.name for path in SAMPLES.iterdir() if path.is_dir()):
        agent = provider not in ("broken", "hostile")
        for number, path in enumerate(logs(provider)):
            content, name = path.read_bytes(), f"{provider}-{number}"
            for cut in (b"\0\0\0\0", b"\x03\x21\x0a\x07"):
                for part, piece in enumerate(pieces(content) if agent else ()):
                    seed(f"decode-{provider}", f"{name}-{part}-{cut.hex()}", b"\0" + cut, piece)
            for kind in range(10):
                seed("containers", f"{name}-{kind}", bytes([kind]) + b"\xff" * 9, content[:8192])
            seed("redact", name, b"\0\0\0\0", content[:4096])
            seed("lines", name, b"\xff\x40\x03\xff\x00", content[:2048])
        if agent:
            (out / "dict" / provider).write_text("\n".join(words(provider)) + "\n")
    database = (SAMPLES / "opencode/opencode.db").read_bytes()
    seed("containers", "database", b"\x04" + b"\xff" * 9, database)
    for name in ("secrets", "lookalikes"):
        cases = (ROOT / f"ingest/tests/redact/{name}.txt").read_text().replace("‹›", "").split("§ ")
        for number, case in enumerate(cases):
            text = re.sub(r"⟦[^:]*:|⟧", "", case.partition("\n")[2])
            seed("redact", f"{name}-{number}", b"\0\0\0\0", text.encode())
    key = "v1/sessions/p_provider=codex/s1/m1-0123456789abcdef.parquet"
    session = {"provider": "codex", "log": "f0", "row": "a1", "events": 1, "objects": [{"key": key, "bytes": 3, "sha256": "00"}]}
    listing = {"version": 1, "id": "m1", "machine": "laptop", "user_name": "mira", "sessions": {"s1": session}}
    seed("lake", "listing", b"\0\0\0", json.dumps(listing).encode())
    events, index = ({"key": f"v1/days/2026-10-14/a1.{end}", "bytes": 3, "sha256": "00"} for end in ("parquet", "skip"))
    source = {"session": "s1", "key": "v1/events/p_provider=codex/p_date=2026-10-14/s1-0-0123456789abcdef.parquet", "sha256": "00", "rows": 1}
    rows = {"object": events, "sources": [{**source, "key": key}]}
    joined = {"object": events, "index": index, "sources": [source]}
    day = {"version": 1, "date": "2026-10-14", "objects": [joined], "rows": [rows]}
    seed("lake", "day", b"\2\0\0", json.dumps(day).encode())
    if sessions:
        row, events = published(sessions)
        seed("lake", "session", b"\1" + len(row).to_bytes(2, "little"), row + events)
        seed("lake", "row", b"\1\xff\xff", row)
        seed("lake", "joined-rows", b"\3\1\0", row)
        seed("lake", "joined-events", b"\3\3\1", events)
    anchors = set()
    for code in (ROOT / "ingest/src/redact").glob("*.rs"):
        anchors |= set(re.findall(r'"([^"\\{}\n]{2,24})"', code.read_text()))
    (out / "dict/redact").write_text("".join(f'"{word}"\n' for word in sorted(anchors) if word.isascii()))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
