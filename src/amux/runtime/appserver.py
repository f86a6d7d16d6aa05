"""Codex's app-server, spoken to over pipes that somebody else opened (R14, R19).

Rule 1: one JSON object a line, no `jsonrpc` member; whatever else is said ends the conversation.
Rule 2: nothing is started here, and no process is ended: who gave the pipes does both.
Rule 3: nobody sits at a headless turn: what the agent asks a person for is declined.
Rule 4: every answer is waited for so long and no longer; notices come until the process ends.
"""

import json
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping

from amux import __version__

ANSWER_SECONDS = 10.0  # it answers within 0.2 s where nothing is wrong
LINE_MAX_BYTES = 64 * 1024 * 1024  # a resumed thread comes back with its history
CHUNK_BYTES = 64 * 1024
_UNKNOWN = ("unknown variant", "unknown method", "method not found", "experimentalapi", "supported")
_NOT_FOUND = -32601

# What the agent asks a person for, and how it is declined.
_DECLINED: Mapping[str, object] = {
    "item/commandExecution/requestApproval": {"decision": "decline"},
    "item/fileChange/requestApproval": {"decision": "decline"},
    "item/permissions/requestApproval": {"permissions": {}},
    "item/tool/requestUserInput": {"answers": {}},
    "mcpServer/elicitation/request": {"action": "decline", "content": None},
    "applyPatchApproval": {"decision": "denied"},
    "execCommandApproval": {"decision": "denied"},
}


class Gone(Exception):
    """The app-server ended, fell silent, or said what is no message."""


class Refused(Exception):
    """The app-server answered a call with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def is_unknown_call(self) -> bool:
        """Tell whether the call itself is not known, whatever it was about."""
        told = str(self).lower()
        return self.code == _NOT_FOUND or any(words in told for words in _UNKNOWN)


class AppServer:
    """One conversation; `read` gives some bytes or none at the end, as an unbuffered pipe does."""

    def __init__(self, read: Callable[[int], bytes], write: Callable[[bytes], int | None]) -> None:
        self._write = write
        self._said: queue.Queue[dict[str, object] | None] = queue.Queue()
        self._noted: deque[tuple[str, dict[str, object]]] = deque()
        self._calls = 0
        threading.Thread(target=self._listen, args=(read,), daemon=True).start()

    def introduce(self) -> None:
        """Say who is here; everything else follows."""
        about = {"name": "amux", "title": "amux", "version": __version__}
        # Without it `thread/memoryMode/set` is refused.
        self.ask("initialize", {"clientInfo": about, "capabilities": {"experimentalApi": True}})
        self._send({"method": "initialized"})

    def ask(
        self, method: str, params: Mapping[str, object], seconds: float = ANSWER_SECONDS
    ) -> dict[str, object]:
        """Make one call; raises `Refused` with the error that it is answered with."""
        self._calls += 1
        self._send({"id": self._calls, "method": method, "params": params})
        deadline = time.monotonic() + seconds
        while True:
            said = self._next(deadline)
            if said.get("id") != self._calls or "method" in said:
                continue
            error = said.get("error")
            if isinstance(error, dict):
                code = error.get("code")
                raise Refused(code if isinstance(code, int) else 0, str(error.get("message")))
            return table(said.get("result"))

    def notices(self) -> Iterator[tuple[str, dict[str, object]]]:
        """Give what it tells by itself, in order, for as long as it lives."""
        while True:
            while self._noted:
                yield self._noted.popleft()
            self._next(None)

    def _next(self, deadline: float | None) -> dict[str, object]:
        """Give the next message; a notice is kept, a question declined."""
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        try:
            said = self._said.get(timeout=left)
        except queue.Empty:
            raise Gone("it did not answer in time") from None
        if said is None:
            self._said.put(None)  # it stays gone
            raise Gone("it ended, or said what is no message")
        method = said.get("method")
        if isinstance(method, str) and "id" in said:
            self._decline(method, said["id"])
        elif isinstance(method, str):
            self._noted.append((method, table(said.get("params"))))
        return said

    def _decline(self, method: str, number: object) -> None:
        if method in _DECLINED:
            self._send({"id": number, "result": _DECLINED[method]})
        else:
            error = {"code": _NOT_FOUND, "message": "amux does not answer this"}
            self._send({"id": number, "error": error})

    def _send(self, message: Mapping[str, object]) -> None:
        left = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        try:
            while left:
                left = left[self._write(left) or 0 :]
        except (OSError, ValueError) as error:
            raise Gone("it reads no more") from error

    def _listen(self, read: Callable[[int], bytes]) -> None:
        rest = b""
        try:
            while chunk := read(CHUNK_BYTES):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    said = json.loads(line)
                    if not isinstance(said, dict):
                        return
                    self._said.put(said)
                if len(rest) > LINE_MAX_BYTES:
                    return
        except (OSError, ValueError, RecursionError):
            return
        finally:
            self._said.put(None)


def table(value: object) -> dict[str, object]:
    """Give a value that should be a table; an empty one where it is none."""
    return value if isinstance(value, dict) else {}


def tables(value: object) -> list[dict[str, object]]:
    """Give the tables of a value that should be a list of them."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
