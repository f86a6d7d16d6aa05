"""A client that costs nothing to speak of: one kept connection, bytes in, bytes out."""

import json
import socket
from collections.abc import Callable


class Wire:
    """One connection to a Hub's socket."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(30)
        self._socket.connect(path)

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def call(self, name: str, **arguments: object) -> Callable[[], bytes]:
        """Prepare a call; calling the result makes it and gives the body."""
        body = json.dumps(arguments, ensure_ascii=False).encode()
        request = (
            f"POST /v1/memory/{name} HTTP/1.1\r\nHost: localhost\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode() + body
        return lambda: self._ask(request)

    def _ask(self, request: bytes) -> bytes:
        self._socket.sendall(request)
        received = bytearray()
        while (end := received.find(b"\r\n\r\n")) < 0:
            received += self._socket.recv(65536)
        head = received[:end].decode("latin-1").lower()
        length = int(head.split("content-length:")[1].split("\r\n")[0])
        while len(received) < end + 4 + length:
            received += self._socket.recv(65536)
        if " 200 " not in head.split("\r\n")[0]:
            raise RuntimeError(received[end + 4 :].decode())
        return bytes(received[end + 4 :])
