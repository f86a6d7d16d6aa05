"""The journal through its faces: a desk in this process, `amux mcp`, and the command line."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType, TracebackType

from amux.app import LATE
from amux.core.text import to_json
from amux.errors import AmuxError
from amux.journal.call.tools import TOOLS
from amux.journal.desk import Desk
from tests.support.mcp_lines import McpProcess, block, environment
from tests.support.workspaces import AT, around

CODEX = "codex-mcp-client"
CLAUDE = "claude-code"


def late(name: str) -> ModuleType:
    """Load a module as `app` does."""
    return import_module(LATE[name])


class Refused(Exception):
    """A refusal as a face showed it."""

    def __init__(self, body: dict[str, object]) -> None:
        error = body["error"]
        assert isinstance(error, dict)
        assert set(body) == {"error"}
        super().__init__(json.dumps(error, ensure_ascii=False))
        self.code = str(error["code"])
        self.message = str(error["message"])
        self.hint = str(error.get("hint", ""))
        details = error.get("details", {})
        assert isinstance(details, dict)
        self.details: dict[str, object] = details
        self.reason = str(details.get("reason", ""))

    @property
    def both(self) -> tuple[str, str]:
        return self.code, self.reason


class Face:
    """A way to call tools by name."""

    def call(self, name: str, /, **arguments: object) -> dict[str, object]:
        return self.send(name, arguments)

    def send(self, name: str, arguments: object, /) -> dict[str, object]:
        raise NotImplementedError

    def refused(self, name: str, /, **arguments: object) -> Refused:
        """Call a tool that refuses."""
        try:
            found = self.call(name, **arguments)
        except Refused as refusal:
            return refusal
        raise AssertionError(f"{name} answered {found}")


class InProcess(Face):
    """A desk of its own in this process; `at` moves its clock."""

    def __init__(
        self,
        where: Path,
        *,
        client: str | None = CODEX,
        session: str = "",
        at: float = AT,
        is_named: bool = False,
        home: Path = Path("/nobody"),
        uid: int | None = None,
        seed: int = 1,
        **env: str,
    ) -> None:
        self.at = at
        found = around(
            where, client=client, session=session, is_named=is_named, home=home, uid=uid,
            seed=seed, **env,
        )  # fmt: skip
        object.__setattr__(found, "clock", lambda: self.at)
        self.desk = Desk(found, late)

    def send(self, name: str, arguments: object, /) -> dict[str, object]:
        try:
            found = self.desk.call(name, arguments)
        except AmuxError as refusal:
            raise Refused(json.loads(to_json(refusal.body()))) from refusal
        assert "error" not in found
        value = json.loads(to_json(found))
        assert isinstance(value, dict)
        return value


class Mcp(Face):
    """One `amux mcp` with a client that joins pages, as an agent would."""

    def __init__(
        self, where: Path, *words: str, home: Path, client: str = CODEX, **env: str
    ) -> None:
        self.process = McpProcess(
            home, *(words or ("--tools", "all")), cwd=where, **({"AMUX_TZ": "UTC"} | env)
        )
        self.process.initialize(client=client)

    def send(self, name: str, arguments: object, /) -> dict[str, object]:
        text, is_refusal = self._ask(name, arguments)
        found = json.loads(text)
        if is_refusal:
            raise Refused(found)
        if found.keys() == {"page", "pages", "continuation", "text"}:
            found = json.loads(self._joined(found))
        assert isinstance(found, dict)
        assert "error" not in found
        return found

    def _joined(self, page: dict[str, object]) -> str:
        texts = [str(page["text"])]
        while page["continuation"]:
            text, is_refusal = self._ask("result_continue", {"continuation": page["continuation"]})
            assert not is_refusal
            page = json.loads(text)
            texts.append(str(page["text"]))
        return "".join(texts)

    def _ask(self, name: str, arguments: object) -> tuple[str, bool]:
        return block(self.process.request("tools/call", {"name": name, "arguments": arguments}))

    def __enter__(self) -> "Mcp":
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.process.__exit__()


class Cli(Face):
    """The command line, a process a call; its verbs by the names of their tools."""

    def __init__(self, where: Path, *, home: Path, **env: str) -> None:
        self._where = where
        self._env = environment(home, **({"AMUX_TZ": "UTC"} | env))

    def send(self, name: str, arguments: object, /) -> dict[str, object]:
        done = self.run(*VERBS[name].split(), "--args", "-", given=json.dumps(arguments))
        if done.returncode:
            assert done.stdout == b""
            raise Refused(json.loads(done.stderr.splitlines()[-1]))
        found = json.loads(done.stdout)
        assert isinstance(found, dict)
        return found

    def run(self, *words: str, given: str = "") -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run(
            [sys.executable, "-m", "amux", *words],
            input=given.encode(),
            capture_output=True,
            env=self._env,
            cwd=self._where,
            timeout=30,
            check=False,
        )

    def start(self, *words: str, **env: str) -> "subprocess.Popen[bytes]":
        """Start a command and do not wait for it."""
        return subprocess.Popen(
            [sys.executable, "-m", "amux", *words],
            stdout=subprocess.PIPE,
            env={**self._env, **env},
            cwd=self._where,
        )


VERBS = {name: tool.verb for name, tool in TOOLS.items()}
