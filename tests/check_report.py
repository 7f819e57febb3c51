#!/usr/bin/env python3
"""Opens a report of `sessions` and transcripts in headless Chromium, at 1400 and 420 pixels, in light and dark: no message
of the console, no request, no finding of axe-core, nothing wider than the window. Then what they promise: filters, Back,
addresses, search, every session's conversation, images, printing, transcripts without JavaScript, and logs that try to run,
load, disguise or bury something.

    pip install playwright;  apt-get install chromium;  npm install --prefix DIR axe-core
    python3 tests/check_report.py SESSIONS [LOGS] [--axe DIR/node_modules/axe-core/axe.min.js] [--shots DIR]

SESSIONS  the binary of this project (give it LD_LIBRARY_PATH if it needs that for libduckdb)
LOGS      a folder of logs; default sample-sessions
--shots   where to put screenshots, for looking at them

Exit code 1 when something is wrong, 2 when something could not be run.
"""

import base64
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from urllib.parse import quote

from browser_checks import EVERYTHING, Checks, Server, read_arguments, wait_until
from hostile_logs import check_hostile

SIZES = [(1400, "light"), (1400, "dark"), (420, "light"), (420, "dark")]


def png():
    """A picture of 4 by 4 pixels."""
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    lines = b"".join(b"\0" + b"\x20\x60\xc0" * 4 for _ in range(4))
    head = struct.pack(">IIBBBBB", 4, 4, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def write_pictures(path):
    """A log with an image, and with text that only says that it has one."""
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(png()).decode()}
    content = [{"type": "text", "text": "What is on this? [image/png 999 bytes]"}, {"type": "image", "source": source}]
    record = {"type": "user", "sessionId": "pictures", "cwd": "/home/mira/pier", "uuid": "a-1", "version": "2.1.0",
              "timestamp": "2026-10-01T10:00:00.000Z", "message": {"role": "user", "content": content}}
    path.write_text(json.dumps(record) + "\n")


def open_page(checks, browser, width, scheme):
    page = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900}).new_page()
    page.on("console", lambda message: checks.expect(False, f"console: {message.text}"))
    page.on("pageerror", lambda error: checks.expect(False, f"error: {error}"))
    page.on("request", lambda request: checks.expect(request.url.startswith(("file:", "data:image/", "blob:")), f"request to {request.url[:200]}"))
    return page


def settle(page):
    page.wait_for_selector("main *")
    page.wait_for_timeout(300)
    wait_until(page, "!document.querySelector('[aria-busy=true], .loading')")
    page.wait_for_timeout(300)


def open_session(page, report, session, query=""):
    page.goto(f"{report}#/session/{session}{query}")
    page.wait_for_selector("[data-event]")
    settle(page)


def check_views(checks, browser, report, transcripts, sessions):
    """Opens every view at both widths and in both schemes."""
    for width, scheme in SIZES:
        page = open_page(checks, browser, width, scheme)
        for name, address in {"overview": "/", "sessions": "/search", "found": "/search?q=error"}.items():
            page.goto(f"{report}#{address}")
            settle(page)
            checks.look(page, f"report-{name}-{width}-{scheme}")
        for at, session in enumerate(sessions[:3]):
            open_session(page, report, session, f"?{EVERYTHING}")
            page.evaluate("document.querySelectorAll('.run > summary, .call > summary, .notice > summary').forEach((summary, at) => at < 12 && summary.click())")
            page.wait_for_timeout(300)
            checks.look(page, f"report-session-{at}-{width}-{scheme}")
        for at, transcript in enumerate(transcripts[:3]):
            page.goto(transcript.as_uri() + f"#{EVERYTHING}&open=1")
            page.wait_for_selector("[data-event]")
            settle(page)
            checks.look(page, f"transcript-{at}-{width}-{scheme}")
        page.context.close()


def check_behaviour(checks, browser, report, data):
    page = open_page(checks, browser, 1400, "light")
    start = time.monotonic()
    page.goto(report)
    page.wait_for_selector(".totals")
    print(f"report: {time.monotonic() - start:.1f} s until the overview is there", flush=True)
    settle(page)
    cost = page.inner_text(".totals dd >> nth=0")
    page.click(".filter-link >> nth=1")
    wait_until(page, "location.hash.includes('model=')")
    checks.expect(page.inner_text(".totals dd >> nth=0") != cost, "a filter changes nothing")
    page.go_back()
    wait_until(page, "!location.hash.includes('model=')")
    settle(page)
    checks.expect(page.inner_text(".totals dd >> nth=0") == cost, "Back does not remove a filter")

    page.evaluate("scrollTo(0, 700)")
    page.wait_for_timeout(500)
    page.click(".overview a[href*='/session/']:visible >> nth=0")
    page.wait_for_selector("[data-event]")
    settle(page)
    page.go_back()
    page.wait_for_selector(".totals")
    settle(page)
    checks.expect(page.evaluate("scrollY") > 300, "Back loses the place")

    page.keyboard.press("/")
    page.keyboard.type("hostile script", delay=20)
    page.wait_for_selector(".match mark")
    settle(page)
    checks.expect("q=hostile+script" in page.url, f"the query is not in the address: {page.url}")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    page.wait_for_selector(".item.target")
    box = page.locator(".item.target").bounding_box()
    checks.expect(box and 0 <= box["y"] < 800, f"the event of the link is not in sight: {box}")
    page.go_back()
    page.wait_for_selector(".match mark")
    checks.expect(page.input_value("#search") == "hostile script", "Back forgets the query")

    page.goto(f"{report}#/search?sort=tokens")
    settle(page)
    page.click(".session-row >> nth=0")
    wait_until(page, "document.querySelector('.session-nav .steps')?.textContent.includes('Session 1 of ')")
    page.keyboard.press("]")
    wait_until(page, "document.querySelector('.session-nav .steps')?.textContent.includes('Session 2 of ')")
    # The days of a bar filter everything.
    page.goto(f"{report}#/?by=month&measure=events")
    settle(page)
    page.click(".chart.bars g >> nth=-1")
    wait_until(page, "location.hash.startsWith('#/search?') && location.hash.includes('until=')")
    settle(page)
    rows = page.locator(".session-row").count()
    checks.expect(0 < rows < len(data["sessions"]), f"a month has {rows} of {len(data['sessions'])} sessions")
    page.evaluate("location.hash = location.hash.replace('#/search?', '#/?by=month&measure=events&')")
    page.wait_for_selector(".totals")
    settle(page)
    checks.expect(page.locator(".chart.bars g").count() == 1, "the filter of a month leaves other months")

    shown = 0
    for session in data["sessions"]:
        id = session["session_id"]
        page.goto(f"{report}#/session/{quote(id, safe='')}")
        wait_until(page, f"document.querySelector('.facts-side')?.textContent.includes({json.dumps(id)})")
        if session["counts"]["turns"] > 0:
            page.wait_for_selector("[data-event]", state="attached")
            shown += 1
    print(f"report: {len(data['sessions'])} sessions, {shown} with turns", flush=True)
    page.context.close()


