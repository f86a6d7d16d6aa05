"""A real Hub in a process of its own, on a root of its own."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from amux import client, config
from amux.errors import AmuxError

READY_SECONDS = 15.0


class RunningHub:
    """Starts, calls, kills and restarts one Hub; the root outlives its processes."""

    def __init__(self, home: Path, **environment: str) -> None:
        self.home = home
        self.environment = (
            {
                name: value
                for name, value in os.environ.items()
                if not name.startswith("AMUX_") and name != "PYTHONDONTWRITEBYTECODE"
            }
            | {"AMUX_HOME": str(home), "AMUX_NO_AUTOSTART": "1"}
            | environment
        )
        self.process: subprocess.Popen[bytes] | None = None
        # No pipe: one that nobody empties would stop the Hub in the middle of a test.
        self._log = os.memfd_create("hub-log")

    def __del__(self) -> None:
        os.close(self._log)

    @property
    def log(self) -> bytes:
        """Give what the Hub's processes have written to standard error."""
        return os.pread(self._log, 1 << 24, 0)

    @property
    def config(self) -> config.Config:
        return config.load(self.environment)

    @property
    def memory_dir(self) -> Path:
        return self.home / "memory" / "global"

    def cli(
        self, *words: str, stdin: bytes = b"", timeout: float = 30.0, **environment: str
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "amux", *words],
            input=stdin,
            capture_output=True,
            env=self.environment | environment,
            timeout=timeout,
            check=False,
        )

    def enable(self) -> "RunningHub":
        done = self.cli("system", "config", "set", "memory.enabled", "true")
        assert done.returncode == 0, done.stderr
        return self

    def start(self, *words: str, launcher: list[str] | None = None) -> "RunningHub":
        command = launcher or [sys.executable, "-m", "amux", "hub", "serve"]
        self.process = subprocess.Popen([*command, *words], env=self.environment, stderr=self._log)
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise AssertionError(self.log.decode())
            with contextlib.suppress(AmuxError):
                self.ask("status")
                return self
            time.sleep(0.01)
        raise AssertionError("the Hub did not answer in time")

    def ask(self, name: str, wait_seconds: float = 10.0, **arguments: object) -> dict[str, object]:
        hub = client.Client(self.config.socket_path, wait_seconds=wait_seconds)
        return hub.ask(name, arguments).value()

    def raw(self, request: bytes) -> bytes:
        """Send bytes as they are; read until the Hub closes."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            connection.connect(self.config.socket_path)
            with contextlib.suppress(BrokenPipeError):
                connection.sendall(request)
            received = b""
            with contextlib.suppress(ConnectionResetError):
                while chunk := connection.recv(65536):
                    received += chunk
            return received

    def post(
        self, target: str, body: bytes, content_type: str = "application/json"
    ) -> tuple[int, dict[str, object]]:
        head = (
            f"POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        answer = self.raw(head.encode() + body)
        top, _, text = answer.partition(b"\r\n\r\n")
        return int(top.split(b" ")[1]), json.loads(text)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
            # It lies outside the root, so nobody else tidies it up.
            with contextlib.suppress(OSError):
                os.unlink((self.home / "run" / "hub.shared").read_bytes())

    def stop(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=20)
        status = self.process.returncode
        self.process = None
        return status


@contextlib.contextmanager
def running_hub(home: Path, **environment: str) -> Iterator[RunningHub]:
    """Start a Hub with memory on; kill it at the end."""
    hub = RunningHub(home, **environment)
    try:
        yield hub.enable().start()
    finally:
        hub.kill()
