#!/usr/bin/env python3
"""Measures what a user waits for at a terminal: a cold `sessions list` and `sessions search`, and the
keystrokes of the picker.

    python3 benches/terminal.py SESSIONS LOGS [WORD]...

SESSIONS  a release build of this project (give it LD_LIBRARY_PATH if it needs that for libduckdb)
LOGS      a folder of logs, such as those that `cargo xtask bench 1` generates
WORD      what is typed into the picker, one key after the other; default: a few common and rare words

Each word is typed, shortened by three keys, and followed by keys that select rows and change the
filters. A keystroke is answered when the screen has not changed for a quarter of a second; its time is
that of the last change: the list, and the preview of the selected session. The clock and the remark
about new logs, which are a few bytes, do not count. On a busy machine, `chrt -r 10 python3 ...` keeps other
programs from being measured. The logs are read into a store of their own, which is removed at the end.
"""

import fcntl
import os
import pathlib
import pty
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time

COLD_RUNS = 31
QUIET = 0.25
MIN_ANSWER_BYTES = 60
WORDS = ["retry budget", "timeout", "zzqx", "cargo test failed", "why does the cache", "is:error", "e"]
BACKSPACE, CLEAR_LINE = "\x7f", "\x15"
# Rows down, a page, a row up; then the filters by project, agent and time, until all are off again.
AFTER_WORD = ["\x1b[B", "\x1b[B", "\x1b[6~", "\x1b[A", "\x1bp", "\x1bp", "\x1ba", *["\x1bt"] * 4, "\x1ba"]


def milliseconds(times):
    ordered = sorted(1000 * one for one in times)
    p95, p99 = (ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in (0.95, 0.99))
    median = statistics.median(ordered)
    return f"median {median:.1f}, p95 {p95:.1f}, p99 {p99:.1f}, worst {ordered[-1]:.1f} ms"


def measure_cold(command, environment):
    times = []
    for _ in range(COLD_RUNS):
        start = time.perf_counter()
        done = subprocess.run(command, env=environment, capture_output=True)
        times.append(time.perf_counter() - start)
        if done.returncode not in (0, 1):
            sys.exit(f"{command}: {done.stderr.decode()}")
    return times


class Picker:
    """The picker in a pseudo-terminal."""

    def __init__(self, binary, environment):
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.execve(binary, [binary], environment)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))

    def settle(self, start):
        """Reads until the screen is quiet, and returns the time from `start` to its last change: to the
        first one if all are small."""
        first = last = None
        while select.select([self.terminal], [], [], QUIET)[0]:
            size = len(os.read(self.terminal, 65536))
            now = time.perf_counter()
            first = first or now
            if size >= MIN_ANSWER_BYTES:
                last = now
        return (last or first or start) - start

    def press(self, key):
        start = time.perf_counter()
        os.write(self.terminal, key.encode())
        return self.settle(start)

    def close(self):
        os.kill(self.process, signal.SIGTERM)
        os.waitpid(self.process, 0)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    binary, logs = str(pathlib.Path(sys.argv[1]).resolve()), str(pathlib.Path(sys.argv[2]).resolve())
    words = sys.argv[3:] or WORDS
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ, "HOME": folder, "SESSIONS_STORE": f"{folder}/store", "TERM": "xterm-256color", "TZ": "UTC",
        }
        start = time.perf_counter()
        subprocess.run([binary, "ingest", "--quiet", logs], env=environment, check=True)
        print(f"ingest: {time.perf_counter() - start:.1f} s")
        for arguments in (["list"], ["search", "timeout"], ["search", "zzqx"]):
            for more in ([], ["--no-refresh"]):
                line = arguments + more
                times = measure_cold([binary, *line], environment)
                print(f"cold `sessions {' '.join(line)}`: {milliseconds(times)}")
        picker = Picker(binary, environment)
        print(f"picker opens: {1000 * picker.settle(time.perf_counter()):.1f} ms")
        times = []
        for word in words:
            times.extend(picker.press(key) for key in [*word, *[BACKSPACE] * 3, *AFTER_WORD, CLEAR_LINE])
        picker.close()
        print(f"{len(times)} keystrokes: {milliseconds(times)}")


if __name__ == "__main__":
    main()
