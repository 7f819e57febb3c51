"""What a reader of the page of `sessions web` does between its views: from the chart to the sessions of a week, from one
session to the next, from an event to the clipboard."""

import re

from browser_checks import settle, wait_until

IN_SIGHT = """(() => {
    const box = document.querySelector('.session-nav ol').getBoundingClientRect();
    const row = document.querySelector('.session-nav [aria-current]').getBoundingClientRect();
    return row.top >= box.top && row.bottom <= box.bottom;
})()"""


def open_context(checks, browser, base, state, width, scheme="light"):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, storage_state=state)
    page = context.new_page()
    checks.watch(page, base)
    return page


def check_overview(checks, browser, link, state):
    """The scale of the chart, its bars as filters, the latest days, and what the time before cost."""
    base = link.split("/#")[0]
    page = open_context(checks, browser, base, state, 1400)
    page.goto(base + "/?by=week&measure=events")
    settle(page)
    values = page.evaluate("[...document.querySelectorAll('.chart .scale span')].map((one) => one.getBoundingClientRect().top)")
    top = page.locator(".chart.bars > svg").bounding_box()["y"]
    checks.expect(len(values) > 1 and values == sorted(values, reverse=True) and abs(values[-1] - top) < 20, f"the values of the chart are at {values}")
    names = page.evaluate("[...document.querySelectorAll('.legend .chip')].map((chip) => chip.textContent)")
    colours = page.evaluate("[...document.querySelectorAll('.legend .dot')].map((dot) => getComputedStyle(dot).backgroundColor)")
    checks.expect(names and len(set(names)) == len(names), f"the legend names {names}")
    checks.expect(len(set(colours)) == len(colours), f"models share a colour: {list(zip(names, colours))}")
    vendors = {"anthropic": "claude", "openai": "gpt", "google": "gemini"}
    hues = {name: re.findall(r"oklch\([\d.]+ [\d.]+ ([\d.]+)", colour)[0] for name, colour in zip(names, colours) if "oklch" in colour}
    spans = {vendor: [float(hue) for name, hue in hues.items() if name.startswith(word)] for vendor, word in vendors.items()}
    spans = sorted((min(found), max(found), vendor) for vendor, found in spans.items() if found)
    checks.expect(len(spans) > 1 and all(a[1] < b[0] for a, b in zip(spans, spans[1:])), f"vendors share hues: {spans}")
    checks.expect(not any(re.search(r"/|-20\d{6}$|-20\d\d-\d\d-\d\d$", name) for name in names), f"the legend has vendors or dates: {names}")
    units = {"k": 1e3, "M": 1e6, "B": 1e9, "": 1}
    largest = page.evaluate("[...document.querySelectorAll('.edits strong')].map((one) => one.textContent)")
    tokens = [float(number) * units[unit] for number, unit in re.findall(r"([\d.]+)([kMB]?) tokens", " ".join(largest))]
    checks.expect(len(tokens) > 1 and tokens == sorted(tokens, reverse=True), f"the largest sessions have {largest}")
    end = page.evaluate("(() => { const box = document.querySelector('.heat .scroll'); return box.scrollWidth - box.clientWidth - box.scrollLeft; })()")
    checks.expect(abs(end) < 2, f"the latest days are {end} pixels out of sight")

    week = page.evaluate("document.querySelectorAll('.chart.bars g').length") - 1
    page.click(f".chart.bars g >> nth={week}")
    wait_until(page, "location.pathname === '/search' && /since=.*until=/.test(location.search)")
    settle(page)
    checks.expect(page.locator(".session-row").count() > 0, "a week with events has no session")
    first, last = [page.input_value(f"input[aria-label='{name} day']") for name in ("First", "Last")]
    days = page.evaluate("([first, last]) => (Date.parse(last) - Date.parse(first)) / 86_400_000 + 1", [first, last])
    checks.expect(days == 7, f"a week is from {first} to {last}")
    page.goto(page.url.replace("/search?", "/?by=week&measure=events&"))
    settle(page)
    checks.expect(page.locator(".chart.bars g").count() == 1, "the filter of a week leaves other weeks")
    wait_until(page, "/ [1-9]/.test(document.querySelector(\"svg[aria-label^='Events by hour']\")?.getAttribute('aria-label'))")
    page.fill("input[aria-label='Last day']", first)
    page.keyboard.press("Tab")
    wait_until(page, f"(Date.parse(new URLSearchParams(location.search).get('until')) - Date.parse('{first}')) === 86_400_000")
    page.select_option("select:has(option[value='365d'])", "365d")
    wait_until(page, "location.search.includes('since=365d') && !location.search.includes('until')")
    settle(page)
    checks.expect("before" in page.inner_text(".totals dd >> nth=0"), "the cost of the year before is not shown")
    page.goto(base + "/session/live")
    page.wait_for_selector("[data-event]")
    settle(page)
    checks.expect("Cost so far" not in page.inner_text(".facts-side"), "a session without a price has a cost")
    page.context.close()


