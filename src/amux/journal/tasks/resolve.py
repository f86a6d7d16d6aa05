"""A name among candidates: which task is meant, or that nobody can tell (T40 to T42).

Rule 1: keys are compared whole; the first tier with a hit decides: id, names of active tasks, their
        aliases, then names and aliases of all others. Nothing is chosen among several.
Rule 2: an outcome is never a refusal, and grants nothing.
Rule 3: locale plays no part: candidates, order, outcome and code are equal for every one.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from amux.core.value import Value
from amux.journal.text.namekey import KEY_MAX_CHARS, distance, name_key

ACTIVE, COMPLETED, REJECTED, UNKNOWN = "active", "completed", "rejected", "unknown"
# A task that ended in these ways is over without having been completed.
ENDED = frozenset({REJECTED, "cancelled", "failed"})
MAX_SHOWN = 5
SUGGESTED_PERCENT = 35  # of the longer key that may differ (T42)

RESOLVED, AMBIGUOUS, NOT_FOUND = "resolved-active", "ambiguous", "not-found"
STALE, UNKNOWN_STATUS, SCALE_BLOCKED = "stale-confirmation", "unknown-status", "scale-blocked"

BY_ID, BY_NAME, BY_ALIAS = "taskId", "displayName", "alias"

PROJECT_FOLDERS, PROJECT_BYTES = 2_000, 16 * 1024 * 1024
ALL_FOLDERS, ALL_BYTES = 8_000, 64 * 1024 * 1024


class Candidate:
    """A directory that may be the task that is meant. What is slow to learn is looked up late."""

    def __init__(
        self,
        *,
        task_id: str | None,
        display_name: str,
        aliases: tuple[str, ...],
        project: str,
        kind: str,
        segment: str,
        look_up: Callable[[], str],
        problem: str | None = None,
        is_first_version: bool = False,
    ) -> None:
        self.task_id = task_id
        self.display_name = display_name
        self.aliases = aliases
        self.project = project
        self.kind = kind
        self.segment = segment
        self.problem = problem
        """What is wrong with its identity; None for a valid one and for none at all."""
        self.is_first_version = is_first_version
        """Its identity is of the first version, so that it is to be adopted."""
        self.look_up = look_up
        """Tells its status (T28)."""

    @property
    def relative_path(self) -> str:
        """Give its path below the active root."""
        return f"{self.kind}/{self.segment}"

    @property
    def is_legacy(self) -> bool:
        """Tell whether it has no identity at all."""
        return self.task_id is None and self.problem is None

    @cached_property
    def status(self) -> str:
        """Give its status, looked up once."""
        return self.look_up()

    @cached_property
    def key(self) -> str:
        """Give the key of its name."""
        return name_key(self.display_name)

    @cached_property
    def alias_keys(self) -> tuple[str, ...]:
        """Give the keys of its aliases."""
        return tuple(name_key(alias) for alias in self.aliases)

    @property
    def place(self) -> tuple[str, str, str, str, str]:
        """Give what lists are ordered by."""
        return (self.project, self.kind, self.key, self.task_id or "", self.segment)

    def listed(self) -> dict[str, object]:
        """Show it in a list: without any path."""
        return {
            "displayName": self.display_name,
            "project": self.project,
            "kind": self.kind,
            "status": self.status,
            "taskId": self.task_id,
        }


class Found(Value):
    """Which task is meant, as far as names tell."""

    outcome: str
    code: str | None
    candidate: Candidate | None = None
    matched_by: str | None = None
    several: tuple[Candidate, ...] = ()
    suggestions: tuple[Candidate, ...] = ()


def find(name: str, candidates: Iterable[Candidate]) -> Found:
    """Find the task of a name, alias or taskId."""
    asked = name_key(name)
    ordered = sorted(candidates, key=lambda one: one.place)
    hits, matched_by = _tier(asked, ordered)
    match hits:
        case []:
            return Found(
                outcome=NOT_FOUND, code="TASK_NOT_FOUND", suggestions=_suggestions(asked, ordered)
            )
        case [only]:
            outcome, code = _outcome(only)
            return Found(outcome=outcome, code=code, candidate=only, matched_by=matched_by)
        case _:
            return Found(
                outcome=AMBIGUOUS,
                code="TASK_AMBIGUOUS",
                matched_by=matched_by,
                several=tuple(hits[:MAX_SHOWN]),
            )


def blocked(folders: int, size: int, *, is_everywhere: bool) -> bool:
    """Tell whether more was found than a search may read."""
    if is_everywhere:
        return folders > ALL_FOLDERS or size > ALL_BYTES
    return folders > PROJECT_FOLDERS or size > PROJECT_BYTES


def scale_blocked() -> Found:
    """Give the outcome of a search that would read too much."""
    return Found(outcome=SCALE_BLOCKED, code="TASK_INDEX_SCALE_BLOCKED")


def _tier(asked: str, ordered: Sequence[Candidate]) -> tuple[list[Candidate], str | None]:
    by_id = [one for one in ordered if one.task_id is not None and name_key(one.task_id) == asked]
    if by_id:
        return by_id, BY_ID
    named = [one for one in ordered if one.key == asked]
    called = [one for one in ordered if asked in one.alias_keys]
    active = [one for one in named if one.status == ACTIVE]
    if active:
        return active, BY_NAME
    active = [one for one in called if one.status == ACTIVE]
    if active:
        return active, BY_ALIAS
    rest = [one for one in ordered if one in named or one in called]
    return rest, (BY_NAME if rest and rest[0] in named else BY_ALIAS) if rest else None


def _outcome(only: Candidate) -> tuple[str, str | None]:
    if only.problem is not None:
        return STALE, "TASK_IDENTITY_INVALID"
    if only.status == ACTIVE:
        return RESOLVED, None
    if only.status == COMPLETED:
        return COMPLETED, "TASK_COMPLETED"
    if only.status in ENDED:
        return REJECTED, "TASK_REJECTED"
    return UNKNOWN_STATUS, "TASK_STATUS_UNKNOWN"


def _suggestions(asked: str, ordered: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Give the candidates whose names come nearest."""
    if not asked:
        return ()
    ranked = []
    for at, one in enumerate(ordered):
        rank = min(
            (rank for key in (one.key, *one.alias_keys) if (rank := _rank(asked, key)) is not None),
            default=None,
        )
        if rank is not None:
            ranked.append((rank, at))
    return tuple(ordered[at] for _, at in sorted(ranked)[:MAX_SHOWN])


def _rank(asked: str, key: str) -> tuple[int, float] | None:
    """Rank a key: one that contains the other first, then by distance; None is too far."""
    if key and (asked in key or key in asked):
        return (0, 0.0)
    one, other = asked[:KEY_MAX_CHARS], key[:KEY_MAX_CHARS]
    longer = max(len(one), len(other))
    # The bound is compared as whole numbers are: 7 of 20 is 0.35, whatever 0.35 * 20 rounds to.
    away = distance(one, other, at_most=longer * SUGGESTED_PERCENT // 100)
    return None if away is None else (1, away / longer)
