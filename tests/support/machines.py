"""Machines in network namespaces: a Hub's, and two of clients."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.hub import RunningHub

PORT = 8484
AMUX = [sys.executable, "-m", "amux"]


class Machines:
    """A Hub at 10.209.0.1 and two clients, each in a namespace of its own; the links end there."""

    def __init__(self) -> None:
        tag = f"amux{os.getpid()}"
        self.hub, self.clients = f"{tag}h", (f"{tag}a", f"{tag}b")
        self._links = f"v{os.getpid()}"

    def __enter__(self) -> "Machines":
        for name in (self.hub, *self.clients):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        for number, name in enumerate(self.clients):
            # Each link is made inside the namespaces: this machine itself gets no address.
            one, other = f"{self._links}{number}", f"{self._links}{number}p"
            ip("-n", self.hub, "link", "add", one, "type", "veth", "peer", other, "netns", name)
            for side, link, host in ((self.hub, one, 1), (name, other, 2)):
                ip("-n", side, "address", "add", f"10.209.{number}.{host}/24", "dev", link)
                ip("-n", side, "link", "set", link, "up")
        return self

    def __exit__(self, *_: object) -> None:
        for name in (self.hub, *self.clients):
            with contextlib.suppress(subprocess.CalledProcessError):
                ip("netns", "delete", name)


class Client:
    """The command line of one machine."""

    def __init__(self, namespace: str, home: Path) -> None:
        self.namespace = namespace
        self.here = RunningHub(home)
        del self.here.environment["AMUX_NO_AUTOSTART"]

    def run(self, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            ["ip", "netns", "exec", self.namespace, *AMUX, *words],
            input=stdin,
            capture_output=True,
            env=self.here.environment,
            timeout=60,
            check=False,
        )

    def answer(self, *words: str, stdin: bytes = b"") -> dict[str, object]:
        done = self.run(*words, stdin=stdin)
        assert done.returncode == 0, done.stderr
        found: dict[str, object] = json.loads(done.stdout)
        return found

    def code(self, *words: str, stdin: bytes = b"") -> str:
        done = self.run(*words, stdin=stdin)
        assert done.returncode != 0, done.stdout
        return str(json.loads(done.stderr.splitlines()[-1])["error"]["code"])


class Far:
    """The Hub and its two clients."""

    def __init__(self, hub: RunningHub, clients: tuple[Client, Client]) -> None:
        self.hub = hub
        self.clients = clients


def ip(*words: str) -> None:
    """Run `ip`."""
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=30)
