"""Sessions of agents that work on tasks, each a desk of its own, and what stands on disk."""

import hashlib
import json
from pathlib import Path

from tests.support.journal_faces import CODEX, InProcess, Refused
from tests.support.workspaces import AT

Found = dict[str, object]
WORDS = "fix the stale totals"
NAME = "Export totals"
ROOT = "bugs/Export totals"
OVERVIEW = "00-问题概况.md"
TEXT = "The CSV lags one day.\n"
HOUR = 3600.0
DAY = 24 * HOUR


def admission(**more: object) -> Found:
    """Give the arguments of the admission that most tests start with."""
    return {
        "instruction": WORDS,
        "taskKind": "bugs",
        "displayName": NAME,
        "overview": TEXT,
    } | more


class Agent(InProcess):
    """One session of one agent; its last owner reference is remembered."""

    def __init__(
        self,
        base: Path,
        session: str = "sess-1",
        *,
        client: str | None = CODEX,
        at: float = AT,
        **env: str,
    ) -> None:
        seed = int.from_bytes(hashlib.sha256(f"{session}{at}".encode()).digest()[:4], "big")
        super().__init__(base, client=client, at=at, seed=seed, AMUX_SESSION=session, **env)
        self.owner = ""
        self.context = ""
        """The context digest that it quotes, where a test has it quote one."""

    def end(self) -> None:
        """End its process, as far as live files tell."""
        self.desk._book.live.release_all()

    def admit(self, **more: object) -> Found:
        return self._kept(self.call("memory_task_admit_v2", **admission(**more)))

    def bind(self, words: str = "continue", task: str = NAME, **more: object) -> Found:
        return self._kept(
            self.call(
                "memory_task_admit_v2", operation="bind", task=task, instruction=words, **more
            )
        )

    def own(self, operation: str, task: str = NAME, **more: object) -> Found:
        if operation != "acquire":
            more = {"owner": self.owner} | more
        return self._kept(
            self.call("memory_task_write_owner", operation=operation, task=task, **more)
        )

    def confirm(
        self, phase: str, path: str, sha256: str, task: str = NAME, **more: object
    ) -> Found:
        given = {"artifactPath": path, "artifactSha256": sha256, "sourceMessage": "yes, that is it"}
        return self.call("memory_cp_confirm", task=task, phase=phase, **(given | more))

    def begin(self, *targets: str, task: str = NAME, **more: object) -> Found:
        given = {"targets": list(targets or ("a.py",)), "owner": self.owner} | more
        return self.call("memory_task_operation", op="begin", task=task, **given)

    def settle(self, task: str = NAME) -> Found:
        return self.call("memory_task_operation", op="settle", task=task, owner=self.owner)

    def refused_to(self, work: str, *words: object, **more: object) -> tuple[str, str]:
        """Do something that is refused, and give code and reason."""
        return self.refusal(work, *words, **more).both

    def refusal(self, work: str, *words: object, **more: object) -> Refused:
        try:
            found = getattr(self, work)(*words, **more)
        except Refused as refusal:
            return refusal
        raise AssertionError(f"{work} answered {found}")

    def _kept(self, found: Found) -> Found:
        if found.get("owner"):
            self.owner = str(found["owner"])
        return found


class Place:
    """A project whose memory tests look into."""

    def __init__(self, base: Path) -> None:
        self.base = base
        (base / ".git").mkdir(parents=True, exist_ok=True)
        self.root = base / ".devcodex"

    @property
    def task(self) -> Path:
        return self.root / ROOT

    @property
    def sessions(self) -> Path:
        return self.task / ".memory/sessions.md"

    def records(self, kind: str) -> list[Found]:
        """Give the bodies of the ledger's records of a kind."""
        folder = self.root / ".runtime-state/ledger" / kind
        return [json.loads(path.read_bytes())["body"] for path in sorted(folder.glob("*.json"))]

    def state(self) -> Found:
        (found,) = self.records("task")
        return found

    def bytes(self) -> dict[str, bytes]:
        """Give every byte below `.devcodex`."""
        return {
            path.relative_to(self.root).as_posix(): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file()
        }

    def artifact(self, name: str, text: str) -> tuple[str, str]:
        """Write a file of the task, and give its path and digest."""
        (self.task / name).write_text(text, encoding="utf-8")
        return name, sha(text)


def sha(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def owner_of(state: Found) -> Found:
    found = state["owner"]
    assert isinstance(found, dict)
    return found


def admission_of(state: Found) -> Found:
    found = state["admission"]
    assert isinstance(found, dict)
    return found


def codes(found: Found) -> list[str]:
    """Give the codes of an answer's warnings."""
    warnings = found["warnings"]
    assert isinstance(warnings, list)
    return [str(one["code"]) for one in warnings]
