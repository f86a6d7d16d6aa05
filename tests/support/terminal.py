"""A terminal of a test's own: a pty whose other end types, answers and remembers what was shown."""

import contextlib
import fcntl
import os
import re
import select
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

WAIT_SECONDS = 30.0
QUIET_SECONDS = 0.6  # an interface at work moves something several times a second
_ROWS, _COLUMNS = 45, 150
# What programs ask a terminal: where the cursor is, what it is, which colours it has.
_QUESTIONS = (
    (re.compile(rb"\x1b\[6n"), b"\x1b[1;1R"),
    (re.compile(rb"\x1b\[c"), b"\x1b[?62;c"),
    (re.compile(rb"\x1b\[\?u"), b"\x1b[?0u"),
    (re.compile(rb"\x1b\]1([01]);\?(?:\x1b\\|\x07)"), b"\x1b]1\\1;rgb:0000/0000/0000\x1b\\\\"),
)
_CONTROL = re.compile(rb"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[\[(][0-9;?<>=!]*[A-Za-z]|\x1b.")


class Terminal:
    """One program on a terminal; ends with the block."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], cwd: Path) -> None:
        self._own, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
        self.name = os.ttyname(theirs)
        self._shown = b""
        self._last = time.monotonic()
        self.process = subprocess.Popen(
            argv,
            env=dict(environment),
            cwd=cwd,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
            self.process.kill()
        self.process.wait()
        self._reader.join(5)
        os.close(self._own)

    @property
    def text(self) -> str:
        """Give all that was ever shown, without what moved and coloured it."""
        return _CONTROL.sub(b" ", self._shown).decode("utf-8", "replace")

    def type(self, keys: str) -> None:
        """Press keys."""
        self._last = time.monotonic()
        os.write(self._own, keys.encode())

    def resize(self, rows: int, columns: int) -> None:
        """Have another size."""
        fcntl.ioctl(self._own, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def wait(self, happened: Callable[[], bool], seconds: float = WAIT_SECONDS) -> None:
        """Wait until something is so; shows what stands on the terminal where it never is."""
        deadline = time.monotonic() + seconds
        while not happened():
            assert time.monotonic() < deadline, self.text[-3000:]
            time.sleep(0.02)

    def wait_for(self, text: str, seconds: float = WAIT_SECONDS) -> None:
        """Wait until a text was shown."""
        self.wait(lambda: text in self.text, seconds)

    def settle(self, seconds: float = WAIT_SECONDS) -> None:
        """Wait until nothing more is shown: only then does an interface take the next command."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < self._last + QUIET_SECONDS:
            assert time.monotonic() < deadline, self.text[-3000:]
            time.sleep(0.02)

    def say(self, text: str) -> None:
        """Type a line when the program is ready for it.

        Keys that come all at once are taken for a paste, and an Enter with them for a line end.
        """
        self.settle()
        self.type(text)
        self.settle()
        self.type("\r")

    def end(self, seconds: float = WAIT_SECONDS) -> int:
        """Wait for the program's end, and give its status."""
        self.wait(lambda: self.process.poll() is not None, seconds)
        return int(self.process.returncode)

    def _read(self) -> None:
        unanswered = b""
        while True:
            # A program that has gone leaves no end to read, but an error.
            if not select.select([self._own], [], [], 0.1)[0]:
                if self.process.poll() is not None:
                    return
                continue
            try:
                chunk = os.read(self._own, 65536)
            except OSError:
                return
            self._shown += chunk
            self._last = time.monotonic()
            unanswered += chunk
            for question, answer in _QUESTIONS:
                for found in question.finditer(unanswered):
                    os.write(self._own, found.expand(answer))
                unanswered = question.sub(b"", unanswered)
            unanswered = unanswered[-32:]
