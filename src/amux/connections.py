"""Connections to a Hub: who is at the other end, how many there are, how long a request may take.

Rule 1: the uid of a peer on a Unix socket is the kernel's word, as of its `connect()` (M63).
Rule 2: a request that has not arrived whole in time ends its connection, whatever it is (M76):
        nobody holds a place by being slow.
Rule 3: a door has so many places and a peer so many of them, so that strangers at one door
        never shut another, and one stranger does not shut out the rest.
"""

import asyncio
import socket
import struct
from collections import Counter
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from amux.core.text import to_json
from amux.errors import Busy

REQUEST_SECONDS = 15.0  # for head and body; the RPC refuses a slow body before, with words
HEAD_MAX_BYTES = 32 * 1024  # ours have a few hundred; a browser's cookies are not for us
HANDSHAKE_SECONDS = 5.0  # of TLS
DOOR_PLACES = 256  # connections at one listener
PEER_PLACES = 64  # of these for one address or uid; eight agents with eight calls each


class Door:
    """The connections of one listener."""

    def __init__(self, *, is_owners: bool) -> None:
        self._peer_places = DOOR_PLACES if is_owners else PEER_PLACES
        self._peers: Counter[object] = Counter()

    def enter(self, peer: object) -> bool:
        """Take a place for a peer; False where there is none."""
        if self._peers.total() >= DOOR_PLACES or self._peers[peer] >= self._peer_places:
            return False
        self._peers[peer] += 1
        return True

    def leave(self, peer: object) -> None:
        """Give a place back."""
        self._peers[peer] -= 1
        if not self._peers[peer]:
            del self._peers[peer]


class Connection(HttpToolsProtocol):
    """uvicorn's HTTP protocol, with the peer's uid, a place at a door and an end to waiting."""

    def __init__(self, *, door: Door, **given: Any) -> None:
        super().__init__(**given)
        self._door = door
        self._peer: int | str = ""
        self._has_place = False
        self._head_bytes = 0
        self._is_in_head = True
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Find out who connected, and give it a place or send it away."""
        super().connection_made(transport)
        peer: socket.socket = transport.get_extra_info("socket")
        if peer.family == socket.AF_UNIX:
            self._peer = _uid_of(peer)
            self.client = ("unix", self._peer)
        elif self.client is not None:
            self._peer = self.client[0]
        self._has_place = self._door.enter(self._peer)
        if self._has_place:
            self._expect()
            return
        body = to_json(Busy("the Hub has no place for more connections", hint="ask later").body())
        head = b"HTTP/1.1 503 -\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
        length = b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
        transport.write(head + length + body)
        transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back."""
        self._arrived()
        if self._has_place:
            self._has_place = False
            self._door.leave(self._peer)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes, unless they are too many for a head."""
        if not self._has_place:
            return
        super().data_received(data)
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_MAX_BYTES:
                self.transport.abort()

    def on_message_begin(self) -> None:
        """Begin to wait for a request; a second one of a connection has its own time."""
        super().on_message_begin()
        self._is_in_head, self._head_bytes = True, 0
        if self._deadline is None:
            self._expect()

    def on_headers_complete(self) -> None:
        """Note that what follows is a body, which its reader measures."""
        self._is_in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Stop waiting: the request is here."""
        self._arrived()
        super().on_message_complete()

    def _expect(self) -> None:
        self._deadline = self.loop.call_later(REQUEST_SECONDS, self.transport.abort)

    def _arrived(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def protocol_of(door: Door) -> Callable[..., Connection]:
    """Make the connections of one door."""

    def made(**given: Any) -> Connection:
        return Connection(door=door, **given)

    return made


def _uid_of(peer: socket.socket) -> int:
    packed = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    uid: int = struct.unpack("3i", packed)[1]
    return uid
