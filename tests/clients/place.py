"""A place for the checks of this folder: a store of the sample sessions, and servers on it."""

import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SAMPLES = HERE.parent.parent / "sample-sessions"


class Place:
    """What a server is started with: its command, its folder and its whole environment."""

    def __init__(self, binary, folder):
        self.binary = str(pathlib.Path(binary).resolve())
        self.folder = folder
        self.store = folder / "store"
        # Nothing of the person who runs this: neither their logs nor their store.
        kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
        xdg = {f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("DATA", "CONFIG", "CACHE", "STATE")}
        self.environment = {**kept, **xdg, "HOME": str(folder), "SESSIONS_STORE": str(self.store)}
        self.environment |= {"SESSIONS_MACHINE": "pier", "SESSIONS_USER": "mira"}

    def run(self, *arguments):
        subprocess.run([self.binary, *arguments], env=self.environment, cwd=self.folder, check=True)

    @contextlib.contextmanager
    def http(self, *flags):
        """A server over HTTP, as its address."""
        command = [self.binary, "mcp", "--http", "127.0.0.1:0", *flags]
        server = subprocess.Popen(command, env=self.environment, cwd=self.folder, stderr=subprocess.PIPE, text=True)
        try:
            # It says where it listens once it does.
            said = server.stderr.readline()
            address = re.search(r"http://[\w.:/]+", said)
            if address is None:
                raise RuntimeError(f"the server did not start: {said}{server.stderr.read()}")
            yield address[0]
        finally:
            server.terminate()
            server.wait()

    def token(self):
        """The bearer token that the server made."""
        return (self.store / "http-token").read_text().strip()


@contextlib.contextmanager
def samples(binary):
    """A place whose store holds the sample sessions; gone at the end."""
    with tempfile.TemporaryDirectory() as folder:
        place = Place(binary, pathlib.Path(folder))
        place.run("ingest", "--quiet", str(SAMPLES))
        yield place


def main(usage, clients, check, name_of):
    """Checks all clients, or those that the command line names. Prints what is wrong, and returns the exit code."""
    if len(sys.argv) < 3:
        print(usage)
        return 2
    programs = pathlib.Path(sys.argv[2]).resolve()
    wanted = sys.argv[3:]
    failures = []
    with samples(sys.argv[1]) as site:
        for client in clients:
            if not wanted or client.name in wanted:
                failures += [f"{name_of(client)}: {what}" for what in check(client, site, programs)]
    for failure in failures:
        print(failure)
    return 1 if failures else 0
