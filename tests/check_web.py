#!/usr/bin/env python3
"""Drives the page of `sessions web` in headless Chromium, at 1400 and 420 pixels, in light and dark: every view, no
message of the console, no request to elsewhere, no finding of axe-core, nothing wider than the window. Then what the
page promises: a link works once, search as one types, keys, Back and Forward, addresses of events, diffs, labels, SQL,
live events, the colours of models, a session of 20,000 events, and logs that try to run, load, disguise or bury something.

    pip install playwright;  apt-get install chromium;  npm install --prefix DIR axe-core
    python3 tests/check_web.py SESSIONS [LOGS] [--axe DIR/node_modules/axe-core/axe.min.js] [--shots DIR]

SESSIONS  the binary of this project (give it LD_LIBRARY_PATH if it needs that for libduckdb)
LOGS      a folder of logs; default sample-sessions
--shots   where to put screenshots, for looking at them

Exit code 1 when something is wrong, 2 when something could not be run.
"""

import itertools
import json
import math
import pathlib
import re
import sys
import tempfile
import time
import tomllib

from browser_checks import EVERYTHING, Checks, Server, read_arguments, settle, wait_until
from hostile_logs import check_hostile, write_log
from reader_checks import check_list, check_overview, check_reader

MANY = 20_000
# Of the calls of the session of 20,000 events, each that many fails.
FAILED_EVERY = 97


def many_events():
    events = []
    for at in range(MANY // 4):
        stamp = f"2026-10-28T{at // 3600 % 24:02}:{at // 60 % 60:02}:{at % 60:02}Z"
        if at % 50 == 0:
            events.append({"type": "user", "timestamp": stamp, "text": f"prompt {at}"})
        events.append({"type": "message", "timestamp": stamp, "text": f"answer {at}\n\n" + "words and words " * (at % 40)})
        events.append({"type": "tool_call", "timestamp": stamp, "tool_name": "Bash", "tool_call_id": f"c{at}", "input": {"command": f"make {at}"}})
        events.append({"type": "tool_result", "timestamp": stamp, "tool_call_id": f"c{at}", "text": f"made {at}\n" * (at % 30),
                       "is_error": at % FAILED_EVERY == 0, "exit_code": int(at % FAILED_EVERY == 0)})
        events.append({"type": "reasoning", "timestamp": stamp, "text": f"thought {at}"})
    return events[:MANY]


def late_events():
    """A call whose result came after three chunks of other events, and another one between them."""
    def event(kind, **fields):
        return {"type": kind, "timestamp": "2026-10-28T09:00:00Z", **fields}

    def talk(number):
        return [event("message", text=f"meanwhile {at}\n\n" + "words and words " * 40) for at in range(number)]

    call = event("tool_call", tool_name="Bash", tool_call_id="slow", input={"command": "make everything"})
    result = event("tool_result", tool_call_id="slow", text="the build took an hour", exit_code=0)
    return [event("user", text="build all of it"), *talk(9), call, *talk(189), result, *talk(100)]


def check_views(checks, browser, link, sessions):
    """Opens every view at both widths and in both schemes."""
    base = link.split("/#")[0]
    state = None
    for width, scheme in [(1400, "light"), (1400, "dark"), (420, "light"), (420, "dark")]:
        context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900}, storage_state=state)
        page = context.new_page()
        checks.watch(page, base)
        if state is None:
            page.goto(link)
            page.wait_for_selector(".top")
            checks.expect("token" not in page.url, "the token stays in the address")
            state = context.storage_state()
        views = {"overview": "/", "sessions": "/search", "search": "/search?q=error", "failed": "/search?failed=1",
                 "live": "/live", "sql": "/sql?sql=SELECT+provider%2C+count(*)+FROM+sessions+GROUP+BY+1"}
        views |= {f"session-{at}": f"/session/{session}?{EVERYTHING}" for at, session in enumerate(sessions)}
        for name, path in views.items():
            page.goto(base + path)
            settle(page)
            if name.startswith("session-"):
                page.wait_for_selector("[data-event]")
                page.evaluate("document.querySelectorAll('.run > summary, .call > summary, .notice > summary').forEach((summary, at) => at < 12 && summary.click())")
                page.wait_for_timeout(300)
            checks.look(page, f"{name}-{width}-{scheme}")
        context.close()
    return state


