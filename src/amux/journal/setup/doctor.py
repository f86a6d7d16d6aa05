"""How the journal stands here, and what a person should do about it (J22).

Rule 1: it is a read: it takes no lock, makes nothing, and answers whatever it finds.
Rule 2: what is broken is a finding with what to do; only what could not be looked at is missing.
Rule 3: bounded: so many active roots, each looked at within the bounds of `rootlook.py`.
"""

from amux.disk import glance
from amux.disk.ground import Ground
from amux.errors import AmuxError
from amux.journal.call.surroundings import Surroundings
from amux.journal.ground import agent, layout, workspace
from amux.journal.ground.layout import FOLDER, Layout
from amux.journal.ground.workspace import Target
from amux.journal.setup import handout, rootlook, rules
from amux.journal.setup.rootlook import Findings
from amux.journal.store import trouble

SCHEMA = "WorkspaceDoctorV1"
MAX_ROOTS = 20  # as many as candidates are shown
_CODEX = ("AGENTS.md", ".agents/skills", ".codex/hooks.json")
_RULES = {
    "gone": "run amux workspace init with its flag, or amux workspace remove-rules",
    "of another release": "run amux workspace init with its flag again",
    "changed by a person": "nothing has to be done; delete it and run init to have ours again",
    "unreadable": "put a regular file there; links are neither read nor written",
}


def examine(around: Surroundings) -> dict[str, object]:
    """Look at the workspace of a start directory, and give all that was found."""
    findings = Findings()
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
        one
        for target in _roots(where)
        if (one := rootlook.look(target, around.uid, findings)) is not None
    ]
    found |= _handed(where, around, findings)
    return {**found, "findings": findings.listed}


def _target(where: Layout, findings: Findings) -> tuple[Target | None, list[str]]:
    try:
        return workspace.select(where), []
    except AmuxError as refusal:
        candidates = refusal.details.get("candidates")
        listed = [str(one) for one in candidates] if isinstance(candidates, list) else []
        findings.refused("no project is meant here", refusal)
        return None, listed


def _asker(
    around: Surroundings, profile: bytes | None, findings: Findings, *, has_profile: bool
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


def _profile(where: Layout, findings: Findings) -> bytes | None:
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


def _handed(where: Layout, around: Surroundings, findings: Findings) -> dict[str, object]:
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
