"""What the checks in a browser share: arguments, a server over a store of its own, expectations, and waiting."""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

from hostile_logs import hostile_events, write_log

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# The choice of every kind of events, as an address names it.
EVERYTHING = "show=prompts+answers+calls+reasoning+notices"


def read_arguments(usage):
    """Returns the arguments of a check with the path of Chromium, or ends it if something is missing."""
    parser = argparse.ArgumentParser(description=usage, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sessions", type=pathlib.Path)
    parser.add_argument("logs", type=pathlib.Path, nargs="?", default=pathlib.Path(__file__).resolve().parent.parent / "sample-sessions")
    parser.add_argument("--axe", type=pathlib.Path)
    parser.add_argument("--shots", type=pathlib.Path)
    args = parser.parse_args()
    args.chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not args.chromium:
        print("there is no Chromium in the PATH")
        sys.exit(2)
    return args


class Server:
    """A server over a store of its own."""

    def __init__(self, program, folder):
        self.folder = folder
        self.program = program
        self.env = {**os.environ, "HOME": str(folder), "SESSIONS_STORE": str(folder / "store"), "XDG_DATA_HOME": str(folder / "share")}
        self.process = None

    def run(self, *args):
        return subprocess.run([self.program, *args], env=self.env, check=True, capture_output=True, text=True).stdout

    def ingest(self, logs):
        """Reads logs and a hostile one. Returns the largest other sessions, the largest first."""
        own = self.folder / "share/agent-sessions"
        own.mkdir(parents=True, exist_ok=True)
        write_log(own / "hostile.jsonl", "hostile", hostile_events())
        self.run("ingest", "--quiet", str(logs.resolve()), str(own))
        largest = json.loads(self.run("--json", "list", "--sort", "events", "--limit", "9"))["data"]["sessions"]
        return [one["session_id"] for one in largest if one["session_id"] not in ("many", "late", "hostile")]

    def start(self):
        args = [self.program, "web", "--http", "127.0.0.1:0", "--rate-limit", "0"]
        self.process = subprocess.Popen(args, env=self.env, stderr=subprocess.PIPE, text=True)
        return self.next_link()

    def next_link(self):
        return self.process.stderr.readline().strip().removeprefix("open ")

    def memory_mb(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status")
        if not status.exists():
            return None
        return next(int(line.split()[1]) // 1024 for line in status.read_text().splitlines() if line.startswith("VmRSS"))

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait(10)


class Checks:
    def __init__(self, shots, axe):
        self.shots = shots
        self.axe = axe
        self.failures = []

    def expect(self, is_so, what):
        if not is_so:
            self.failures.append(what)
            print(f"FAILED {what}", flush=True)

    def report(self):
        """Prints what was wrong. Returns the exit code."""
        for failure in self.failures:
            print(failure)
        print(f"{len(self.failures)} failures")
        return 1 if self.failures else 0

    def watch(self, page, base):
        # Chromium reports a refused query of the check of SQL by itself.
        page.on("console", lambda message: self.expect("status of 400" in message.text, f"console: {message.text}"))
        page.on("pageerror", lambda error: self.expect(False, f"error: {error}"))
        page.on("request", lambda request: self.expect(request.url.startswith((base, "blob:")), f"request to {request.url[:200]}"))

    def look(self, page, name, part="html"):
        """Looks at a view. `part` is where axe-core looks: what is scrolled under a bar is too small for it."""
        if self.shots:
            self.shots.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=self.shots / f"{name}.png")
        width = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        self.expect(width <= 0, f"{name} is {width} pixels too wide")
        self.find_barriers(page, name, part)

    def find_barriers(self, page, name, part="html"):
        """Reports what axe-core finds in a page or a frame."""
        if self.axe:
            page.evaluate(self.axe)
            found = page.evaluate("([part, tags]) => axe.run(part, { runOnly: tags }).then((run) => run.violations)", [part, RULES])
            for violation in found:
                self.expect(False, f"{name}: {violation['id']} at {violation['nodes'][0]['target']}")


def wait_until(page, expression, seconds=30):
    """Waits until an expression is true. Playwright's own function evaluates text in the page, which its policy forbids."""
    end = time.monotonic() + seconds
    while not page.evaluate(expression):
        if time.monotonic() > end:
            raise TimeoutError(f"{expression} stays false at {page.url}")
        page.wait_for_timeout(100)


def settle(page):
    """Waits until no call is running."""
    page.wait_for_selector("main *")
    page.wait_for_timeout(400)
    wait_until(page, "!document.querySelector('[aria-busy=true], .loading')")
    page.wait_for_timeout(400)
