"""Which work may be given to children, and under what plan (T66, T67).

Rule 1: items run beside each other only if nothing that one writes is another's, nothing is
        shared, and each has a place of its own, apart from the package and its memory.
Rule 2: whatever is not clearly independent is done by the root, one after the other, and the
        reasons say why.
Rule 3: this is arithmetic on what was asked: no file is looked at here.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

from amux.core import canonical
from amux.core.value import Value

READ_ONLY, VALIDATION, PATCH = "read-only", "isolated-validation", "isolated-worktree-patch"
SURFACES = (
    "memory", "report", "ledger", "package", "validation-manifest", "skill-portfolio",
    "host-deploy",
)  # fmt: skip
ROOT_SURFACES = ("cp-state", "audit-session")  # of the root alone, whatever else is asked
ELIGIBLE, FALLBACK = "parallel-eligible", "serial-fallback"
MIN_PARALLEL, MAX_PARALLEL = 2, 4

INDEPENDENT, COUPLED, SERIAL = "independent", "weakly-coupled-lock", "serial-required"
VIOLATION = "policy-violation"


class Item(Value):
    """One piece of work as it was asked for."""

    work_item_id: str
    display_name: str
    mode: str
    allowed_paths: tuple[str, ...]
    expected_writes: tuple[str, ...]
    shared_surfaces: tuple[str, ...]
    isolation_root: str
    session_prompt: str
    validation_route: str
    stop_condition: str

    @classmethod
    def of(cls, given: Mapping[str, object]) -> "Item":
        """Take an item from a call's arguments, which were checked before."""
        return cls(
            work_item_id=_text(given, "workItemId"),
            display_name=_text(given, "displayName"),
            mode=_text(given, "mode"),
            allowed_paths=_texts(given, "allowedPaths"),
            expected_writes=_texts(given, "expectedWrites"),
            shared_surfaces=_texts(given, "sharedSurfaces"),
            isolation_root=_text(given, "isolationRoot"),
            session_prompt=_text(given, "sessionPrompt"),
            validation_route=_text(given, "validationRoute"),
            stop_condition=_text(given, "stopCondition"),
        )

    def entry(self) -> dict[str, object]:
        """Spell it as the plan keeps it."""
        return {
            "workItemId": self.work_item_id,
            "displayName": self.display_name,
            "mode": self.mode,
            "allowedPaths": list(self.allowed_paths),
            "expectedWrites": list(self.expected_writes),
            "sharedSurfaces": list(self.shared_surfaces),
            "isolationRoot": self.isolation_root,
            "sessionPrompt": self.session_prompt,
            "validationRoute": self.validation_route,
            "stopCondition": self.stop_condition,
        }

    @property
    def forbidden_surfaces(self) -> tuple[str, ...]:
        """Name what it may not touch: all that is shared, but for what it asked for."""
        allowed = set(self.shared_surfaces) - set(ROOT_SURFACES)
        return tuple(name for name in (*SURFACES, *ROOT_SURFACES) if name not in allowed)


class Decision(Value, kw_only=False):
    """Whether items are independent of each other."""

    status: str
    classification: str
    reasons: tuple[str, ...]

    def entry(self) -> dict[str, object]:
        """Spell it for a result."""
        return {
            "schemaVersion": "RequirementIndependenceDecisionV1",
            "status": self.status,
            "classification": self.classification,
            "reasons": list(self.reasons),
        }


def covers(allowed: str, path: str) -> bool:
    """Tell whether a path lies in an allowed one; only a trailing `/` allows a subtree.

    >>> covers("src/", "src/a.py"), covers("src", "src/a.py"), covers("src/", "src/sub/")
    (True, False, True)
    """
    if allowed.endswith("/"):
        return path == allowed[:-1] or path.startswith(allowed)
    return path == allowed


def overlap(one: str, other: str) -> bool:
    """Tell whether two paths are equal or one lies below the other, subtree or not."""
    one, other = one.rstrip("/") + "/", other.rstrip("/") + "/"
    return one.startswith(other) or other.startswith(one)


def independence(items: Sequence[Item]) -> Decision:
    """Decide whether items may run beside each other (T66)."""
    violations = tuple(
        f"{reason}:{item.work_item_id}" for item in items for reason in _violations(item)
    )
    serial = tuple(_serial_reasons(items))
    if violations:
        return Decision(SERIAL, VIOLATION, violations + serial)
    if serial:
        return Decision(SERIAL, SERIAL, serial)
    shared = tuple(
        f"shared-surface:{name}:{one.work_item_id}:{other.work_item_id}"
        for one, other in combinations(items, 2)
        for name in SURFACES
        if name in one.shared_surfaces and name in other.shared_surfaces
    )
    if shared:
        return Decision(COUPLED, COUPLED, shared)
    return Decision(INDEPENDENT, INDEPENDENT, ())