def check_behaviour(checks, browser, server, link, state):
    base = link.split("/#")[0]
    context = browser.new_context(viewport={"width": 1400, "height": 900}, storage_state=state)
    page = context.new_page()
    checks.watch(page, base)

    other = browser.new_context().new_page()
    other.goto(link)
    other.wait_for_selector("[role=alert]")
    told = other.inner_text("main")
    checks.expect("has expired" in told, "a used link opens the page")
    checks.expect(told.count("link") == 1, f"a used link says twice what to do: {told}")

    page.goto(base + "/")
    settle(page)
    page.keyboard.press("/")
    page.keyboard.type("hostile", delay=40)
    page.wait_for_selector(".match mark")
    settle(page)
    checks.expect(page.url.endswith("/search?q=hostile"), f"the query is not in the address: {page.url}")
    checks.expect(page.inner_text(".match mark").lower() == "hostile", "the match is not marked")
    page.keyboard.press("Enter")
    page.keyboard.press("j")
    row = page.evaluate("document.activeElement.getAttribute('href')")
    page.keyboard.press("Enter")
    page.wait_for_selector(".item.target")
    checks.expect(page.url == base + row, "Enter opens another row")
    settle(page)
    box = page.locator(".item.target").bounding_box()
    checks.expect(box and 0 <= box["y"] < 800, f"the event of the link is not in sight: {box}")
    page.go_back()
    page.wait_for_selector(".match mark")
    checks.expect(page.input_value("#search") == "hostile", "Back forgets the query")
    page.keyboard.press("?")
    page.wait_for_selector("dialog.keys")
    checks.look(page, "keys")
    page.keyboard.press("Escape")

    page.goto(base + "/")
    settle(page)
    page.click(".filter-link >> nth=0")
    wait_until(page, "location.search.includes('model=')")
    page.go_back()
    wait_until(page, "!location.search.includes('model=')")

    page.goto(base + f"/session/hostile?{EVERYTHING}&open=1")
    page.wait_for_selector("[data-event]")
    settle(page)
    checks.look(page, "hostile")
    check_hostile(checks, page, "page")
    checks.expect(page.locator("main a[href='http://evil.example/x'] + .target").count() > 0, "a fake link does not show its host")
    page.click("button:has-text('Show all'), button:has-text('Load the remaining')")
    page.wait_for_timeout(500)

    page.fill("input[aria-label='Add a label']", "checked")
    page.keyboard.press("Enter")
    page.wait_for_selector(".label-chip:has-text('checked')")
    listed = json.loads(server.run("--json", "list", "--label", "checked"))
    checks.expect(len(listed["data"]["sessions"]) == 1, "the label is not in the store")

    page.goto(base + "/sql?sql=SELECT+1+AS+one+FROM+nowhere")
    page.wait_for_selector(".failure")
    page.fill("textarea", "SELECT session_id, events FROM sessions ORDER BY 2 DESC")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("td a")
    with page.expect_download() as download:
        page.click("button:has-text('CSV')")
    checks.expect(pathlib.Path(download.value.path()).read_text().startswith("session_id,events"), "the download is not CSV")
    context.close()


