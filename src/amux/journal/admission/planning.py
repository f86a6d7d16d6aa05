"""Which directory and files a request means, and with which bytes (T19, T21, T24 to T26, T31).

Rule 1: planned bytes follow from request and ingress; a repeat plans the same.
Rule 2: what people wrote is kept: adopt and bind make only what is missing.
Rule 3: an identity that is there must hold together, and be that of this project.
"""

from amux.core.value import Value
from amux.disk.ground import Ground
from amux.errors import AmuxError
from amux.journal.admission import asking
from amux.journal.admission.asking import PlannedFile
from amux.journal.admission.request import Request
from amux.journal.ledger import shape
from amux.journal.machine import Refused
from amux.journal.refusals import next_call, refuse
from amux.journal.tasks import directory, identity, survey, taskfiles, view
from amux.journal.tasks.admissionrecord import CP_STATE, IDENTITY, OVERVIEW
from amux.journal.tasks.authority import Call
from amux.journal.tasks.identity import FirstIdentity, Identity
from amux.journal.tasks.ingress import Ingress
from amux.journal.tasks.view import NAME
from amux.journal.text.namekey import name_key

OVERVIEWS = (asking.OVERVIEW, asking.CHANGE_OVERVIEW, *asking.OVERVIEWS.values())


class There(Value):
    """A directory that a request names, and the identity that it has."""

    path: str
    found: Identity | FirstIdentity | None
    """None is a legacy directory."""

    @property
    def kind(self) -> str:
        """Name its kind."""
        return self.path.partition("/")[0]

    @property
    def display_name(self) -> str:
        """Give the name that it goes by."""
        return self.path.partition("/")[2] if self.found is None else self.found.display_name


class Plan(Value):
    """A task as a request makes it, or finds it."""

    identity: Identity
    files: tuple[PlannedFile, ...]
    overview: str
    """The path of the overview, below the active root."""
    needs_block: bool
    is_overview_ignored: bool = False

    @property
    def sessions(self) -> str:
        """Give the path of `sessions.md`."""
        return f"{self.identity.task_root_relative}/.memory/{NAME}"


def there(call: Call, request: Request) -> There:
    """Find the directory that adopt or bind names (T20, T23, T24)."""
    name = request.task or ""
    path = _path(call, name)
    found = taskfiles.identity_of(call.held.ground, path)
    if isinstance(found, Identity) and found.project != call.standing.project:
        raise _mismatch("project")
    if request.operation == "bind" and not isinstance(found, Identity):
        raise refuse(
            "TASK_IDENTITY_BINDING_MISMATCH",
            "the directory has no identity of the second version",
            hint="adopt it: its files are kept as they are",
            next_call=next_call(
                "memory_task_admit_v2",
                {"operation": "adopt", "task": name, **call.target_arguments()},
                fill=["instruction"],
            ),
        )
    if found is not None:
        _require_same(request, found)
    return There(path=path, found=found)


def siblings(call: Call, kind: str, segment: str, task_id: str) -> list[str]:
    """Name what stands beside a directory of this name and takes it (T22)."""
    names = taskfiles.names(call.held.ground, kind)
    wanted = {directory.fold(one) for one in (segment, f"{segment}--{task_id[:8]}")}
    return [
        one
        for one in names
        if directory.fold(one) in wanted and not _is_of(call, f"{kind}/{one}", task_id)
    ]


def new(call: Call, request: Request, ingress: Ingress, path: str) -> Plan:
    """Plan a new task at a path."""
    known = taskfiles.read(call.held.ground, f"{path}/{identity.TASK_FILE}")
    aliases = request.aliases
    if aliases is None:
        aliases = _aliases_of(known)
    made = _identity(call, ingress, path, request.display_name or "", aliases)
    overview = f"{path}/{asking.overview_name(ingress.task_kind, ingress.entry_variant)}"
    if request.overview is None:
        raise _no_overview()
    files = [
        PlannedFile(path=f"{path}/{identity.TASK_FILE}", phase=IDENTITY, data=made.render()),
        PlannedFile(path=overview, phase=OVERVIEW, data=request.overview),
    ]
    if ingress.entry_variant == "product-provided":
        if request.product is None:
            raise _no_overview("productSource")
        product = PlannedFile(path=f"{path}/{asking.PRODUCT}", phase=OVERVIEW, data=request.product)
        files.append(product)
    sessions = _sessions(made, ingress)
    files.append(PlannedFile(path=f"{path}/.memory/{NAME}", phase=CP_STATE, data=sessions))
    written = taskfiles.read(call.held.ground, f"{path}/.memory/{NAME}")
    return Plan(
        identity=made,
        files=tuple(files),
        overview=overview,
        needs_block=written is not None and not view.has_block(written),
    )


def known(
    call: Call, request: Request, ingress: Ingress, place: There, *, is_settled: bool
) -> Plan:
    """Plan what is missing of a task that is there; `is_settled` is one that needs nothing."""
    ground, path = call.held.ground, place.path
    made, files = _identity_files(call, request, ingress, place)
    overview = _overview(call, ingress, place)
    has_overview = taskfiles.read(ground, overview) is not None
    if has_overview:
        files.append(PlannedFile(path=overview, phase=OVERVIEW, data=None))
    elif request.overview is not None:
        files.append(PlannedFile(path=overview, phase=OVERVIEW, data=request.overview))
    elif not is_settled or ingress.entry_variant == "change":  # a change is told in words
        raise _no_overview()
    sessions = f"{path}/.memory/{NAME}"
    written = taskfiles.read(ground, sessions)
    files.append(
        PlannedFile(
            path=sessions,
            phase=CP_STATE,
            data=_sessions(made, ingress) if written is None else None,
        )
    )
    return Plan(
        identity=made,
        files=tuple(files),
        overview=overview,
        needs_block=written is not None and not view.has_block(written),
        is_overview_ignored=has_overview and request.overview is not None,
    )