def _violations(item: Item) -> list[str]:
    found = []
    if any(
        not any(covers(allowed, path) for allowed in item.allowed_paths)
        for path in item.expected_writes
    ):
        found.append("write-outside-allowed-paths")
    if item.mode == READ_ONLY and item.expected_writes:
        found.append("read-only-item-writes")
    return found


def _serial_reasons(items: Sequence[Item]) -> list[str]:
    found = []
    if len(items) < MIN_PARALLEL:
        found.append("fewer-than-two-items")
    ids = [item.work_item_id for item in items]
    found += [f"work-item-id-repeated:{one}" for one in sorted(set(ids)) if ids.count(one) > 1]
    found += [f"no-allowed-paths:{item.work_item_id}" for item in items if not item.allowed_paths]
    found += [
        f"root-surface:{name}:{item.work_item_id}"
        for item in items
        for name in ROOT_SURFACES
        if name in item.shared_surfaces
    ]
    found += [
        f"writes-overlap:{one.work_item_id}:{other.work_item_id}"
        for one, other in combinations(items, 2)
        if any(overlap(a, b) for a in one.expected_writes for b in other.expected_writes)
    ]
    return found


class Asked(Value):
    """What a plan is made from, besides its items."""

    task_id: str
    context_digest: str
    source_head: str
    dirty_digest: str
    budget: Mapping[str, int] | None
    package_root: str
    active_root: str
    isolation_roots: Mapping[str, str]
    """Each item's isolation root as the file system resolves it; relative ones are as given."""


def dispatch_plan(items: Sequence[Item], decision: Decision, asked: Asked) -> dict[str, object]:
    """Make the plan: which items may be handed out, or why none (T67)."""
    reasons = _unfit(items, decision, asked)
    plan: dict[str, object] = {
        "schemaVersion": "HostSubagentDispatchPlanV1",
        "taskId": asked.task_id,
        "contextDigest": asked.context_digest,
        "sourceHead": asked.source_head,
        "dirtyDigest": asked.dirty_digest,
        "workItems": [item.entry() for item in items],
        "budget": None if asked.budget is None else dict(asked.budget),
        "fanOut": 0 if reasons else len(items),
        "depth": 1,
        "status": FALLBACK if reasons else ELIGIBLE,
        "reasons": reasons,
    }
    return {**plan, "planDigest": canonical.digest(plan)}


def _unfit(items: Sequence[Item], decision: Decision, asked: Asked) -> list[str]:
    reasons = [] if decision.status == INDEPENDENT else [decision.classification]
    if not MIN_PARALLEL <= len(items) <= MAX_PARALLEL:
        reasons.append("item-count")
    roots = [(item.work_item_id, _root_of(item, asked)) for item in items]
    for name, root in roots:
        if not root.startswith("/"):
            reasons.append(f"isolation-root-not-absolute:{name}")
            continue
        if overlap(root, asked.package_root):
            reasons.append(f"isolation-root-in-package:{name}")
        if overlap(root, asked.active_root):
            reasons.append(f"isolation-root-in-active-root:{name}")
    reasons += [
        f"isolation-roots-overlap:{one}:{other}"
        for (one, root), (other, there) in combinations(roots, 2)
        if root and there and overlap(root, there)
    ]
    return reasons


def _root_of(item: Item, asked: Asked) -> str:
    if not item.isolation_root.startswith("/"):
        return item.isolation_root
    return asked.isolation_roots.get(item.work_item_id, item.isolation_root)


def launch_cards(
    items: Sequence[Item], *, requirement_id: str, active_root: str
) -> list[dict[str, object]]:
    """Make what each child is started with, in the order in which its work is merged."""
    return [
        {
            "schemaVersion": "ParallelLaunchCardV1",
            "requirementId": requirement_id,
            "displayName": item.display_name,
            "activeRoot": active_root,
            "allowedPaths": list(item.allowed_paths),
            "forbiddenSharedSurfaces": list(item.forbidden_surfaces),
            "sessionPrompt": item.session_prompt,
            "isolationMode": item.mode,
            "mergeProtocol": {
                "mergeOrder": place,
                "conflictChecks": list(item.expected_writes),
                "validationRoute": item.validation_route,
                "reportMemoryOwner": "root",
                "failureAction": "serial-takeover",
            },
            "validationRoute": item.validation_route,
            "stopCondition": item.stop_condition,
        }
        for place, item in enumerate(items, start=1)
    ]


def _text(given: Mapping[str, object], name: str) -> str:
    value = given.get(name, "")
    return value if isinstance(value, str) else ""


def _texts(given: Mapping[str, object], name: str) -> tuple[str, ...]:
    value = given.get(name, ())
    return tuple(str(one) for one in value) if isinstance(value, list | tuple) else ()
