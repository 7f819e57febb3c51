#!/usr/bin/env python3
"""Opens a report of `sessions` and a transcript in headless Chromium, in light and dark: no message, no
request, every session's page, every chart with its table, and no finding of axe-core.

    pip install playwright;  apt-get install chromium;  npm install --prefix DIR axe-core
    python3 tests/check_report.py SESSIONS [LOGS] [--axe DIR/node_modules/axe-core/axe.min.js] [--shots DIR]

SESSIONS  the binary of this project (give it LD_LIBRARY_PATH if it needs that for libduckdb)
LOGS      a folder of logs; default sample-sessions
--shots   where to put screenshots, for looking at them

Exit code 1 when something is wrong, 2 when something could not be run.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sessions", type=pathlib.Path)
    parser.add_argument("logs", type=pathlib.Path, nargs="?", default=ROOT / "sample-sessions")
    parser.add_argument("--axe", type=pathlib.Path)
    parser.add_argument("--shots", type=pathlib.Path)
    args = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        print("pip install playwright")
        return 2
    if not chromium:
        print("there is no Chromium in the PATH")
        return 2
    failures = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        folder = pathlib.Path(folder)
        run = lambda *rest: subprocess.run([args.sessions.resolve(), "--store", folder / "store", *rest], check=True,
                                           capture_output=True, text=True).stdout
        run("ingest", "--quiet", args.logs.resolve())
        run("report", "-o", folder / "report.html")
        run("export", "--format", "html", "-o", folder / "transcripts")
        transcripts = sorted((folder / "transcripts").iterdir(), key=lambda path: -path.stat().st_size)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for scheme in ["light", "dark"]:
            context = browser.new_context(color_scheme=scheme, viewport={"width": 1280, "height": 900})
            page = context.new_page()
            page.on("console", lambda message: failures.append(f"console: {message.text}"))
            page.on("pageerror", lambda error: failures.append(f"error: {error}"))
            page.on("request", lambda request: request.url.startswith("file:") or failures.append(request.url))

            def look(name):
                if args.shots:
                    args.shots.mkdir(parents=True, exist_ok=True)
                    page.screenshot(path=args.shots / f"{name}-{scheme}.png", full_page=True)
                page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
                page.wait_for_timeout(200)
                if args.axe:
                    page.evaluate(args.axe.read_text(encoding="utf-8"))
                    found = page.evaluate("(rules) => axe.run({ runOnly: rules })", RULES)
                    failures.extend(f"{name} {scheme}: {one['id']}: {one['nodes'][0]['html'][:200]}"
                                    for one in found["violations"])

            page.goto((folder / "report.html").as_uri())
            page.wait_for_selector("h1")
            look("report")
            charts, tables = page.locator("canvas[role=img]").count(), page.locator("section:has(canvas) table").count()
            if charts < 5 or tables < charts:
                failures.append(f"{charts} charts and {tables} tables")
            ids = page.evaluate("JSON.parse(document.getElementById('data').textContent).sessions.map((one) => one.session_id)")
            for at, session in enumerate(ids):
                page.evaluate("(id) => { location.hash = '#session/' + encodeURIComponent(id); }", session)
                page.wait_for_function("(id) => document.querySelector('main').textContent.includes(id) && "
                                       "document.activeElement === document.querySelector('h1')", arg=session)
                if at < 3:
                    look(f"session-{at}")
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.tagName") == "BODY":
                failures.append("the keyboard reaches nothing")
            for at, transcript in enumerate(transcripts[:3]):
                page.goto(transcript.as_uri())
                look(f"transcript-{at}")
            for transcript in transcripts[3:]:
                page.goto(transcript.as_uri())
            print(f"{scheme}: {charts} charts, {len(ids)} sessions, {len(transcripts)} transcripts")
            context.close()
        browser.close()
    for failure in failures:
        print("WRONG", failure)
    print(f"{0 if failures else 1} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, subprocess.CalledProcessError) as error:
        print(error)
        sys.exit(2)
