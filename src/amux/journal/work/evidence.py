"""The four files that the end of a task rests on, looked at and hashed (T63).

Rule 1: what a file holds is seen here; what a caller says of it must only not be wrong.
Rule 2: four roles, four files, also by inode; of what is wrong the first is told, in T63's order.
"""

from collections.abc import Mapping

from amux.core import canonical
from amux.disk import regular
from amux.disk.ground import Ground
from amux.disk.regular import NotRegularError, TooLargeError
from amux.journal import relative
from amux.journal.machine import Refused
from amux.journal.store import trouble
from amux.journal.tasks.task import Evidence
from amux.journal.work import closeout

Claims = Mapping[str, tuple[str, Mapping[str, object]]]


def gather(
    ground: Ground, given: object, task_root: str
) -> tuple[tuple[Evidence, ...], Refused | None]:
    """Hash the four files of a claim, or say what is the first thing wrong with them (T63)."""
    named = dict(given) if isinstance(given, Mapping) else {}
    missing = closeout.missing_roles(list(named))
    if missing:
        return (), closeout.evidence_problem("INCOMPLETE", "a role has no file", roles=missing)
    named.setdefault("memory", f"{task_root}/.memory/sessions.md")
    claims = {role: _claim(named[role]) for role in closeout.ROLES}
    if len({path for path, _ in claims.values()}) < len(claims):
        return (), closeout.evidence_problem("DUPLICATE", "two roles name one file")
    problem = _twins(ground, claims)
    if problem is None:
        problem = _misplaced(claims, task_root)
    if problem is not None:
        return (), problem
    return _hashed(ground, claims)


def _claim(given: object) -> tuple[str, Mapping[str, object]]:
    if isinstance(given, Mapping):
        return str(given.get("path")), given
    return str(given), {}


def _twins(ground: Ground, claims: Claims) -> Refused | None:
    """Find two names of one file: one piece of evidence proves one thing."""
    seen: dict[tuple[int, int], str] = {}
    for role, (path, _) in claims.items():
        inode = _inode(ground, path)
        if inode is None:
            continue
        if inode in seen:
            return closeout.evidence_problem(
                "DUPLICATE", "two roles name one file", roles=[seen[inode], role]
            )
        seen[inode] = role
    return None


def _inode(ground: Ground, path: str) -> tuple[int, int] | None:
    if relative.problem(path) is not None:
        return None
    place, _, name = path.rpartition("/")
    try:
        folder = ground.open_folder(place)
        if folder is None:
            return None
        with folder:
            found = regular.facts(folder, name)
    except OSError:
        return None
    return None if found is None else (found.device, found.inode)


def _misplaced(claims: Claims, task_root: str) -> Refused | None:
    for role, (path, _) in claims.items():
        if relative.problem(path) is not None:
            return closeout.evidence_problem("PATH_INVALID", "a path is not plain", role=role)
    for role, (path, _) in claims.items():
        end = closeout.place_problem(role, path, task_root)
        if end is not None:
            return closeout.evidence_problem(end, "a file lies where its role does not", role=role)
    return None


def _hashed(ground: Ground, claims: Claims) -> tuple[tuple[Evidence, ...], Refused | None]:
    found, problems = [], []
    for role, (path, claim) in claims.items():
        seen = _seen(ground, role, path)
        if isinstance(seen, Refused):
            problems.append(seen)
            continue
        said, size = claim.get("sha256"), claim.get("bytes")
        if (isinstance(said, str) and not seen.sha256.startswith(said.lower())) or (
            size is not None and size != seen.bytes
        ):
            problems.append(
                closeout.evidence_problem(
                    "DIGEST_MISMATCH", "a file is not what was claimed", role=role,
                    observed={"sha256": seen.sha256, "bytes": seen.bytes},
                )
            )  # fmt: skip
        found.append(seen)
    if problems:
        order = ("FILE_INVALID", "FILE_DRIFT", "DIGEST_MISMATCH")
        return (), min(
            problems, key=lambda one: [one.reason.endswith(end) for end in order].index(True)
        )
    return tuple(found), None


def _seen(ground: Ground, role: str, path: str) -> Evidence | Refused:
    """Hash one file; what it was before must still be so after."""
    place, _, name = path.rpartition("/")
    try:
        folder = ground.open_folder(place)
        if folder is None:
            return _no_file(role)
        with folder:
            before = regular.read(folder, name, max_bytes=closeout.MAX_BYTES)
            after = regular.facts(folder, name)
    except (NotRegularError, TooLargeError):
        return _no_file(role)
    except OSError as error:
        raise trouble.of(error, path) from error
    if before is None or not before.data:
        return _no_file(role)
    if after is None or after[:5] != before.facts[:5] or len(before.data) != after.size:
        return closeout.evidence_problem("FILE_DRIFT", "a file changed meanwhile", role=role)
    return Evidence(
        role=role, path=path, sha256=canonical.digest(before.data), bytes=len(before.data)
    )


def _no_file(role: str) -> Refused:
    return closeout.evidence_problem(
        "FILE_INVALID", "no regular file of 1 B to 8 MiB is there", role=role
    )