def check_list(checks, browser, link, state):
    """From one session to the next: the list that a session was opened from, by keys and by clicks."""
    base = link.split("/#")[0]
    for width, scheme in [(1400, "light"), (1700, "dark"), (420, "dark")]:
        page = open_context(checks, browser, base, state, width, scheme)
        page.goto(base + "/search?sort=tokens")
        settle(page)
        titles = page.evaluate("[...document.querySelectorAll('.session-row .title')].slice(0, 4).map((one) => one.textContent)")
        page.click(".session-row >> nth=1")
        page.wait_for_selector("[data-event]")
        settle(page)

        def expect_session(at, how):
            wait_until(page, f"document.querySelector('.session-nav .steps')?.textContent.includes('Session {at + 1} of ')")
            page.wait_for_selector("[data-event]")
            settle(page)
            checks.expect(page.inner_text("h1") == titles[at], f"{page.inner_text('h1')} is shown {how} at {width} pixels")

        expect_session(1, "by a click")
        checks.expect(page.is_visible(".session-nav ol") == (width == 1700), f"whether the list is open is wrong at {width} pixels")
        page.keyboard.press("]")
        expect_session(2, "by ]")
        page.keyboard.press("[")
        expect_session(1, "by [")
        if width == 420:
            checks.look(page, "list-420", ".session-nav")
            page.click(".session-nav [rel=next]")
            expect_session(2, "by the arrow")
            page.context.close()
            continue
        page.keyboard.press("l")
        wait_until(page, "document.activeElement.matches('.session-nav [aria-current]')")
        checks.look(page, f"list-{width}", ".session-nav")
        checks.expect(page.evaluate(IN_SIGHT), f"the session is out of sight in the list at {width} pixels")
        checks.expect(page.is_visible(".meter") == (width == 1700), f"whether the facts are shown is wrong at {width} pixels")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        expect_session(3, "by the list")
        checks.expect(page.evaluate("document.activeElement.matches('.session-nav [aria-current]')"), f"the list loses the focus at {width} pixels")
        page.reload()
        page.wait_for_selector("[data-event]")
        settle(page)
        checks.expect(page.is_visible(".session-nav ol"), f"the choice of the list is lost at {width} pixels")
        page.keyboard.press("l")
        page.keyboard.press("l")
        page.wait_for_selector(".session-nav ol", state="detached")
        page.context.close()

    page = open_context(checks, browser, base, state, 1400)
    page.goto(base + "/search?q=error")
    page.wait_for_selector(".match")
    settle(page)
    page.goto(base + "/search?q=tool:Bash+git")
    page.wait_for_selector(".match .snippet code")
    settle(page)
    raw = [text for text in page.locator(".match .snippet code").all_inner_texts() if re.match(r"(command|description): ", text)]
    checks.expect(not raw, f"calls are shown by their arguments: {raw}")
    page.goto(base + "/search?q=error")
    page.wait_for_selector(".match")
    settle(page)
    second = page.get_attribute(".group >> nth=1 >> .match >> nth=0", "href")
    page.click(".group >> nth=0 >> .match >> nth=0")
    page.wait_for_selector(".item.target")
    page.keyboard.press("]")
    wait_until(page, f"location.pathname + location.search === '{second}'")
    page.wait_for_selector(".item.target")
    page.context.close()


def check_reader(checks, browser, link, state):
    """Copies texts, finds in a session, chooses the colours, and unfolds the facts on a phone."""
    base = link.split("/#")[0]
    page = open_context(checks, browser, base, state, 1400)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(base + "/session/late?event=0")
    page.wait_for_selector(".item.target")
    settle(page)
    page.keyboard.press("c")
    wait_until(page, "document.querySelector('.item.target .copy').textContent === 'Copied'")
    copied = page.evaluate("navigator.clipboard.readText()")
    checks.expect(copied == "build all of it", f"{copied!r} was copied instead of the prompt")
    page.goto(base + "/session/late?event=10")
    page.wait_for_selector(".item.tool_call.target .result")
    settle(page)
    page.hover(".result .long")
    page.click(".result .copy")
    page.wait_for_timeout(200)
    copied = page.evaluate("navigator.clipboard.readText()")
    checks.expect(copied == "the build took an hour", f"{copied!r} was copied instead of the output")
    checks.look(page, "copied", ".conversation")
    page.keyboard.press("f")
    checks.expect(page.evaluate("document.activeElement.matches('.find input')"), "f does not lead to the search of the session")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    page.click("dialog button:has-text('dark')")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    checks.look(page, "colours")
    page.click("dialog button:has-text('Close')")
    page.reload()
    page.wait_for_selector("[data-event]")
    checks.expect(page.evaluate("getComputedStyle(document.body).backgroundColor") == dark != "rgb(247, 247, 245)", f"the colours are {dark} after dark was chosen")
    page.context.close()

    page = open_context(checks, browser, base, state, 420)
    page.goto(base + "/session/late")
    page.wait_for_selector("[data-event]")
    settle(page)
    checks.expect(not page.is_visible("text=sessions resume late"), "the facts are above the conversation of a phone")
    page.click(".folded > summary")
    page.wait_for_selector("text=sessions resume late")
    checks.look(page, "facts-420", ".facts-side")
    page.context.close()
