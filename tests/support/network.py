"""A Hub that listens on the network, and strangers who knock at it."""

import contextlib
import json
import os
import socket
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support.hub import RunningHub

WAIT_SECONDS = 30.0
UPSERT, GET = "/v1/memory/upsert", "/v1/memory/get"


def launcher(**constants: float) -> list[str]:
    """Give the command of a Hub some of whose waits are shorter, so that a test need not wait."""
    patches = "".join(
        f"\nimport amux.{name.rpartition('__')[0].replace('__', '.')} as m"
        f"\nm.{name.rpartition('__')[2]} = {value}"
        for name, value in constants.items()
    )
    program = f"import sys{patches}\nfrom amux.app import main\nsys.exit(main())"
    return [sys.executable, "-c", program, "hub", "serve"]


def configure(home: Path, **table: object) -> Path:
    """Write `config.toml` as its owner does."""
    home.mkdir(mode=0o700, exist_ok=True)
    file = home / "config.toml"
    rows = [f"{name} = {json.dumps(value)}" for name, value in table.items()]
    file.write_text("\n".join(["[hub]", *rows, ""]), encoding="utf-8")
    file.chmod(0o600)
    return file


@contextlib.contextmanager
def network_hub(
    home: Path, *, launched: list[str] | None = None, **table: object
) -> Iterator[RunningHub]:
    """Start a Hub with memory on and these settings; kill it at the end."""
    configure(home, **table)
    hub = RunningHub(home)
    try:
        yield hub.enable().start(launcher=launched)
    finally:
        hub.kill()


def port_of(hub: RunningHub) -> int:
    """Tell the first TCP port that a Hub listens on."""
    listen = hub.ask("status")["listen"]
    assert isinstance(listen, list)
    return int(str(listen[0]).rpartition(":")[2])


def person(hub: RunningHub, principal: str = "local") -> str:
    """Make a person's token."""
    return str(hub.ask("token_create", kind="person", principal=principal)["token"])


def bound(hub: RunningHub, session: str, **more: object) -> tuple[str, str]:
    """Bind a session: its credential and its binding."""
    found = hub.ask("bind", session=session, agent="codex", delegate=True, **more)
    return str(found["credential"]), str(found["binding"])


def token_file(folder: Path, token: str, name: str = "token") -> Path:
    file = folder / name
    file.write_text(token + "\n")
    file.chmod(0o600)
    return file


class Reply:
    """One HTTP answer, read by its length."""

    def __init__(self, received: bytes) -> None:
        head, _, self.body = received.partition(b"\r\n\r\n")
        status, *lines = head.decode("latin-1").split("\r\n")
        self.status = int(status.split(" ")[1])
        self.headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in lines)
        }

    @property
    def value(self) -> dict[str, object]:
        found: dict[str, object] = json.loads(self.body)
        return found

    @property
    def code(self) -> str:
        error = self.value.get("error")
        return str(error["code"]) if isinstance(error, dict) else "ok"


def request(
    method: str, target: str, body: bytes = b"", host: str = "localhost", **headers: str
) -> bytes:
    """Spell a request; headers with `_` for `-`."""
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", "Connection: close"]
    if body or method == "POST":
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("utf-8") + body


def dialled(port: int, tls: ssl.SSLContext | None = None, name: str = "localhost") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS)
    return tls.wrap_socket(connection, server_hostname=name) if tls else connection


def knocked(connection: socket.socket, data: bytes) -> bytes:
    """Send bytes and read until the other end hangs up."""
    with connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(data)
        received = b""
        with contextlib.suppress(ConnectionResetError):
            while chunk := connection.recv(65536):
                received += chunk
        return received


def local(path: str) -> socket.socket:
    """Connect to a Unix socket."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(WAIT_SECONDS)
    connection.connect(path)
    return connection


def as_uid(uid: int, path: str, data: bytes) -> Reply | str:
    """Ask as another uid; the name of the exception where it could not even connect.

    A forked child: that user may not be able to run the interpreter of this very venv.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            said = b"." + knocked(local(path), data)
        except BaseException as error:  # noqa: BLE001 - a fork must not go on as pytest
            said = b"!" + type(error).__name__.encode()
        os.write(writing, said)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return Reply(said[1:]) if said[:1] == b"." else said[1:].decode()
