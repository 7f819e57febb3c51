"""A log whose text tries to run, load, restyle, disguise or bury something, and what a page of `sessions` has to make of
each kind: text, and nothing else. The checks of the pages share it."""

import json

BIDI = "\u202egnp.exe\u2066"
HOSTILE = {
    "script": "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>",
    "style": "<style>body { display: none }</style><link rel=stylesheet href='//evil.example/x.css'>",
    "frame": "<iframe src='http://evil.example'></iframe><svg onload='window.hacked = 3'></svg>",
    "link": "[http://good.example](http://evil.example/x) [run](javascript:window.hacked=4) [data](data:text/html,x)",
    "image": "![picture](http://evil.example/pixel.png)",
    "bidi": f"the file {BIDI} is safe \u001b]8;;http://evil.example\u0007here\u001b]8;;\u0007",
    "giant": "x" * 300_000,
    "fence": "```\n</code></pre><script>window.hacked = 5</script>\n```\n| a |\n|---|\n| <b onclick=1>c</b> |",
    "attribute": "'><script>window.hacked = 7</script> \" onmouseover=\"window.hacked = 8\" ]]> --> </article></script>",
}

# What each kind must not have done. The expressions are false if all is well.
DONE = {
    "script": "window.hacked !== undefined || ROOT.querySelector('script, img[onerror]')",
    "style": "getComputedStyle(document.body).display === 'none' || ROOT.querySelector('style, link')",
    "frame": "ROOT.querySelector('iframe, svg[onload], object, embed') || frames.length",
    "link": "[...ROOT.querySelectorAll('a[href]')].some((link) => !/^(https?|file):$/.test(link.protocol))",
    "image": "ROOT.querySelector('img')",
    "bidi": "/[\\u202e\\u2066\\u001b]/.test(ROOT.textContent)",
    "giant": "document.documentElement.scrollWidth > innerWidth",
    "fence": "ROOT.querySelector('b[onclick]')",
    "attribute": "ROOT.querySelector('[onmouseover]')",
}
# The text of each kind that a reader has to see. A giant line is there in part.
SEEN = {
    "script": "<script>window.hacked = 1</script>",
    "style": "<style>body",
    "frame": "<iframe src=",
    "link": "http://good.example",
    "image": "picture",
    "bidi": "is safe",
    "giant": "x" * 1000,
    "fence": "</code></pre><script>",
    "attribute": "</article></script>",
}


def write_log(path, name, events):
    head = {"format": "sessions", "version": 1, "session_id": name, "cwd": "/home/mira/code/<b>bold</b>",
            "title": f"Title of {name} <script>window.hacked = 6</script>"}
    path.write_text("".join(json.dumps(line) + "\n" for line in [head, *events]))


def hostile_events():
    events = [{"type": "user", "timestamp": "2026-10-29T06:00:00Z", "text": "start"}]
    for at, (kind, text) in enumerate(HOSTILE.items()):
        stamp = f"2026-10-29T06:{at:02}:00Z"
        events.append({"type": "message", "timestamp": stamp, "text": f"hostile {kind}\n\n{text}"})
        events.append({"type": "user", "timestamp": stamp, "text": text[:5000]})
        events.append({"type": "tool_call", "timestamp": stamp, "tool_name": "Bash", "tool_call_id": kind, "input": {"command": f"echo {text[:200]}"}})
        events.append({"type": "tool_result", "timestamp": stamp, "tool_call_id": kind, "text": text, "exit_code": 1, "is_error": True})
        events.append({"type": "notification", "timestamp": stamp, "subtype": f"<b>{kind}</b>", "text": text[:5000]})
    return events


def check_hostile(checks, frame, where, root="main"):
    """Reports every kind of hostile text that did something in a page or a frame, or that a reader cannot see. The events
    are shown and the calls are open."""
    text = frame.evaluate(f"document.querySelector('{root}').textContent")
    for kind, done in DONE.items():
        expression = done.replace("ROOT", f"document.querySelector('{root}')")
        checks.expect(not frame.evaluate(f"Boolean({expression})"), f"{where}: hostile text of the kind '{kind}' did something")
        checks.expect(SEEN[kind] in text, f"{where}: hostile text of the kind '{kind}' is hidden")
