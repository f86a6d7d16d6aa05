"""A workspace with a task in it, and what agents and people do there, by the tools' own answers."""

import hashlib
import shutil
from pathlib import Path

from tests.support.journal_faces import CODEX, Face, InProcess
from tests.support.workspaces import AT

NAME = "Export totals"
OVERVIEW = "Totals in the CSV lag one day.\n"
INSTRUCTION = "fix the stale totals"
ROLES = {
    "ecr": "ecr.md",
    "report": "reports/codex/20260314/01--done.md",
    "completion": "completion.md",
}


class Task:
    """One task as its present owner sees it."""

    def __init__(self, face: Face, receipt: dict[str, object], project: str | None = None) -> None:
        self.face = face
        self.receipt = receipt
        self.owner = str(receipt["owner"])
        self.task_id = str(receipt["taskId"])
        self.named = {"task": str(receipt["displayName"])}
        if project is not None:
            self.named["project"] = project

    @property
    def root(self) -> Path:
        return Path(str(self.receipt["activeRoot"])) / str(self.receipt["taskRootRelative"])

    def renew(self, **more: object) -> dict[str, object]:
        return self.own("renew", **more)

    def own(self, operation: str, **more: object) -> dict[str, object]:
        return self.face.call(
            "memory_task_write_owner", operation=operation, owner=self.owner, **self.named, **more
        )

    def begin(self, *targets: str, **more: object) -> dict[str, object]:
        return self.face.call(
            "memory_task_operation", op="begin", owner=self.owner, targets=list(targets),
            **self.named, **more,
        )  # fmt: skip

    def settle(self, **more: object) -> dict[str, object]:
        return self.face.call(
            "memory_task_operation", op="settle", owner=self.owner, **self.named, **more
        )

    def confirm(self, phase: str = "CP1", path: str = "00-问题概况.md") -> dict[str, object]:
        return self.face.call(
            "memory_cp_confirm", phase=phase, artifactPath=path,
            artifactSha256=sha256(self.root / path), sourceMessage="yes, go on", **self.named,
        )  # fmt: skip

    def finish(self, **more: object) -> dict[str, object]:
        given: dict[str, object] = {"evidence": self.evidence(), **more}
        return self.face.call("memory_task_terminal_v1", owner=self.owner, **self.named, **given)

    def evidence(self) -> dict[str, object]:
        """Write the files of evidence and name them, relative to the active root."""
        named: dict[str, object] = {}
        for role, name in ROLES.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                path.write_text(f"{role}\n")
            named[role] = f"{self.receipt['taskRootRelative']}/{name}"
        return named


def workspace(base: Path) -> Path:
    """Make a repository to work in."""
    base.mkdir(parents=True, exist_ok=True)
    (base / ".git").mkdir(exist_ok=True)
    return base


def agent(
    where: Path, session: str = "sess-1", *, client: str = CODEX, at: float = AT
) -> InProcess:
    """Start a server for a session, in this process."""
    return InProcess(where, session=session, client=client, at=at, seed=hash_of(session))


def hash_of(text: str) -> int:
    """Give a number that is the same in each run."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def admit(face: Face, name: str = NAME, **more: object) -> Task:
    """Admit a bug."""
    given: dict[str, object] = {
        "instruction": f"{INSTRUCTION}: {name}",
        "taskKind": "bugs",
        "displayName": name,
        "overview": OVERVIEW,
        **more,
    }
    project = given.get("project")
    receipt = face.call("memory_task_admit_v2", **given)
    return Task(face, receipt, str(project) if project is not None else None)


def bind(
    face: Face, instruction: str = "go on with it", *, task: str = NAME, **more: object
) -> Task:
    """Bind a task to the session of a face."""
    receipt = face.call(
        "memory_task_admit_v2", operation="bind", instruction=instruction, task=task, **more
    )
    project = more.get("project")
    return Task(face, receipt, str(project) if project is not None else None)


def sha256(path: Path) -> str:
    """Name the bytes of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def state_of(base: Path) -> Path:
    """Give the runtime state of a workspace with one project."""
    return base / ".devcodex/.runtime-state"


def ledger_of(base: Path) -> Path:
    """Give its ledger."""
    return state_of(base) / "ledger"


def copy(base: Path, to: Path) -> Path:
    """Copy a workspace, as `cp -a` does."""
    shutil.copytree(base, to, symlinks=True)
    return to
