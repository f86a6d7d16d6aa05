"""The arguments of an admission, judged before anything is looked at (T22, T29, T30).

Rule 1: what can be refused without the disk is refused before the lock is asked for.
Rule 2: the digest of a request covers what it wants made, and no name that only locates.
"""

from amux.core import canonical
from amux.core.value import Value
from amux.journal.admission import asking
from amux.journal.call.errand import Errand
from amux.journal.ground.workspace import WORKSPACE_SCOPE
from amux.journal.machine import Refused
from amux.journal.refusals import refuse
from amux.journal.remark import Remark
from amux.journal.tasks import directory, ingress
from amux.journal.tasks.identity import MAX_NAME_CHARS
from amux.journal.text import locale, secretscan
from amux.journal.text.namekey import name_key

# What becomes text of the task, in its files (J11).
_WRITTEN = ("overview", "productSource", "displayName", "aliases", "routeKey")


class Request(Value):
    """What a call of `memory_task_admit_v2` asks for."""

    operation: str
    task: str | None
    instruction: str | None
    ingress_ref: str | None
    kind: str | None
    variant: str | None
    display_name: str | None
    segment: str
    """The directory name that the display name makes; empty where none was given."""
    aliases: tuple[str, ...] | None
    overview: bytes | None
    product: bytes | None
    route_key: str | None
    event: str | None
    locale: str | None
    acquires_owner: bool
    digest: str
    remarks: tuple[Remark, ...] = ()
    """What of its text looks like a secret, and may be none."""

    @property
    def is_admit(self) -> bool:
        """Tell whether it asks for a new task."""
        return self.operation == "admit"


def parse(errand: Errand) -> Request:
    """Judge the arguments of an admission."""
    found = errand.arguments
    operation = str(found.get("operation", "admit"))
    task, kind = errand.text("task"), errand.text("taskKind")
    name = errand.text("displayName")
    if operation == "admit" and task is not None:
        raise refuse(
            "TASK_ADMISSION_TASK_ID_CALLER_FORBIDDEN",
            "a new task gets its id from what was asked for",
            hint="leave task out; to take a task that is there, bind it",
        )
    if errand.target.scope == WORKSPACE_SCOPE:
        raise refuse(
            "TASK_ADMISSION_PROJECT_REQUIRED",
            "a task belongs to a project",
            hint="give project",
        )
    aliases = found.get("aliases")
    names = tuple(map(str, aliases)) if isinstance(aliases, list) else None
    segment = _segment(name)
    _require_distinct(name, names or ())
    variant = errand.text("entryVariant")
    if kind is not None and operation == "admit":
        _raise(asking.variant(operation, kind, variant))
    remarks = secretscan.scan({key: found[key] for key in _WRITTEN if key in found})
    overview, product = _text(errand, "overview"), _text(errand, "productSource")
    return Request(
        operation=operation,
        task=task,
        instruction=errand.text("instruction"),
        ingress_ref=errand.text("ingressRef"),
        kind=kind,
        variant=variant,
        display_name=name,
        segment=segment,
        aliases=names,
        overview=overview,
        product=product,
        route_key=errand.text("routeKey"),
        event=errand.text("sourceEventId"),
        locale=_locale(errand),
        acquires_owner=bool(found.get("acquireOwner", True)),
        remarks=tuple(remarks),
        digest=canonical.digest(
            {
                "operation": operation,
                "overview": _digest(errand, "overview"),
                "productSource": _digest(errand, "productSource"),
                "task": task,
            }
        ),
    )


def asked(
    request: Request, instruction: str, *, kind: str, variant: str, name: str, event: str
) -> ingress.Asked:
    """Say what the ingress of a request with words of its own notes."""
    return ingress.Asked(
        instruction_digest=ingress.instruction_digest(instruction),
        instruction_chars=len(instruction),
        task_kind=kind,
        entry_variant=variant,
        route_key=request.route_key or name_key(name),
        source_event_id=event,
        locale=request.locale,
    )


def _locale(errand: Errand) -> str | None:
    given = errand.text("locale")
    return None if given is None else locale.parse(given)


def _segment(name: str | None) -> str:
    if name is None:
        return ""
    if not name.strip():
        _raise(directory.segment(""))
    if len(name) > MAX_NAME_CHARS:
        raise refuse(
            "MEMORY_WRITER_ARGUMENT_TOO_LARGE",
            "the name of a task is too long",
            hint=f"give displayName in at most {MAX_NAME_CHARS} characters",
            argument="displayName",
            limit=MAX_NAME_CHARS,
        )
    return _raise(directory.segment(name))


def _raise(found: "str | Refused") -> str:
    if isinstance(found, Refused):
        raise found.error()
    return found


def _require_distinct(name: str | None, aliases: tuple[str, ...]) -> None:
    keys = [name_key(one) for one in (*([] if name is None else [name]), *aliases)]
    if len(set(keys)) != len(keys) or "" in keys:
        raise refuse(
            "MEMORY_WRITER_ARGUMENT_INVALID",
            "two names of the task are the same name, or one is blank",
            hint="give each alias once, and none that is the display name",
            argument="aliases",
        )


def _text(errand: Errand, name: str) -> bytes | None:
    """Give an argument as the file that it becomes: LF, one final newline."""
    text = errand.text(name)
    if text is None:
        return None
    body = text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")
    if not body.strip():
        raise refuse(
            "TASK_ADMISSION_OVERVIEW_INVALID",
            "the text is blank",
            hint=f"give {name} as what the person wants, in words",
            argument=name,
        )
    return body.encode("utf-8") + b"\n"


def _digest(errand: Errand, name: str) -> str | None:
    text = errand.text(name)
    return None if text is None else canonical.digest(text)
