"""One active root, looked at: lock, temporaries, ledger, rendered views and indexes (J22).

Rule 1: it is a read: it takes no lock and makes nothing.
Rule 2: bounded: so many directories and records; of many things the first are named.
"""

from amux.disk import commit, holders
from amux.disk.ground import Ground
from amux.errors import AmuxError
from amux.journal.ground.workspace import Target
from amux.journal.ledger import meta, record
from amux.journal.ledger.ledger import KINDS, Ledger
from amux.journal.ledger.record import Record
from amux.journal.ledger.state import LIVE, RuntimeState
from amux.journal.store import index, root, trouble, window
from amux.journal.store.root import LOCK, STATE, Place
from amux.journal.tasks import authority, observing, taskfiles, view
from amux.journal.tasks.view import View

MAX_FOLDERS = 4096
MAX_NAMED = 20  # of each kind of thing; more are counted
CLIENTS = ".memory/clients"


class Findings:
    """What a person should know, and what to do."""

    __slots__ = ("listed",)

    def __init__(self) -> None:
        self.listed: list[dict[str, object]] = []

    def add(self, what: str, do: str) -> None:
        """Add one."""
        self.listed.append({"what": what, "do": do})

    def refused(self, what: str, refusal: AmuxError) -> None:
        """Add what a refusal says."""
        self.add(f"{what}: {refusal.message}", refusal.hint or "see what it says")


def look(target: Target, uid: int, findings: Findings) -> dict[str, object] | None:
    """Look at one active root: its lock, temporaries, ledger, views and indexes."""
    place = Place.of(target, uid)
    try:
        with root.opened(place) as ground:
            if ground is None:
                return None
            return {
                "activeRoot": target.active_root,
                "project": target.project,
                "rootId": _root_id(ground, target, findings),
                "lock": _lock(ground),
                "live": _live(ground),
                "temporaries": _temporaries(ground, findings),
                "ledger": _ledger(ground, target, findings),
                "indexes": _indexes(ground, target),
            }
    except AmuxError as refusal:
        findings.refused(target.active_root, refusal)
        return None


def _root_id(ground: Ground, target: Target, findings: Findings) -> str | None:
    found = root.root_id(ground)
    if found == "":
        findings.add(
            f"{STATE}/{root.ROOT} of {target.project} is damaged",
            "remove it: the next writer makes a new one, and tasks are bound anew",
        )
    return found or None


def _lock(ground: Ground) -> dict[str, object]:
    """Tell who holds the lock now; the kernel drops it when its holder ends."""
    held = holders.holders(ground.where(f"{STATE}/{LOCK}"))
    if held is None:
        return {"known": False, "holders": []}
    return {"known": True, "holders": [{"pid": one.pid, "command": one.command} for one in held]}


def _live(ground: Ground) -> int:
    """Count the sessions whose live file some process holds."""
    names = _names(ground, f"{STATE}/{LIVE}")
    return sum(bool(holders.holders(ground.where(f"{STATE}/{LIVE}/{one}"))) for one in names)


def _temporaries(ground: Ground, findings: Findings) -> list[str]:
    """Find what killed writers left; a writer that is at work has one too."""
    found: list[str] = []
    waiting = [".memory", STATE]
    seen = 0
    for place in waiting:  # grows while it is read
        seen += 1
        if seen > MAX_FOLDERS or len(found) > MAX_NAMED:
            break
        with trouble.told(place):
            folder = ground.open_folder(place)
        if folder is None:
            continue
        with folder:
            for name in sorted(folder.names()):
                look = folder.look(name)
                if look is not None and look.kind == "folder":
                    waiting.append(f"{place}/{name}")
                elif commit.is_temporary(name):
                    found.append(f"{place}/{name}")
    if found:
        findings.add(
            f"{len(found)} temporaries of killed writers, such as {found[0]}",
            "nothing has to be done: the next write in that directory removes them",
        )
    return found[:MAX_NAMED]


def _ledger(ground: Ground, target: Target, findings: Findings) -> dict[str, object]:
    """Count the ledger's records, and name those that are damaged or of another root."""
    ledger = Ledger(RuntimeState(ground))
    unreadable: list[str] = []
    foreign: list[str] = []
    drifted: list[str] = []
    count = 0
    name = root.root_id(ground)
    identity = root.identity(target.active_root, target.project, name) if name else ""
    try:
        present = meta.read(ledger, identity) if identity else None
    except AmuxError:
        present = None
        unreadable.append("meta.json")
    for kind in KINDS:
        for key in ledger.keys(kind):
            count += 1
            try:
                found = ledger.read(kind, key)
            except AmuxError:
                unreadable.append(record.file_name(kind, key))
                continue
            if kind != "task" or found is None:
                continue
            body = found.body
            if present is None or present.is_foreign(
                body.get("rootIdentityDigest"), body.get("runtimeGeneration")
            ):
                foreign.append(record.file_name(kind, key))
            else:
                drifted += _drift(ground, found)
    if unreadable:
        findings.add(
            f"{len(unreadable)} unreadable ledger records, such as {unreadable[0]}",
            "move the file away: the text of its task is whole, and bind admits it anew",
        )
    if foreign:
        findings.add(
            f"{len(foreign)} tasks were recorded for another place or run of this memory",
            "bind each before it is worked on: amux task own",
        )
    if drifted:
        findings.add(
            f"{len(drifted)} tasks show other checkpoints than the ledger, such as {drifted[0]}",
            "nothing has to be done: the rows are output only, and the next call renders them",
        )
    return {
        "records": count,
        "unreadable": unreadable[:MAX_NAMED],
        "foreign": foreign[:MAX_NAMED],
        "viewDrift": drifted[:MAX_NAMED],
    }


def _drift(ground: Ground, found: Record) -> list[str]:
    """Name the file of a task whose rendered rows are not as the ledger has them (T49)."""
    try:
        state = authority.state_of(found)
        shown = View(
            checkpoints=state.checkpoints,
            stale=state.checkpoints.stale(
                observing.artifacts(ground, state.task_root_relative, state.checkpoints)
            ),
            task_root=state.task_root_relative,
        )
        data = taskfiles.read(ground, shown.document)
    except (AmuxError, OSError):
        return []  # what cannot be read is told elsewhere
    return [shown.document] if data is None or view.drift(data, shown) else []


def _indexes(ground: Ground, target: Target) -> list[dict[str, object]]:
    """Tell which agents' indexes would be believed now; all of them may be deleted at any time."""
    found: list[dict[str, object]] = []
    for name in _names(ground, CLIENTS)[:MAX_NAMED]:
        scope = index.Scope(agent=name, project=target.project, scope=target.scope)
        try:
            seen = window.read(ground, f"{CLIENTS}/{name}/SUMMARY.md")
        except AmuxError:
            continue
        found.append({"agent": name, **index.consult(ground, scope, seen).receipt()})
    return found


def _names(ground: Ground, path: str) -> list[str]:
    with trouble.told(path):
        folder = ground.open_folder(path)
    if folder is None:
        return []
    with folder:
        return sorted(folder.names())[:MAX_FOLDERS]
