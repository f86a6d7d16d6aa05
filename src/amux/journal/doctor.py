"""How the journal stands here, and what a person should do about it (J22).

Rule 1: it is a read: it takes no lock, makes nothing, and answers whatever it finds.
Rule 2: what is broken is a finding with what to do; only what could not be looked at is missing.
Rule 3: bounded: so many active roots, directories and records, and it says where it stopped.
"""

from dataclasses import dataclass, field

from amux.disk import commit, glance, holders
from amux.disk.ground import Ground
from amux.errors import AmuxError
from amux.journal import agent, handout, layout, meta, record, root, rules, trouble, workspace
from amux.journal.layout import FOLDER, Layout
from amux.journal.ledger import KINDS, Ledger
from amux.journal.root import LOCK, STATE, Place
from amux.journal.state import LIVE, RuntimeState
from amux.journal.surroundings import Surroundings
from amux.journal.workspace import Target

SCHEMA = "WorkspaceDoctorV1"
MAX_ROOTS = 20  # as many as candidates are shown
MAX_FOLDERS = 4096
MAX_NAMED = 20  # of each kind of thing; more are counted
_CODEX = ("AGENTS.md", ".agents/skills", ".codex/hooks.json")
_RULES = {
    "gone": "run amux workspace init with its flag, or amux workspace remove-rules",
    "of another release": "run amux workspace init with its flag again",
    "changed by a person": "nothing has to be done; delete it and run init to have ours again",
    "unreadable": "put a regular file there; links are neither read nor written",
}


@dataclass(slots=True)
class _Findings:
    """What a person should know, and what to do."""

    listed: list[dict[str, object]] = field(default_factory=list)

    def add(self, what: str, do: str) -> None:
        self.listed.append({"what": what, "do": do})

    def refused(self, what: str, refusal: AmuxError) -> None:
        self.add(f"{what}: {refusal.message}", refusal.hint or "see what it says")


def examine(around: Surroundings) -> dict[str, object]:
    """Look at the workspace of a start directory, and give all that was found."""
    findings = _Findings()
    found: dict[str, object] = {"schemaVersion": SCHEMA, "start": around.start}
    try:
        where = layout.find(
            around.start, is_named=around.is_start_named, home=around.home, uid=around.uid
        )
    except AmuxError as refusal:
        findings.refused("no workspace", refusal)
        found |= {"base": None, "layout": None, "activeRoot": None}
        found |= _asker(around, b"", findings, has_profile=False)
        return {**found, "findings": findings.listed}
    for warning in where.warnings:
        findings.add(
            f"{warning}: a .devcodex above belongs to somebody else",
            "nothing has to be done; it is not used",
        )
    target, candidates = _target(where, findings)
    found |= {
        "base": where.base,
        "layout": {"kind": where.kind, "created": where.is_created, "row": where.row},
        "activeRoot": target.active_root if target else None,
        "project": target.project if target else None,
        "candidates": candidates,
    }
    if not where.is_created:
        findings.add(
            "there is no .devcodex yet", "the first write makes it, or amux workspace init"
        )
    found |= _asker(around, _profile(where, findings), findings, has_profile=True)
    found["roots"] = [
        one for target in _roots(where) if (one := _root(target, around, findings)) is not None
    ]
    found |= _handed(where, around, findings)
    return {**found, "findings": findings.listed}


def _target(where: Layout, findings: _Findings) -> tuple[Target | None, list[str]]:
    try:
        return workspace.select(where), []
    except AmuxError as refusal:
        candidates = refusal.details.get("candidates")
        listed = [str(one) for one in candidates] if isinstance(candidates, list) else []
        findings.refused("no project is meant here", refusal)
        return None, listed


