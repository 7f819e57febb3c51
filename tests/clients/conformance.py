#!/usr/bin/env python3
"""Runs the official conformance suite of MCP against the server over HTTP, for both eras of the
protocol, and compares what does not pass with conformance.toml.

    npm ci --prefix tests/clients/typescript
    python3 tests/clients/conformance.py SESSIONS

SESSIONS  the binary of this project (give it LD_LIBRARY_PATH if it needs that for libduckdb)

Exit code 1 when a check fails that is not listed there, fails in other words, or passes although
it is listed, and when something could not be run.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

import place

VERSIONS = ["2025-11-25", "2026-07-28"]
# With the Node.js that the suite needs.
PROGRAMS = place.HERE / "typescript" / "node_modules" / ".bin"


def results(address, version):
    """Runs the scenarios of a version; yields the name of each with its checks."""
    path = os.pathsep.join([str(PROGRAMS), os.environ["PATH"]])
    command = [PROGRAMS / "conformance", "server", "--url", address, "--suite", "all", "--spec-version", version]
    with tempfile.TemporaryDirectory() as folder:
        # Its exit code says that some failed, which some do.
        done = subprocess.run(
            [*command, "--output-dir", folder], env={**os.environ, "PATH": path}, capture_output=True, text=True
        )
        files = sorted(pathlib.Path(folder).glob("*/checks.json"))
        if not files:
            raise RuntimeError(f"the suite left no results: {done.stdout}{done.stderr}")
        for file in files:
            name = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z", file.parent.name)[1]
            yield name, json.loads(file.read_text())


def unmet(checks):
    """The checks that did not pass; of a scenario in which nothing was checked, all of them."""
    open_ones = [check for check in checks if check["status"] not in ("SUCCESS", "INFO")]
    passed = any(check["status"] == "SUCCESS" for check in checks)
    return open_ones if open_ones or passed else checks


def exceptions(version):
    """What is listed for a version: scenario and check, with what the suite says."""
    rows = tomllib.loads((place.HERE / "conformance.toml").read_text())["exception"]
    rows = [row for row in rows if version in row.get("versions", VERSIONS)]
    return {(scenario, name): says for row in rows for scenario, name, says in row["checks"]}


def check(binary):
    """The number of differences from the list."""
    wrong, listed, seen = [], set(), set()
    with place.samples(binary) as here, here.http("--no-auth", "--allow-labels") as address:
        for version in VERSIONS:
            expected, passed, failed = exceptions(version), 0, set()
            for scenario, checks in results(address, version):
                seen.add(scenario)
                missed = unmet(checks)
                passed += sum(one["status"] == "SUCCESS" for one in checks)
                for one in missed:
                    key = (scenario, one["id"])
                    failed.add(key)
                    said = one.get("errorMessage") or json.dumps(one.get("details", {}))
                    if expected.get(key) is None or expected[key] not in said:
                        wrong.append(f"{version} {scenario}, {one['id']}, {one['status']}: {said}")
                for key in expected.keys() - failed:
                    if key[0] == scenario:
                        wrong.append(f"{version} {scenario}, {key[1]}: passes, yet conformance.toml lists it")
            listed |= {scenario for scenario, _ in expected}
            print(f"{version}: {passed} checks passed, {len(failed & expected.keys())} exceptions as listed")
    wrong += [f"{scenario}: is not run, yet conformance.toml lists it" for scenario in listed - seen]
    for line in wrong:
        print(f"FAILED {line}")
    return len(wrong)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print(__doc__)
        sys.exit(2)
    sys.exit(1 if check(sys.argv[1]) else 0)