def check_transcripts(checks, browser, folder, transcripts):
    page = open_page(checks, browser, 1400, "light")
    for transcript in transcripts:
        page.goto(transcript.as_uri())
        page.wait_for_selector(".session-head")
    # What is printed is the whole conversation.
    page.goto(transcripts[0].as_uri())
    page.wait_for_selector("[data-event]")
    settle(page)
    before = page.locator("[data-event]").count()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.wait_for_timeout(500)
    after = page.locator("[data-event]").count()
    last = page.evaluate("Number([...document.querySelectorAll('[data-event]')].at(-1).dataset.event)")
    total = page.evaluate("JSON.parse(document.getElementById('data').textContent).sessions[0].counts.events")
    checks.expect(after >= before and total - last < 60, f"{last} of {total} events are printed")
    # An address names an event and what is shown, and Back returns.
    page.goto(transcripts[0].as_uri() + "#event=20")
    page.reload()
    page.wait_for_selector("[data-event]")
    settle(page)
    page.click(".switch >> nth=0")
    checks.expect("show=answers+calls" in page.url, f"a switch is not in the address: {page.url}")
    checks.expect(page.locator("[data-event].user").count() == 0, "hidden prompts are shown")
    page.click(".outline a >> nth=-1")
    wait_until(page, "location.hash.includes('event=') && !location.hash.includes('event=20')")
    page.go_back()
    wait_until(page, "location.hash.includes('event=20')")

    page.goto((folder / "transcripts/pictures.html").as_uri())
    page.wait_for_selector(".images img")
    checks.expect(page.evaluate("document.querySelector('.images img').naturalWidth") == 4, "the image is not shown")
    page.context.close()


def check_without_script(checks, browser, folder, transcripts):
    """The same files with their script removed: every event is readable."""
    for name in [transcripts[0].name, "hostile.html"]:
        text = (folder / "transcripts" / name).read_text(encoding="utf-8")
        head, _, _ = text.rpartition("<script>")
        plain = folder / f"plain-{name}"
        plain.write_text(head + "</body></html>", encoding="utf-8")
        for width, scheme in SIZES:
            page = open_page(checks, browser, width, scheme)
            page.goto(plain.as_uri())
            page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            checks.look(page, f"plain-{name[:8]}-{width}-{scheme}")
            if name.startswith("hostile"):
                check_hostile(checks, page, "transcript without its script", "#plain")
            page.context.close()


def main():
    args = read_arguments(__doc__)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        print("pip install playwright")
        return 2
    checks = Checks(args.shots, args.axe and args.axe.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        folder = pathlib.Path(folder)
        server = Server(args.sessions.resolve(), folder)
        write_pictures(folder / "pictures.jsonl")
        server.run("ingest", "--quiet", str(folder / "pictures.jsonl"))
        largest = server.ingest(args.logs)
        server.run("report", "-o", str(folder / "report.html"))
        server.run("export", "--format", "html", "--images", "-o", str(folder / "transcripts"))
        transcripts = sorted((folder / "transcripts").iterdir(), key=lambda path: -path.stat().st_size)
        transcripts = [path for path in transcripts if path.name != "hostile.html"]
        text = (folder / "report.html").read_text(encoding="utf-8")
        data = json.loads(re.search(r'id="data">(.*?)</script>', text)[1])
        report = (folder / "report.html").as_uri()
        browser = playwright.chromium.launch(executable_path=args.chromium, args=["--no-sandbox"])
        check_views(checks, browser, report, transcripts, largest)
        check_behaviour(checks, browser, report, data)
        check_transcripts(checks, browser, folder, transcripts)
        check_without_script(checks, browser, folder, transcripts)
        for where, address in [("report", f"{report}#/session/hostile?{EVERYTHING}&open=1"), ("transcript", (folder / "transcripts/hostile.html").as_uri() + f"#{EVERYTHING}&open=1")]:
            page = open_page(checks, browser, 1400, "light")
            page.goto(address)
            page.wait_for_selector("[data-event]")
            settle(page)
            checks.look(page, f"hostile-{where}")
            check_hostile(checks, page, where)
            checks.expect(page.locator("main a[href='http://evil.example/x'] + .target").count() > 0, f"{where}: a fake link does not show its host")
            page.context.close()
        browser.close()
    return checks.report()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, subprocess.CalledProcessError) as error:
        print(error)
        sys.exit(2)
