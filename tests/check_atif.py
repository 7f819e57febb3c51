#!/usr/bin/env python3
"""Validates every session that `sessions export atif` writes with Harbor's own validator.

    python3 tests/check_atif.py SESSIONS LOGS...

SESSIONS  the binary of this project (give it LD_LIBRARY_PATH if it needs that for libduckdb)
LOGS      folders of logs

Runs in a Python (3.12 or newer) with the packages `harbor` 0.26.0 and `pydantic`. The exit code is 1 when
a document is rejected, and 2 when nothing was exported.
"""

import pathlib
import subprocess
import sys
import tempfile

from harbor.utils.trajectory_validator import TrajectoryValidator


def main():
    binary, *logs = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        store, output = f"{folder}/store", pathlib.Path(folder, "atif")
        subprocess.run([binary, "ingest", "--quiet", "--store", store, *logs], check=True)
        subprocess.run([binary, "export", "atif", "--store", store, "-o", output], check=True)
        rejected = 0
        documents = sorted(output.iterdir())
        for document in documents:
            validator = TrajectoryValidator()
            if not validator.validate(document):
                rejected += 1
                print(f"{document.name}:", *validator.get_errors()[:5], sep="\n  ")
    print(f"{len(documents)} documents, {rejected} rejected")
    return 2 if not documents else int(rejected > 0)


if __name__ == "__main__":
    sys.exit(main())