def check_live(checks, browser, server, link, state, log):
    """An event that is appended to a log is on the page within moments."""
    base = link.split("/#")[0]
    page = browser.new_context(viewport={"width": 1400, "height": 900}, storage_state=state).new_page()
    checks.watch(page, base)
    page.goto(base + "/session/live")
    page.wait_for_selector("[data-event]")
    settle(page)
    with log.open("a") as file:
        file.write(json.dumps({"type": "message", "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "text": "fresh words"}) + "\n")
    start = time.monotonic()
    page.wait_for_selector("text=fresh words", timeout=15_000)
    seconds = time.monotonic() - start
    print(f"live: {seconds:.2f} s from the log to the page", flush=True)
    checks.expect(seconds < 5, f"a new event took {seconds:.1f} s")
    write_live_logs(log.parent)
    page.goto(base + "/live")
    states = {"answered": "waiting for you", "calling": "running", "asked": "no answer yet", "stale": "no result"}
    for session, state in states.items():
        doing = f".agent-card:has(a[href*='/session/{session}']) .doing"
        wait_until(page, f"document.querySelector({json.dumps(doing)})")
        told = page.inner_text(doing)
        checks.expect(told.startswith(state), f"the session {session} says {told!r}")
    said = page.inner_text(".agent-card:has(a[href*='/session/answered']) .said")
    checks.expect(said == "done with all of it", f"the card says {said!r}")
    title = page.inner_text("h1")
    checks.expect(title == "4 active in the last 15 minutes", f"the live view says {title!r}")
    wide = page.evaluate("[...document.querySelectorAll('.agent-card .doing')].filter((one) => one.scrollWidth > one.clientWidth).length")
    checks.expect(wide == 0, f"{wide} calls are wider than their cards")
    checks.look(page, "live-active")


def write_live_logs(folder):
    """Sessions that end in different states: three of the last minutes, and one of hours ago."""
    def event(minutes_ago, kind, **fields):
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 60 * minutes_ago))
        return {"type": kind, "timestamp": stamp, **fields}

    call = {"tool_name": "mcp__browser_automation__take_a_screenshot_of_the_whole_page", "tool_call_id": "c", "input": {"command": "all of it"}}
    result = event(6, "tool_result", tool_call_id="c", text="done")
    write_log(folder / "answered.jsonl", "answered", [event(8, "user", text="go"), event(7, "tool_call", **call), result, event(5, "message", text="done with **all** of `it`")])
    write_log(folder / "calling.jsonl", "calling", [event(3, "user", text="go"), event(2, "tool_call", **call)])
    write_log(folder / "asked.jsonl", "asked", [event(1, "user", text="go")])
    write_log(folder / "stale.jsonl", "stale", [event(301, "user", text="go"), event(300, "tool_call", **call)])


def check_cards(checks, browser, link, state):
    """The cards of the overview keep their widths while they load, and show all columns of their tables."""
    base = link.split("/#")[0]
    context = browser.new_context(viewport={"width": 1280, "height": 900}, storage_state=state)
    page = context.new_page()
    page.goto(base + "/")
    settle(page)
    # Titles may change while they load, widths not: what is measured is the answer to an empty search.
    measure = "Object.fromEntries([...document.querySelectorAll('.grid-cards > .card')].map((card) => [card.querySelector('h2').textContent, card.getBoundingClientRect().width]))"
    loaded = page.evaluate(measure)
    page.goto(base + "/?project=there-is-no-such-project")
    settle(page)
    empty = page.evaluate(measure)
    checks.expect(len(empty) > 8, f"without data the overview has the cards {list(empty)}")
    changed = {name: (width, empty[name]) for name, width in loaded.items() if name in empty and abs(width - empty[name]) > 1}
    checks.expect(not changed, f"the widths of cards follow from their content: {changed}")
    page.goto(base + "/")
    settle(page)
    hidden = page.evaluate("(() => { const box = document.querySelector('.scroll:has(table)'); return box.scrollWidth - box.clientWidth; })()")
    checks.expect(hidden <= 0, f"{hidden} pixels of the table of tools are cut")
    context.close()


# The smallest difference of two colours that is clear in a legend. One of 0.02 is just noticeable.
MIN_DIFFERENCE = 0.045
# Number of models of a vendor that are compared, the newest ones.
NEWEST = 16


def newest_models():
    """Returns the newest models of each vendor in the price file."""
    by_vendor = {}
    for name in tomllib.loads((ROOT / "schemas/prices.toml").read_text(encoding="utf-8"))["models"]:
        # Fast is a mode of service of the same model.
        if name.endswith("-fast") and name.startswith("claude"):
            continue
        vendor = "gpt" if re.match(r"o\d|codex", name) else re.match(r"[A-Za-z]+", name)[0]
        # Longer numbers are dates.
        version = [int(number) for number in re.findall(r"\d+", re.sub(r"-20\d\d-.*", "", name)) if len(number) < 3]
        by_vendor.setdefault(vendor, []).append((version, name))
    newest = [sorted(models, key=lambda one: one[0], reverse=True)[:NEWEST] for models in by_vendor.values()]
    return [[name for _, name in models] for models in newest]


def oklab(rgb):
    """Returns a colour of the screen in OKLab."""
    red, green, blue = [part / 255 / 12.92 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in rgb]
    long = (0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue) ** (1 / 3)
    middle = (0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue) ** (1 / 3)
    short = (0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue) ** (1 / 3)
    return (0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short,
            1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short,
            0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short)


def check_colours(checks, browser, server, link, state, folder):
    """The newest models of a vendor have colours that differ clearly, in light and dark."""
    base = link.split("/#")[0]
    vendors = newest_models()
    names = [name for models in vendors for name in models]
    events = [{"type": "message", "timestamp": "2026-10-28T09:00:00Z", "text": name, "model": name} for name in names]
    path = folder / "palette.jsonl"
    write_log(path, "palette", events)
    server.run("ingest", "--quiet", str(path))
    for scheme in ("light", "dark"):
        context = browser.new_context(viewport={"width": 1400, "height": 900}, color_scheme=scheme, storage_state=state)
        page = context.new_page()
        page.goto(base + "/?measure=events&since=2026-10-28&until=2026-10-29")
        wait_until(page, "document.querySelector('.overview[aria-busy=false] .legend')")
        shown = page.evaluate("""(() => {
            const canvas = new OffscreenCanvas(1, 1).getContext('2d');
            return [...document.querySelectorAll('.legend .chip')].map((chip) => {
                canvas.fillStyle = getComputedStyle(chip.querySelector('.dot')).backgroundColor;
                canvas.fillRect(0, 0, 1, 1);
                return [chip.textContent.toLowerCase(), [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3)];
            });
        })()""")
        colours = {name: oklab(rgb) for name, rgb in shown}
        checks.expect(all(name.lower() in colours for name in names), f"the legend lacks {[name for name in names if name.lower() not in colours]}")
        least = 1.0
        for models in vendors:
            known = [name.lower() for name in models if name.lower() in colours]
            for one, other in itertools.combinations(known, 2):
                difference = math.dist(colours[one], colours[other])
                least = min(least, difference)
                checks.expect(difference >= MIN_DIFFERENCE, f"{one} and {other} differ by {difference:.3f} in {scheme}")
        print(f"colours: {len(names)} models, siblings differ by at least {least:.3f} in {scheme}", flush=True)
        checks.look(page, f"colours-{scheme}")
        context.close()


def check_many(checks, browser, link, state):
    """A session of 20,000 events scrolls, and only what is near is in the page."""
    base = link.split("/#")[0]
    page = browser.new_context(viewport={"width": 1400, "height": 900}, storage_state=state).new_page()
    checks.watch(page, base)
    page.goto(f"{base}/session/many?event={MANY // 2}")
    page.wait_for_selector("[data-event]")
    settle(page)
    at = page.evaluate("Number([...document.querySelectorAll('[data-event]')].find((node) => node.getBoundingClientRect().bottom > 130).dataset.event)")
    checks.expect(abs(at - MANY // 2) < 12, f"the link to event {MANY // 2} shows event {at}")
    frames = page.evaluate("""async () => {
        const times = [];
        let last = performance.now();
        for (let frame = 0; frame < 240; frame += 1) {
            scrollBy(0, 60);
            await new Promise(requestAnimationFrame);
            const now = performance.now();
            times.push(now - last);
            last = now;
        }
        return times.sort((a, b) => a - b);
    }""")
    p95 = frames[int(len(frames) * 0.95)]
    nodes = page.evaluate("document.querySelectorAll('[data-event]').length")
    print(f"20,000 events: {nodes} in the page, frames of {frames[len(frames) // 2]:.0f} ms (median), {p95:.0f} ms (95 %)", flush=True)
    checks.expect(nodes < 1000, f"{nodes} events are in the page")
    # Other programs on the machine may take the processor for a moment, but not for half of the frames.
    checks.expect(frames[len(frames) // 2] < 50, f"frames take {frames[len(frames) // 2]:.0f} ms")
    before = page.evaluate("scrollY")
    page.wait_for_timeout(600)
    page.click(".brand")
    page.wait_for_selector(".overview")
    page.go_back()
    page.wait_for_selector("[data-event]")
    settle(page)
    checks.expect(page.evaluate("scrollY") > 1000 and before > 1000, "Back loses the place")


def check_late_result(checks, browser, link, state):
    """A result is shown with its call. A link to it leads there, however far the call is away."""
    base = link.split("/#")[0]
    page = browser.new_context(viewport={"width": 1400, "height": 900}, storage_state=state).new_page()
    checks.watch(page, base)
    events = late_events()
    call = next(at for at, event in enumerate(events) if event["type"] == "tool_call")
    result = next(at for at, event in enumerate(events) if event["type"] == "tool_result")

    def expect_call(how):
        settle(page)
        item = page.query_selector(".item.target")
        checks.expect(item is not None, f"no event is marked {how}")
        if item is None:
            return
        checks.expect(item.get_attribute("data-event") == str(call), f"event {item.get_attribute('data-event')} is marked {how}")
        top = item.bounding_box()["y"]
        checks.expect(0 <= top < 800, f"the event is out of sight at {top} {how}")
        checks.expect("the build took an hour" in item.inner_text(), f"the result is not unfolded {how}")

    page.goto(f"{base}/session/late?event={result}")
    page.wait_for_selector("[data-event]")
    expect_call("by a link to the result of a call in another chunk")
    page.goto(f"{base}/session/late?event={result}&show=prompts+failed")
    page.wait_for_selector("[data-event]")
    expect_call("if no other calls are shown")
    page.goto(f"{base}/session/late?event={len(events) - 1}")
    page.wait_for_selector(".item.target")
    settle(page)
    page.fill("input[aria-label='Find in this session']", "took an hour")
    page.click(".find a")
    expect_call("by the search of the session")
    page.go_back()
    page.wait_for_selector(f".item[data-event='{len(events) - 1}'].target")
    page.go_forward()
    page.wait_for_selector(f".item[data-event='{call}'].target")
    expect_call("by Forward")


def check_kinds(checks, browser, link, state):
    """The kinds of events that are shown, in a session of 20,000 events: by click, by key and by address."""
    base = link.split("/#")[0]
    page = browser.new_context(viewport={"width": 1400, "height": 900}, storage_state=state).new_page()
    checks.watch(page, base)
    classes = "[...document.querySelectorAll('[data-event]')].map((one) => [...one.classList].find((name) => /^(user|message|reasoning|tool_call|notification)$/.test(name)))"
    page.goto(f"{base}/session/many?event={MANY // 2 + 2}")
    page.wait_for_selector(".item.target")
    settle(page)
    before = page.locator(".item.target").bounding_box()["y"]
    start = time.monotonic()
    page.keyboard.press("4")
    few = "document.querySelectorAll('.call:not(.failed)').length < 3"
    wait_until(page, f"document.querySelector('.item.message') && {few}")
    print(f"20,000 events: {(time.monotonic() - start) * 1000:.0f} ms until no other calls than failed ones are shown", flush=True)
    settle(page)
    checks.expect("show=prompts+answers+failed" in page.url, f"the kinds are not in the address: {page.url}")
    box = page.locator(".item.target").bounding_box()
    checks.expect(box and abs(box["y"] - before) < 3, f"the event that was read moved from {before} to {box}")
    page.click(".switch >> nth=0")
    page.keyboard.press("2")
    wait_until(page, "location.search.includes('show=failed')")
    settle(page)
    checks.look(page, "failed-calls", ".kinds")
    page.goto(f"{base}/session/many?show=failed")
    page.wait_for_selector(".call.failed")
    settle(page)
    failed = (MANY // 4 + FAILED_EVERY - 1) // FAILED_EVERY
    events = page.evaluate(f"({classes}).length")
    calls = page.locator(".call.failed").count()
    checks.find_barriers(page, "only failed calls")
    checks.expect(0 < calls == events <= failed, f"{calls} failed calls and {events} events are shown, of {failed}")
    page.keyboard.press("End")
    wait_until(page, f"Number([...document.querySelectorAll('[data-event]')].at(-1).dataset.event) > {MANY - 4 * FAILED_EVERY - 10}")
    page.goto(f"{base}/session/many?show=prompts")
    page.wait_for_selector("[data-event]")
    settle(page)
    checks.expect(set(page.evaluate(classes)) == {"user"}, "other events than prompts are shown")
    page.goto(f"{base}/session/hostile?show=none")
    page.wait_for_selector(".kinds")
    settle(page)
    checks.expect(page.locator(".user, .message, .tool_call").count() == 0, "events are shown although none was chosen")


def check_outline(checks, browser, link, state):
    """The list of turns: the current one is marked and in sight, keys and clicks lead to others."""
    base = link.split("/#")[0]
    for width, scheme in [(1400, "light"), (420, "dark")]:
        page = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, storage_state=state).new_page()
        checks.watch(page, base)
        page.goto(f"{base}/session/many?event={MANY // 2}")
        page.wait_for_selector(".item.target")
        settle(page)
        turn = page.evaluate("document.querySelector('.outline .current .number')?.textContent")
        # Fifty times four events after a prompt.
        checks.expect(turn == str(MANY // 2 // 201 + 1), f"turn {turn} is marked at {width} pixels")
        if width < 800:
            checks.expect(not page.is_visible(".outline ol"), "the list of turns is open on a phone")
            checks.expect("Turn 5" in page.inner_text(".outline summary"), "the closed list does not name the turn")
            page.click(".outline summary")
            page.wait_for_selector(".outline ol:visible")
            page.keyboard.press("Escape")
            page.wait_for_selector(".outline ol", state="hidden")
        page.keyboard.press("t")
        wait_until(page, "document.activeElement.matches('.outline .current a')")
        page.wait_for_timeout(300)
        checks.look(page, f"outline-{width}", ".outline")
        inside = page.evaluate("""(() => {
            const box = document.querySelector('.outline ol').getBoundingClientRect();
            const row = document.querySelector('.outline .current').getBoundingClientRect();
            return box.height > 100 && row.top >= box.top && row.bottom <= box.bottom;
        })()""")
        checks.expect(inside, f"the current turn is out of sight at {width} pixels")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.wait_for_selector(".item.user.target")
        settle(page)
        page.wait_for_timeout(500)
        marked = page.evaluate("Number(document.querySelector('.outline .current .number').textContent)")
        checks.expect(marked == int(turn) + 2, f"turn {marked} is marked after a jump from {turn} to the next but one")
        if width < 800:
            checks.expect(not page.is_visible(".outline ol"), "the list of turns covers the turn that was chosen")
        # Two turns are 402 events, of which the page has no more than the nearest.
        for key, by in [("n", 1), ("n", 1), ("n", 1), ("p", -1)]:
            turn = int(page.text_content(".outline .current .number")) + by
            page.keyboard.press(key)
            wait_until(page, f"document.querySelector('.outline .current .number').textContent === '{turn}'")
            settle(page)
        page.context.close()


def check_speed(checks, browser, link, state):
    """From a key to painted results."""
    base = link.split("/#")[0]
    page = browser.new_context(viewport={"width": 1400, "height": 900}, storage_state=state).new_page()
    page.goto(base + "/search")
    settle(page)
    times = page.evaluate("""async () => {
        const box = document.querySelector('#search');
        const times = [];
        for (const text of ['t', 'te', 'tes', 'test', 'test r', 'test re', 'test ret', 'test retr', 'test retry']) {
            const start = performance.now();
            box.value = text;
            box.dispatchEvent(new Event('input', { bubbles: true }));
            await new Promise((done) => {
                const look = () => {
                    const results = document.querySelector('.results');
                    if (results && results.getAttribute('aria-busy') !== 'true') requestAnimationFrame(() => setTimeout(done));
                    else requestAnimationFrame(look);
                };
                requestAnimationFrame(look);
            });
            times.push(performance.now() - start);
            await new Promise((done) => setTimeout(done, 200));
        }
        return times.sort((a, b) => a - b);
    }""")
    print(f"search: {times[len(times) // 2]:.0f} ms from a key to painted results (median), at most {times[-1]:.0f} ms", flush=True)
    checks.expect(times[len(times) // 2] < 500, "search is slow")


def main():
    args = read_arguments(__doc__)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        print("pip install playwright")
        return 2
    checks = Checks(args.shots, args.axe and args.axe.read_text())
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        folder = pathlib.Path(folder)
        own = folder / "share/agent-sessions"
        own.mkdir(parents=True)
        write_log(own / "many.jsonl", "many", many_events())
        write_log(own / "late.jsonl", "late", late_events())
        write_log(own / "live.jsonl", "live", [{"type": "user", "timestamp": "2026-10-29T06:00:00Z", "text": "first words"}])
        server = Server(args.sessions.resolve(), folder)
        named = server.ingest(args.logs)[:4]
        browser = playwright.chromium.launch(executable_path=args.chromium, args=["--no-sandbox"])
        try:
            link = server.start()
            idle = server.memory_mb()
            print(f"memory of the server before the first call: {idle} MB", flush=True)
            checks.expect(idle is None or idle < 60, f"the server takes {idle} MB before it does anything")
            state = check_views(checks, browser, link, named)
            check_behaviour(checks, browser, server, link, state)
            check_live(checks, browser, server, link, state, own / "live.jsonl")
            check_many(checks, browser, link, state)
            check_late_result(checks, browser, link, state)
            check_kinds(checks, browser, link, state)
            check_outline(checks, browser, link, state)
            check_overview(checks, browser, link, state)
            check_list(checks, browser, link, state)
            check_reader(checks, browser, link, state)
            check_speed(checks, browser, link, state)
            check_cards(checks, browser, link, state)
            check_colours(checks, browser, server, link, state, own)
            print(f"memory of the server after use: {server.memory_mb()} MB", flush=True)
        finally:
            server.stop()
            browser.close()
    return checks.report()


if __name__ == "__main__":
    sys.exit(main())