def _path(call: Call, name: str) -> str:
    kind, slash, segment = name.partition("/")
    if slash and kind in directory.KINDS and "/" not in segment:
        found = [one for one in call.survey().candidates if one.relative_path == name]
        if found:
            return name
    if identity.is_task_id(name):
        return call.locate(name)[1]
    return survey.locate(name, call.survey()).relative_path


def _identity_files(
    call: Call, request: Request, ingress: Ingress, place: There
) -> tuple[Identity, list[PlannedFile]]:
    found, path = place.found, place.path
    ground = call.held.ground
    if isinstance(found, Identity):
        first = taskfiles.read(ground, f"{path}/{identity.V2_FILE}")
        name = identity.TASK_FILE if first is None else identity.V2_FILE
        if first is None or not _adopts_first(ground, path):
            return found, [PlannedFile(path=f"{path}/{name}", phase=IDENTITY, data=None)]
        return found, _second_files(ground, path, found, is_kept=True)
    if found is None:
        made = _identity(
            call, ingress, path, request.display_name or place.display_name, request.aliases or ()
        )
        return made, [
            PlannedFile(path=f"{path}/{identity.TASK_FILE}", phase=IDENTITY, data=made.render())
        ]
    made = shape.seal(
        _identity(call, ingress, path, found.display_name, found.aliases).replace(
            task_id=found.task_id,
            created_at=found.created_at,
            identity_digest="",
        )
    )
    return made, _second_files(ground, path, made, is_kept=False)


def _second_files(ground: Ground, path: str, made: Identity, *, is_kept: bool) -> list[PlannedFile]:
    first = taskfiles.read(ground, f"{path}/{identity.TASK_FILE}") or b""
    note: bytes | None = identity.migration(first, made.render(), made.task_id)
    if is_kept and taskfiles.read(ground, f"{path}/{identity.MIGRATION_FILE}") is not None:
        note = None
    return [
        PlannedFile(
            path=f"{path}/{identity.V2_FILE}",
            phase=IDENTITY,
            data=None if is_kept else made.render(),
        ),
        PlannedFile(path=f"{path}/{identity.MIGRATION_FILE}", phase=IDENTITY, data=note),
    ]


def _adopts_first(ground: Ground, path: str) -> bool:
    """Tell whether the first identity is still beside the second, whose note may be missing."""
    return taskfiles.read(ground, f"{path}/{identity.TASK_FILE}") is not None


def _identity(
    call: Call, ingress: Ingress, path: str, name: str, aliases: tuple[str, ...]
) -> Identity:
    return shape.seal(
        Identity(
            aliases=aliases,
            created_at=ingress.issued_at,
            display_name=name,
            entry_variant=ingress.entry_variant,
            project=call.standing.project,
            project_root_identity_digest=call.standing.root_identity,
            task_id=identity.task_id_of(ingress.ingress_key),
            task_kind=path.partition("/")[0],
            task_root_relative=path,
        )
    )


def _overview(call: Call, ingress: Ingress, place: There) -> str:
    """Name the overview of a task that is there: a change has its own, else the one it has."""
    by_variant = asking.overview_name(place.kind, ingress.entry_variant)
    if ingress.entry_variant == "change":
        return f"{place.path}/{by_variant}"
    names = [by_variant]
    if isinstance(place.found, Identity):
        names.insert(0, asking.overview_name(place.kind, place.found.entry_variant))
    for name in (*names, *OVERVIEWS):
        if taskfiles.read(call.held.ground, f"{place.path}/{name}") is not None:
            return f"{place.path}/{name}"
    return f"{place.path}/{names[0]}"


def _sessions(made: Identity, ingress: Ingress) -> bytes:
    return view.new(
        display_name=made.display_name,
        task_id=made.task_id,
        admission_id=ingress.admission_id,
        route_key=ingress.route_key,
        project=made.project,
    )


def _aliases_of(data: bytes | None) -> tuple[str, ...]:
    try:
        found = None if data is None else identity.parse(data)
    except identity.Invalid:
        return ()  # it is told as drift, with its digest
    return found.aliases if isinstance(found, Identity) else ()


def _is_of(call: Call, path: str, task_id: str) -> bool:
    try:
        data = taskfiles.read(call.held.ground, f"{path}/{identity.TASK_FILE}")
        found = None if data is None else identity.parse(data)
    except (identity.Invalid, AmuxError):
        return False
    return found is not None and found.task_id == task_id


def _require_same(request: Request, found: Identity | FirstIdentity) -> None:
    name = request.display_name
    if name is not None and name_key(name) != name_key(found.display_name):
        raise _mismatch("displayName")
    if request.aliases is not None and tuple(request.aliases) != found.aliases:
        raise _mismatch("aliases")


def _mismatch(field: str) -> AmuxError:
    return Refused(
        reason="TASK_IDENTITY_BINDING_MISMATCH",
        message="the task is known under another identity",
        hint="leave displayName and aliases out: those of the identity stay",
        details={"field": field},
    ).error()


def _no_overview(argument: str = "overview") -> AmuxError:
    return refuse(
        "TASK_ADMISSION_OVERVIEW_INVALID",
        "the task has no such text yet, and none was given",
        hint=f"give {argument} as what the person wants, in words",
        argument=argument,
    )
