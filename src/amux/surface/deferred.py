"""A face that is loaded when it is first asked for.

Rule 1: its libraries are imported in a thread, after the Hub listens; the loop serves on.
Rule 2: requests that come meanwhile wait for it, with an end; a load that failed is tried anew.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from amux.core.identity import Actor
from amux.errors import Unavailable

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Face: TypeAlias = Callable[[Actor, Message, Receive, Send], Awaitable[None]]

LOAD_SECONDS = 20.0  # an SDK takes one; on a busy machine, with its modules compiled anew, several


class Deferred:
    """One face behind its load; every request goes through."""

    def __init__(self, load: Callable[[], Face]) -> None:
        self._load = load
        self._loading: asyncio.Future[Face] | None = None

    async def __call__(
        self, actor: Actor, asgi_scope: Message, receive: Receive, send: Send
    ) -> None:
        """Have the face answer, once it is there; `unavailable` where that takes too long."""
        face = await self._face()
        await face(actor, asgi_scope, receive, send)

    def prepare(self) -> None:
        """Begin to load, on the running loop; a second time does nothing."""
        if self._loading is None or (self._loading.done() and self._loading.exception()):
            self._loading = asyncio.get_running_loop().run_in_executor(None, self._load)

    async def _face(self) -> Face:
        self.prepare()
        assert self._loading is not None
        try:
            # Shielded: others wait for it too, and who comes next must not start again.
            return await asyncio.wait_for(asyncio.shield(self._loading), LOAD_SECONDS)
        except TimeoutError as error:
            raise Unavailable("the Hub is still loading this face", hint="ask again") from error
