#!/usr/bin/env python3
"""Runs every block of docs/analysts.md, in the order of the page, and checks that its programs see the
rows and the cost that `sessions query` counts.

    pip install -r tests/requirements.txt
    python3 tests/check_analysts.py SESSIONS [LOGS]

SESSIONS  the binary of this project (give it LD_LIBRARY_PATH if it needs that for libduckdb)
LOGS      a folder of logs; default sample-sessions

Exit code 1 when something differs, 2 when something could not be run.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def main():
    if not 2 <= len(sys.argv) <= 3:
        print(__doc__)
        return 2
    binary = pathlib.Path(sys.argv[1]).resolve()
    logs = pathlib.Path(sys.argv[2] if len(sys.argv) == 3 else ROOT / "sample-sessions").resolve()
    blocks = BLOCK.findall((ROOT / "docs/analysts.md").read_text())
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "bin").mkdir()
        (folder / "bin/sessions").symlink_to(binary)
        environment = {
            **os.environ,
            "HOME": str(folder),
            "SESSIONS_STORE": str(folder / "store"),
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        }

        def run(*command):
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
            if done.returncode != 0:
                raise RuntimeError(f"{command}: {done.stderr or done.stdout}")
            return done.stdout

        run(str(binary), "ingest", "--quiet", str(logs))
        for number, (language, code) in enumerate(blocks, 1):
            command = ["sh", "-ec", code] if language == "sh" else [sys.executable, "-c", code]
            try:
                run(*command)
            except RuntimeError as error:
                print(f"FAILED block {number} of docs/analysts.md: {error}")
                return 1

        failed = 0
        reader = (
            "import duckdb, json, sys; table, cost = sys.argv[1:]; "
            "print(json.dumps(duckdb.sql(f\"SELECT count(*), round(sum({cost}), 6) "
            "FROM '{table}.parquet'\").fetchall()[0]))"
        )
        for table, cost in [("sessions", "cost_usd"), ("usage", "cost_usd"), ("tool_calls", "duration_ms")]:
            read = json.loads(run(sys.executable, "-c", reader, table, cost))
            sql = f"SELECT count(*) AS rows, round(sum({cost}), 6) AS total FROM {table}"
            want = list(json.loads(run(str(binary), "query", "--output", "ndjson", sql)).values())
            if [float(value) for value in read] != [float(value) for value in want]:
                failed += 1
                print(f"DIFFERENT {table}: {read}, not {want}")
    print(f"{len(blocks)} blocks of docs/analysts.md ran, {failed} tables differ")
    return 1 if failed or len(blocks) < 5 else 0


if __name__ == "__main__":
    sys.exit(main())
