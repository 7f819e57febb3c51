#!/usr/bin/env python3
"""Reads exports of `sessions` back with pyarrow, DuckDB, polars and pandas and compares rows and sums
with `sessions query`.

    pip install duckdb pyarrow polars pandas pytz     (what is missing is left out, and said)
    python3 tests/check_export.py SESSIONS [LOGS]

SESSIONS  the binary of this project (give it LD_LIBRARY_PATH if it needs that for libduckdb)
LOGS      a folder of logs; default sample-sessions

Exit code 1 when something differs, 2 when something could not be run.
"""

import importlib
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

SUMS = ["input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "duration_ms", "event_index"]
# The types that readers have to find, as DuckDB names them.
TYPES = {
    "session_id": "VARCHAR", "event_index": "INTEGER", "event_type": "VARCHAR", "provider": "VARCHAR",
    "timestamp": "TIMESTAMP WITH TIME ZONE", "text": "VARCHAR", "files": "VARCHAR[]", "is_error": "BOOLEAN",
    "output_tokens": "BIGINT", "is_replay": "BOOLEAN", "event_date": "DATE",
}


class Check:
    def __init__(self):
        self.failed = 0
        self.done = 0

    def same(self, what, got, want):
        self.done += 1
        if got != want:
            self.failed += 1
            print(f"DIFFERENT {what}: {got!r}, not {want!r}")


def library(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"SKIPPED {name}: pip install {name}")
        return None


def main():
    if not 2 <= len(sys.argv) <= 3:
        print(__doc__)
        return 2
    binary = pathlib.Path(sys.argv[1]).resolve()
    logs = pathlib.Path(sys.argv[2] if len(sys.argv) == 3 else ROOT / "sample-sessions").resolve()
    check = Check()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)

        def run(*args):
            done = subprocess.run([binary, "--store", folder / "store", *args], capture_output=True, text=True)
            if done.returncode not in (0, 1):
                raise RuntimeError(f"sessions {' '.join(map(str, args))}: {done.stderr or done.stdout}")
            return done.stdout

        def rows(sql):
            out = run("query", "--max-rows", "100000", "--output", "ndjson", sql)
            return [tuple(json.loads(line).values()) for line in out.splitlines()]

        run("ingest", "--quiet", logs)
        sums = ", ".join(f"sum({name})::BIGINT" for name in SUMS)
        events, *totals = rows(f"SELECT count(*), {sums} FROM events")[0]
        by_provider = dict(rows("SELECT provider, count(*) FROM events GROUP BY 1"))
        by_day = dict(rows("SELECT strftime(timestamp, '%Y-%m-%d'), count(*) FROM events GROUP BY 1"))
        texts = rows("SELECT sum(length(text))::BIGINT, count(DISTINCT text) FROM events")[0]
        print(f"{events} events of {logs}")

        lake, arrow, lines = folder / "lake", folder / "events.arrow", folder / "events.jsonl"
        for form, place in [("parquet", lake), ("arrow", arrow), ("jsonl", lines)]:
            done = json.loads(run("export", "--json", "--format", form, "-o", place))
            check.same(f"{form}: events it says it wrote", done["events"], events)
        everything = f"{lake}/*/*/*.parquet"

        if duckdb := library("duckdb"):
            con = duckdb.connect()
            con.execute("SET TimeZone = 'UTC'")
            table = f"read_parquet('{everything}', hive_partitioning = true)"
            sums = ", ".join(f"sum({name})::BIGINT" for name in SUMS)
            check.same("duckdb: rows and sums", con.execute(f"SELECT count(*), {sums} FROM {table}").fetchone(),
                       (events, *totals))
            check.same("duckdb: texts", con.execute(
                f"SELECT sum(length(text))::BIGINT, count(DISTINCT text) FROM {table}").fetchone(), texts)
            kinds = dict(con.execute(f"SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM {table})").fetchall())
            check.same("duckdb: types", {name: kinds.get(name) for name in TYPES}, TYPES)
            check.same("duckdb: partitions are the columns", con.execute(
                f"SELECT count(*) FROM {table} WHERE p_provider <> provider "
                "OR p_date IS NULL OR p_date <> event_date "
                "OR event_date IS DISTINCT FROM timestamp::DATE").fetchone()[0], 0)
            check.same("duckdb: by provider", dict(con.execute(
                f"SELECT provider, count(*) FROM {table} GROUP BY 1").fetchall()), by_provider)
            check.same("duckdb: by day", dict(con.execute(
                f"SELECT event_date::VARCHAR, count(*) FROM {table} GROUP BY 1").fetchall()), by_day)
            check.same("duckdb: every event once", con.execute(
                f"SELECT count(DISTINCT (session_id, event_index)) FROM {table}").fetchone()[0], events)
            check.same("duckdb: JSON lines", con.execute(
                f"SELECT count(*), sum(usage.output_tokens)::BIGINT FROM read_json('{lines}', format = 'newline_delimited', "
                "sample_size = -1, maximum_object_size = 268435456)").fetchone(), (events, totals[1]))

        if library("pyarrow"):
            import pyarrow.compute as compute
            import pyarrow.dataset
            import pyarrow.ipc
            import pyarrow.parquet

            def of_table(table):
                return (table.num_rows, *[compute.sum(table[name]).as_py() for name in SUMS])

            read = pyarrow.dataset.dataset(lake, partitioning="hive").to_table()
            check.same("pyarrow: dataset", of_table(read), (events, *totals))
            check.same("pyarrow: read_table", of_table(pyarrow.parquet.read_table(lake)), (events, *totals))
            with pyarrow.ipc.open_file(arrow) as file:
                read = file.read_all()
            check.same("pyarrow: Arrow file", of_table(read), (events, *totals))
            check.same("pyarrow: times", str(read.schema.field("timestamp").type), "timestamp[us, tz=UTC]")
            check.same("pyarrow: days", str(read.schema.field("event_date").type), "date32[day]")

        if polars := library("polars"):
            def of_frame(frame):
                return (frame.height, *[frame[name].sum() for name in SUMS])

            check.same("polars: Parquet", of_frame(polars.scan_parquet(everything, hive_partitioning=True).collect()),
                       (events, *totals))
            check.same("polars: Arrow file", of_frame(polars.read_ipc(arrow)), (events, *totals))

        if pandas := library("pandas"):
            frame = pandas.read_parquet(lake)
            check.same("pandas", (len(frame), *[int(frame[name].sum()) for name in SUMS]), (events, *totals))

        ids = set()
        output = 0
        with open(lines, encoding="utf-8") as file:
            for line in file:
                event = json.loads(line)
                ids.add(event["event_id"])
                output += event.get("usage", {}).get("output_tokens", 0)
        check.same("JSON lines", (len(ids), output), (events, totals[1]))

        again = json.loads(run("export", "--json", "--format", "parquet", "-o", lake))
        check.same("a second export writes nothing", again["files"], 0)
    print(f"{check.done - check.failed} passed, {check.failed} failed")
    return 1 if check.failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, RuntimeError) as error:
        print(error)
        sys.exit(2)
