"""A server of the Hub's HTTP stack that does nothing but write durably: what no Hub can go below.

`python -m bench.floor FOLDER SOCKET` serves one document; who calls, what it holds, what stands
there and what was announced is nobody's business here.
"""

import asyncio
import json
import os
import socket
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

import uvicorn

from bench.bare import write

Message = MutableMapping[str, Any]
OK = b'{"ok":true}'


def serve(folder: Path, path: str) -> None:
    """Answer each request when its document is durable, written by a thread as in a Hub."""

    async def app(
        _: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        body, is_whole = b"", False
        while not is_whole:
            message = await receive()
            body += message.get("body", b"")
            is_whole = not message.get("more_body", False)
        data = json.loads(body)["content"].encode()
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, write, folder, "one.md", data, os.fsync)
        headers = [(b"content-length", b"%d" % len(OK))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": OK})

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        config = uvicorn.Config(
            app, http="httptools", loop="uvloop", lifespan="off", access_log=False,
            log_level="error", date_header=False, server_header=False,
        )  # fmt: skip
        uvicorn.Server(config).run([listener])


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.argv[2])
