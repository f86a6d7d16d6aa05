"""What tests of launches share: a Hub, a fake agent on a PATH, somebody who starts it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import fake_agent
from tests.support.hub import RunningHub, running_hub

RUN_SECONDS = 60.0


class Person:
    """Somebody who starts the fake agent, with a home and a directory of their own."""

    def __init__(self, folder: Path, hub: RunningHub) -> None:
        self.hub = hub
        self.home = folder / "home"
        self.work = folder / "work"
        self.bin = folder / "bin"
        self.seen_file = folder / "seen"
        for one in (self.home, self.work, self.bin):
            one.mkdir(parents=True)
        fake_agent.install(self.bin)

    def environment(self, **more: str) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
        return (
            kept
            | {
                "PATH": f"{self.bin}:/usr/bin:/bin",
                "HOME": str(self.home),
                "AMUX_HOME": str(self.hub.home),
                "AMUX_NO_AUTOSTART": "1",
                "FAKE_SEEN": str(self.seen_file),
                "TERM": "dumb",
            }
            | more
        )

    def argv(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "amux", *words]

    def amux(self, *words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            self.argv(*words),
            env=self.environment(**environment),
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=RUN_SECONDS,
            check=False,
        )

    def ask(self, *words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
        """Take one headless turn of the fake agent."""
        return self.amux("run", "claude", "--prompt", "hello", *words, **environment)

    @property
    def seen(self) -> list[dict[str, Any]]:
        return fake_agent.seen(self.seen_file)

    def sessions(self) -> list[dict[str, Any]]:
        """List what was started here, the newest first; others share the Hub."""
        listed = json.loads(self.amux("session", "list").stdout)["sessions"]
        return [one for one in listed if one.get("cwd") in (str(self.work), None)]

    def show(self, session: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.amux("session", "show", session).stdout)
        return found

    def live_credentials(self) -> list[str]:
        """Name the sessions whose credential the Hub would still take."""
        listed = self.hub.ask("token_list")["tokens"]
        assert isinstance(listed, list)
        return [one["session"] for one in listed if one["kind"] == "agent" and not one["revoked"]]

    def left_over(self) -> list[str]:
        """Name what only a live run may have beside its record."""
        names = {"session.json", "timeline.jsonl"}
        found = (self.hub.home / "sessions").glob("*/*")
        return [str(path) for path in found if path.name not in names]


def refusal(done: subprocess.CompletedProcess[bytes]) -> dict[str, Any]:
    """Read the refusal that a command ended with."""
    assert done.stdout == b""
    found: dict[str, Any] = json.loads(done.stderr.splitlines()[-1])["error"]
    return found


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHub]:
    with running_hub(tmp_path_factory.mktemp("hub") / "root") as started:
        yield started


@pytest.fixture
def person(tmp_path: Path, hub: RunningHub) -> Person:
    return Person(tmp_path, hub)
