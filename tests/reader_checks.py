"""What a reader of the page of `sessions web` does between its views."""

from browser_checks import settle


def open_context(checks, browser, base, state, width, scheme="light"):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, storage_state=state)
    page = context.new_page()
    checks.watch(page, base)
    return page


def check_overview(checks, browser, link, state):
    """The scale of the chart, the latest days, and a session without a price."""
    base = link.split("/#")[0]
    page = open_context(checks, browser, base, state, 1400)
    page.goto(base + "/?by=week&measure=events")
    settle(page)
    values = page.evaluate("[...document.querySelectorAll('.chart .scale span')].map((one) => one.getBoundingClientRect().top)")
    top = page.locator(".chart.bars > svg").bounding_box()["y"]
    checks.expect(len(values) > 1 and values == sorted(values, reverse=True) and abs(values[-1] - top) < 20, f"the values of the chart are at {values}")
    end = page.evaluate("(() => { const box = document.querySelector('.heat .scroll'); return box.scrollWidth - box.clientWidth - box.scrollLeft; })()")
    checks.expect(abs(end) < 2, f"the latest days are {end} pixels out of sight")

    page.goto(base + "/session/live")
    page.wait_for_selector("[data-event]")
    settle(page)
    checks.expect("Cost so far" not in page.inner_text(".facts-side"), "a session without a price has a cost")
    page.context.close()
