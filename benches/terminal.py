#!/usr/bin/env python3
"""Measures what a user waits for at a terminal: a cold `sessions list` and `sessions search`, and the
keystrokes of the picker.

    python3 benches/terminal.py SESSIONS LOGS [WORD]...

SESSIONS  a release build of this project (give it LD_LIBRARY_PATH if it needs that for libduckdb)
LOGS      a folder of logs, such as those that `cargo xtask bench 1` generates
WORD      what is typed into the picker, one key after the other; default: a few common and rare words

A keystroke is answered when the screen has not changed for a quarter of a second; its time is that of
the last change: the list, and the preview of the selected session. The clock and the remark about new
logs, which are a few bytes, do not count. On a busy machine, `chrt -r 10 python3 ...` keeps other
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
WORDS = ["retry budget", "timeout", "zzqx", "cargo test failed"]


def milliseconds(times):
    ordered = sorted(1000 * one for one in times)
    p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    return f"median {statistics.median(ordered):.1f}, p95 {p95:.1f}, worst {ordered[-1]:.1f} ms"


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
        """Reads until the screen is quiet, and returns the time from `start` to its last change."""
        last = start
        while select.select([self.terminal], [], [], QUIET)[0]:
            if len(os.read(self.terminal, 65536)) >= MIN_ANSWER_BYTES:
                last = time.perf_counter()
        return last - start

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
            times.extend(picker.press(key) for key in word)
            # Clears the line.
            picker.press("\x15")
        picker.close()
        print(f"{len(times)} keystrokes: {milliseconds(times)}")


if __name__ == "__main__":
    main()
