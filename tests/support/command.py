"""Running a command line in this process, with streams and a terminal of the test's own."""

import io
import json
import os
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType

from amux import app, config
from amux.surface.cli import main

LATE = app.LATE


class Stream(io.BytesIO):
    """A binary stream that may claim to be a terminal."""

    def __init__(self, data: bytes = b"", *, is_terminal: bool = False) -> None:
        super().__init__(data)
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


class Done:
    """What a command left behind."""

    def __init__(self, status: int, out: bytes, err: bytes) -> None:
        self.status = status
        self.out = out
        self.err = err

    @property
    def answer(self) -> dict[str, object]:
        assert self.status == 0, self.err
        assert self.out.endswith(b"\n")
        assert self.out.count(b"\n") == 1
        return json.loads(self.out)

    @property
    def refusal(self) -> dict[str, object]:
        assert self.status != 0
        assert self.out == b""
        found = json.loads(self.err.splitlines()[-1])
        assert self.err.endswith(b"\n")
        return found["error"]

    @property
    def code(self) -> str:
        return str(self.refusal["code"])

    @property
    def details(self) -> dict[str, object]:
        details = self.refusal["details"]
        assert isinstance(details, dict)
        return details


class Command:
    """The command line of one AMUX_HOME; what it may load late can be replaced."""

    def __init__(self, home: Path, **environment: str) -> None:
        environ = {"AMUX_HOME": str(home), "TMPDIR": str(home.parent)} | environment
        self.config = config.load(environ)
        self.clock = time.monotonic
        self.wall = time.time
        self.random_bytes = os.urandom
        self.stdin = self.stdout = self.stderr = Stream()
        self.offline: Callable[[], object] = self._no_offline

    def run(
        self, *words: str, stdin: bytes = b"", is_terminal: bool = False, types: bool = False
    ) -> Done:
        self.stdin = Stream(stdin, is_terminal=types)
        self.stdout = Stream(is_terminal=is_terminal)
        self.stderr = Stream(is_terminal=is_terminal)
        status = main.run(list(words), self)
        return Done(status, self.stdout.getvalue(), self.stderr.getvalue())

    def late(self, name: str) -> ModuleType:
        return import_module(LATE[name])

    place = app.Context.place
    desk = app.Context.desk

    def _no_offline(self) -> object:
        raise AssertionError("nothing works offline here")
