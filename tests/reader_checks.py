"""What a reader of the page of `sessions web` does between its views: from the chart to the sessions of a week."""

from browser_checks import settle, wait_until


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