def _asker(
    around: Surroundings, profile: bytes | None, findings: _Findings, *, has_profile: bool
) -> dict[str, object]:
    """Tell the agent (J32) and the session (J27) that a call from here would have."""
    host = agent.host(around.facts, around.client)
    hint = agent.profile(profile) if has_profile else agent.Profile()
    who = agent.for_write(host, None, hint)
    key = agent.session_key(
        around.facts,
        host,
        given=around.session_named,
        fallback=around.session_fallback,
        is_mcp=around.is_mcp,
    )
    if who.is_conflict:
        findings.add(
            f"the profile names {who.profile}, and {who.id} is at work",
            f"correct {FOLDER}/{agent.PROFILE}, or delete it: it is a hint only",
        )
    if hint.is_illegal:
        findings.add(
            f"{FOLDER}/{agent.PROFILE} names no agent that amux knows",
            "write one of " + " ".join(agent.AGENTS),
        )
    for warning in (*host.warnings, *key.warnings):
        findings.add(warning, "see which of AMUX_AGENT, DEVCODEX_AGENT and AMUX_SESSION are set")
    if not key.is_own:
        findings.add(
            "nothing names the session, so a command line here can own no task",
            "export AMUX_SESSION=… with a name of your own",
        )
    return {"agent": who.plain(), "session": {"source": key.source, "own": key.is_own}}


def _profile(where: Layout, findings: _Findings) -> bytes | None:
    path = glance.under(where.folder, agent.PROFILE)
    try:
        return glance.read(path, max_bytes=agent.PROFILE_MAX_BYTES)
    except OSError:
        findings.add(f"{FOLDER}/{agent.PROFILE} cannot be read", "put a regular file there")
        return None


def _roots(where: Layout) -> list[Target]:
    """Give the active roots that are there."""
    if where.kind == layout.PROJECT:
        targets = [workspace.select(where)]
    else:
        projects = workspace.discover(where.base).projects
        targets = [workspace.select(where, scope=workspace.WORKSPACE_SCOPE)]
        targets += [workspace.select(where, project=one) for one in projects]
    there = [one for one in targets if glance.look(one.active_root) is not None]
    return there[:MAX_ROOTS]


def _root(target: Target, around: Surroundings, findings: _Findings) -> dict[str, object] | None:
    """Look at one active root: its lock, temporaries, ledger and indexes."""
    place = Place.of(target, around.uid)
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
                "indexes": _indexes(ground),
            }
    except AmuxError as refusal:
        findings.refused(target.active_root, refusal)
        return None


def _root_id(ground: Ground, target: Target, findings: _Findings) -> str | None:
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


def _temporaries(ground: Ground, findings: _Findings) -> list[str]:
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


def _ledger(ground: Ground, target: Target, findings: _Findings) -> dict[str, object]:
    """Count the ledger's records, and name those that are damaged or of another root."""
    ledger = Ledger(RuntimeState(ground))
    unreadable: list[str] = []
    foreign: list[str] = []
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
            if kind == "task" and found is not None:
                body = found.body
                if present is None or present.is_foreign(
                    body.get("rootIdentityDigest"), body.get("runtimeGeneration")
                ):
                    foreign.append(record.file_name(kind, key))
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
    return {
        "records": count,
        "unreadable": unreadable[:MAX_NAMED],
        "foreign": foreign[:MAX_NAMED],
    }


def _indexes(ground: Ground) -> int:
    """Count the derived indexes; they are checked by who uses them, and may all be deleted."""
    return len(_names(ground, f"{STATE}/derived-indexes/v1/memory"))


def _names(ground: Ground, path: str) -> list[str]:
    with trouble.told(path):
        folder = ground.open_folder(path)
    if folder is None:
        return []
    with folder:
        return sorted(folder.names())[:MAX_FOLDERS]


def _handed(where: Layout, around: Surroundings, findings: _Findings) -> dict[str, object]:
    """Tell what agents were handed, and what Codex finds beside it."""
    listed: list[dict[str, object]] = []
    with trouble.told("."):
        ground = Ground.open(where.base, (), uid=around.uid)
    if ground is None:
        return {"rules": listed, "codex": {}}
    with ground:
        try:
            known = handout.record(ground).entries
        except AmuxError as refusal:
            findings.refused(rules.RECORD, refusal)
            known = {}
        for rule in rules.every_rule():
            try:
                found = handout.read(ground, rule.path)
                state = rules.state(rule, found.data if found else None, known.get(rule.path))
            except AmuxError:
                state = "unreadable"
            listed.append({"path": rule.path, "state": state})
            if state in _RULES:
                findings.add(f"{rule.path} is {state}", _RULES[state])
    codex = {path: glance.look(glance.under(where.base, path)) is not None for path in _CODEX}
    return {"rules": listed, "codex": codex}
