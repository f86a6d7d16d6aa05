"""A TCP port that leads to a Unix socket, for programs that speak HTTP over TCP only."""

import contextlib
import selectors
import socket
import threading
from collections.abc import Iterator


class Relay:
    """A loopback port whose number is known before anything is behind it."""

    def __init__(self, listener: socket.socket) -> None:
        self.port: int = listener.getsockname()[1]
        self._listener = listener
        self._threads: list[threading.Thread] = []

    def lead(self, path: str) -> None:
        """Lead every connection to the socket at `path`, byte for byte."""
        self._begin(self._accept, path)

    def end(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)

    def _begin(self, work: object, *given: object) -> None:
        assert callable(work)
        self._threads.append(threading.Thread(target=work, args=given))
        self._threads[-1].start()

    def _accept(self, path: str) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._begin(_lead, self._listener.accept()[0], path)


def _lead(outer: socket.socket, path: str) -> None:
    with (
        outer,
        socket.socket(socket.AF_UNIX) as inner,
        selectors.DefaultSelector() as ready,
        contextlib.suppress(OSError),
    ):
        inner.connect(path)
        ready.register(outer, selectors.EVENT_READ, inner)
        ready.register(inner, selectors.EVENT_READ, outer)
        while True:
            for key, _ in ready.select():
                data = key.fileobj.recv(65536)  # type: ignore[union-attr]
                if not data:
                    return
                key.data.sendall(data)


@contextlib.contextmanager
def relay() -> Iterator[Relay]:
    """Take a port; give it back at the end, when whatever was behind it has gone."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        made = Relay(listener)
        try:
            yield made
        finally:
            made.end()
