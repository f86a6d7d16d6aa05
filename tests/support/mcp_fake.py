"""A fake Hub for the MCP face: it listens on the real socket path and answers as it is told.

A fake on purpose: a real Hub cannot be made to hang, to be slow, or to answer 40 KiB.
"""

import contextlib
import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path

Reply = Callable[[dict[str, object]], tuple[int, str]]


def status(*, effective: bool) -> Reply:
    text = json.dumps({"settings": {"memory.enabled": {"saved": True, "effective": effective}}})
    return lambda _: (200, text)


def says(text: str) -> Reply:
    return lambda _: (200, text)


def refuses(http: int, code: str, **details: object) -> Reply:
    body = {"error": {"code": code, "message": "no", "details": details}}
    return lambda _: (http, json.dumps(body))


def hangs(until: threading.Event) -> Reply:
    def reply(_: dict[str, object]) -> tuple[int, str]:
        until.wait(30)
        return 200, "{}"

    return reply


class FakeHub:
    """Serves `replies` by the last word of the path; counts what it was asked."""

    def __init__(self, home: Path, version: str | None = None, **replies: Reply) -> None:
        run = home / "run"
        run.mkdir(parents=True, exist_ok=True)
        self.path = run / "hub.sock"
        self.replies = replies
        self.version = version
        self.asked: list[tuple[str, dict[str, object]]] = []
        self.answered: list[str] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def count(self, name: str) -> int:
        return sum(asked == name for asked, _ in self.asked)

    def close(self) -> None:
        # Closing alone would leave the accepting thread, and so the socket, alive.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.path.unlink()

    def __enter__(self) -> "FakeHub":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        # A client that has waited long enough hangs up, at any moment.
        with connection, contextlib.suppress(OSError):
            name, data = self._answer(connection)
            connection.sendall(data)
            self.answered.append(name)

    def _answer(self, connection: socket.socket) -> tuple[str, bytes]:
        with connection.makefile("rb") as stream:
            target = stream.readline().decode()
            length = 0
            while (line := stream.readline().strip()) != b"":
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            if not target:
                return "", b""  # somebody only looked whether anybody listens
            arguments = json.loads(stream.read(length))
        name = target.split(" ")[1].rpartition("/")[2]
        self.asked.append((name, arguments))
        http, text = self.replies[name](arguments)
        body = text.encode()
        version = f"Amux-Version: {self.version}\r\n" if self.version else ""
        head = f"HTTP/1.1 {http} x\r\nContent-Length: {len(body)}\r\n{version}\r\n"
        return name, head.encode() + body
