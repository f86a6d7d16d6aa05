"""A fake Hub: the client's end of the wire with a dictionary behind it, and hooks for races.

It answers the calls of the table well enough for faces to be driven to every answer and refusal;
what a real Hub does is proved with `tests.support.hub`.
"""

import contextlib
import hashlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from amux import __version__
from amux.errors import AmuxError, InvalidArgument, RevisionConflict

Plain = dict[str, object]
ABSENT = "absent"


def revision(data: bytes | None) -> str:
    return ABSENT if data is None else hashlib.sha256(data).hexdigest()


class FakeHub:
    """Documents in a dictionary; `before` is called with each call, and may change them."""

    def __init__(self, socket_path: str, *, page_bytes: int = 16) -> None:
        self.documents: dict[str, bytes] = {}
        self.calls: list[tuple[str, Plain]] = []
        self.before: Callable[[str, Plain], None] = lambda _name, _given: None
        self.answers: dict[str, Plain | AmuxError | str] = {}
        self.version = __version__
        self.page_bytes = page_bytes
        self.silent: set[str] = set()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(socket_path)
        self._listener.listen(16)
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def names(self) -> list[str]:
        return [name for name, _ in self.calls]

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        received = b""
        while b"\r\n\r\n" not in received:
            received += connection.recv(65536)
        head, _, body = received.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        while len(body) < length:
            body += connection.recv(65536)
        name = head.split(b" ")[1].decode().rpartition("/")[2]
        given: Plain = json.loads(body)
        self.calls.append((name, given))
        try:
            self.before(name, given)
            status, text = 200, self._reply(name, given)
        except AmuxError as refusal:
            status, text = refusal.http_status, json.dumps(refusal.body(), ensure_ascii=False)
        if name in self.silent:
            return
        answer = text.encode("utf-8")
        connection.sendall(
            f"HTTP/1.1 {status} -\r\nContent-Length: {len(answer)}\r\n"
            f"amux-version: {self.version}\r\n\r\n".encode()
            + answer
        )

    def _reply(self, name: str, given: Plain) -> str:
        answer = self.answers.get(name)
        if isinstance(answer, AmuxError):
            raise answer
        if isinstance(answer, str):
            return answer
        if answer is None:
            answer = getattr(self, f"_{name}")(**given)
        return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))

    def _get(self, path: str, offset: int = 0, start_line: int = 0, end_line: int = 0) -> Plain:
        data = self.documents.get(path)
        whole = data or b""
        if offset > len(whole):
            raise InvalidArgument("offset lies beyond the end", argument="offset")
        stop = min(len(whole), offset + self.page_bytes)
        while stop < len(whole) and whole[stop] & 0xC0 == 0x80:
            stop -= 1
        return {
            "path": path,
            "exists": data is not None,
            "revision": revision(data),
            "content": whole[offset:stop].decode("utf-8"),
            "start_line": start_line or 1,
            "end_line": end_line or 1,
            "total_lines": whole.count(b"\n"),
            "total_bytes": len(whole),
            "truncated": stop < len(whole),
            "next_offset": stop if stop < len(whole) else None,
        }

    def _upsert(self, path: str, content: str, expected_revision: str) -> Plain:
        before = self.documents.get(path)
        _require(before, expected_revision)
        self.documents[path] = content.encode("utf-8")
        return {
            "path": path,
            "revision": revision(self.documents[path]),
            "changed": before != self.documents[path],
        }

    def _forget(self, path: str, expected_revision: str) -> Plain:
        before = self.documents.get(path)
        if before is not None:
            _require(before, expected_revision)
            del self.documents[path]
        return {
            "path": path,
            "already_absent": before is None,
            "revision": ABSENT,
            "kept": "nothing",
        }

    def _list(self, path_prefix: str = "", cursor: str = "") -> Plain:
        rows = [
            {"path": path, "bytes": len(data), "revision": revision(data), "modified": "2026"}
            for path, data in sorted(self.documents.items())
            if path.startswith(path_prefix) and path > cursor
        ]
        return {"documents": rows, "next_cursor": None}

    def _check(self) -> Plain:
        return {"broken": [], "truncated": False}

    def _discard(self, path: str) -> Plain:
        return {"path": path, "removed": True}

    def _status(self) -> Plain:
        return {
            "version": self.version,
            "pid": 1,
            "root": "/root",
            "socket": "/socket",
            "settings": {
                "memory.enabled": {"saved": True, "effective": False},
                "isolation.policy": {"saved": "shared", "effective": "shared"},
            },
            "restart_due": True,
            "platform": {"notifications": True},
        }

    def _settings(self, name: str, value: str) -> Plain:
        return {"name": name, "saved": value, "effective": None, "restart_due": True}


def _require(data: bytes | None, expected: str) -> None:
    if revision(data) != expected:
        raise RevisionConflict("the document changed", observed=revision(data))


@contextlib.contextmanager
def fake_hub(home: Path, *, page_bytes: int = 16) -> Iterator[FakeHub]:
    """Serve a fake Hub at the usual place of a root."""
    (home / "run").mkdir(parents=True)
    hub = FakeHub(str(home / "run" / "hub.sock"), page_bytes=page_bytes)
    try:
        yield hub
    finally:
        hub.close()
