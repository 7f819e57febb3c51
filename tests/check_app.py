#!/usr/bin/env python3
"""Shows the MCP Apps of the server in Chromium, with the reference host of the extension: the overview and a session,
narrow and wide, light and dark, with the theme of the client. An app makes no request, says nothing on the console,
has no finding of axe-core, asks for its height, goes to a session and back, and hostile logs do nothing in it.

    pip install playwright;  apt-get install chromium
    npm install --prefix DIR axe-core esbuild @modelcontextprotocol/ext-apps @modelcontextprotocol/client
    python3 tests/check_app.py SESSIONS LOGS --modules DIR/node_modules [--shots DIR]

SESSIONS  the binary of this project (give it LD_LIBRARY_PATH if it needs that for libduckdb)
LOGS      a folder of logs

Exit code 1 when something is wrong.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from browser_checks import Checks, Server, wait_until
from hostile_logs import check_hostile
from playwright.sync_api import sync_playwright

HOST = pathlib.Path(__file__).resolve().parent / "clients/app_host.js"
EXTENSION = {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}
DARK = {"--color-background-primary": "#101820", "--color-text-primary": "#f2f2f2", "--font-sans": "monospace"}


class Client:
    """A client over stdio."""

    def __init__(self, server, extensions):
        self.process = subprocess.Popen(
            [server.program, "mcp"], env=server.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.last_id = 0
        info = {"name": "host", "version": "1"}
        self.request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {"extensions": extensions}, "clientInfo": info})
        self.send({"method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def request(self, method, params):
        self.last_id += 1
        self.send({"id": self.last_id, "method": method, "params": params})
        while True:
            answer = json.loads(self.process.stdout.readline())
            if answer.get("id") == self.last_id:
                return answer["result"]

    def call(self, name, arguments):
        return self.request("tools/call", {"name": name, "arguments": arguments})

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)


def check_lists(checks, server):
    """Apps are named to clients that show them, and to no others."""
    for extensions, wanted in [(EXTENSION, 2), ({}, 0)]:
        client = Client(server, extensions)
        tools = client.request("tools/list", {})["tools"]
        named = [tool["_meta"]["ui"]["resourceUri"] for tool in tools if "ui" in tool["_meta"]]
        listed = [row["uri"] for row in client.request("resources/list", {})["resources"]]
        apps = [uri for uri in listed if uri.startswith("ui://")]
        checks.expect(len(named) == wanted and sorted(named) == sorted(apps), f"{extensions}: tools {named}, resources {apps}")
        client.close()


def show(page, client, tool, arguments, context):
    """Shows the app of a tool with a call of it. Returns the frame."""
    tools = client.request("tools/list", {})["tools"]
    uri = next(one for one in tools if one["name"] == tool)["_meta"]["ui"]["resourceUri"]
    contents = client.request("resources/read", {"uri": uri})["contents"][0]
    result = client.call(tool, arguments)
    page.evaluate("(shown) => window.showApp(shown)", {"html": contents["text"], "args": arguments, "result": result, "context": context})
    frame = page.frames[-1]
    frame.wait_for_selector("main *")
    wait_until(frame, "!document.querySelector('[aria-busy=true], .loading')")
    return frame


def check_view(checks, page, frame, name):
    if checks.shots:
        checks.shots.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=checks.shots / f"app-{name}.png")
    width = frame.evaluate("document.documentElement.scrollWidth - innerWidth")
    checks.expect(width <= 0, f"{name} is {width} pixels too wide")
    height = page.evaluate("document.querySelector('iframe').offsetHeight")
    checks.expect(height == 640, f"{name} is {height} pixels high")
    checks.find_barriers(frame, name)


def check_apps(checks, browser, client, base, session):
    for width, theme in [(720, "light"), (720, "dark"), (380, "light"), (380, "dark")]:
        page = open_host(checks, browser, client, base, width)
        context = {"theme": theme, "styles": {"variables": DARK if theme == "dark" else {}}}
        frame = show(page, client, "session_stats", {"group_by": ["day"]}, context)
        check_view(checks, page, frame, f"overview-{width}-{theme}")
        colour = frame.evaluate("getComputedStyle(document.body).backgroundColor")
        checks.expect(colour == ("rgb(16, 24, 32)" if theme == "dark" else "rgb(247, 247, 245)"), f"the background in {theme} is {colour}")
        frame = show(page, client, "get_session_details", {"session_id": session}, context)
        frame.wait_for_selector("[data-event]")
        check_view(checks, page, frame, f"session-{width}-{theme}")
        page.close()


def open_host(checks, browser, client, base, width):
    page = browser.new_page(viewport={"width": width, "height": 700})
    # The transport of the host logs every message for debugging.
    page.on("console", lambda message: checks.expect(message.type not in ("error", "warning"), f"console: {message.text}"))
    page.on("pageerror", lambda error: checks.expect(False, f"error: {error}"))
    page.on("request", lambda request: checks.expect(request.url.startswith((base, base.replace(".html", ".js"), "about:")), f"request to {request.url[:200]}"))
    page.expose_function("callServer", client.call)
    page.goto(base)
    return page


def check_ways(checks, browser, client, base):
    """Filters of the call, a link to a session and back, the theme that changes, hostile text."""
    page = open_host(checks, browser, client, base, 720)
    frame = show(page, client, "session_stats", {"group_by": ["model"], "since": "2020-01-01"}, {"theme": "light"})
    checks.expect(frame.is_disabled("[aria-label=Back]"), "there is a way back from the first view")
    checks.expect(frame.input_value("input[aria-label='First day']") == "2020-01-01", "the span of the call is not a filter of the view")
    frame.click(".overview a[href^='/session/']:visible >> nth=0")
    frame.wait_for_selector("[data-event]")
    frame.click("[aria-label=Back]")
    frame.wait_for_selector(".overview")
    page.evaluate("window.bridge.setHostContext({ theme: 'dark' })")
    wait_until(frame, "getComputedStyle(document.body).backgroundColor === 'rgb(18, 21, 24)'")

    frame = show(page, client, "get_session_details", {"session_id": "hostile"}, {"theme": "light"})
    frame.wait_for_selector("[data-event]")
    wait_until(frame, "document.body.innerText.includes('hostile script')")
    check_hostile(checks, frame, "app")
    checks.expect(page.evaluate("window.hacked") is None, "text of a log ran in the host")
    frame.click("a[href='http://good.example/'], a[href^='http'] >> nth=0")
    page.wait_for_timeout(300)
    checks.expect(len(page.evaluate("window.openedLinks")) == 1, "a link is not opened by the client")
    page.close()


def bundle_host(modules, folder):
    """Bundles the host into a page."""
    work = modules.parent
    source = work / HOST.name
    shutil.copy(HOST, source)
    script = folder / "host.js"
    subprocess.run([modules / ".bin/esbuild", source, "--bundle", "--format=iife", f"--outfile={script}", "--log-level=error"], cwd=work, check=True)
    page = folder / "host.html"
    page.write_text("<!doctype html><html lang=en><title>host</title><body style='margin: 0'><script src=host.js></script>")
    return page.as_uri()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sessions", type=pathlib.Path)
    parser.add_argument("logs", type=pathlib.Path)
    parser.add_argument("--modules", type=pathlib.Path, required=True)
    parser.add_argument("--shots", type=pathlib.Path)
    args = parser.parse_args()
    modules = args.modules.resolve()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    checks = Checks(args.shots, (modules / "axe-core/axe.min.js").read_text())
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        folder = pathlib.Path(folder)
        server = Server(args.sessions.resolve(), folder)
        largest = server.ingest(args.logs)[0]
        check_lists(checks, server)
        base = bundle_host(modules, folder)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        client = Client(server, EXTENSION)
        check_apps(checks, browser, client, base, largest)
        check_ways(checks, browser, client, base)
        client.close()
        browser.close()
    return checks.report()


if __name__ == "__main__":
    sys.exit(main())
