"""The bytes of `layout.json`: made, or given the project's name, as J20 and J15 say.

Rule 1: what a person put there stays byte for byte; only the key `project` is added.
"""

from amux.core import canonical
from amux.journal.ground import layout
from amux.journal.ground.layout import PROJECT_MODE
from amux.journal.refusals import refuse
from amux.journal.text.jsonkey import Document

SCHEMA = "AmuxWorkspaceLayoutV1"


def kept(data: bytes | None, mode: str, project: str) -> bytes:
    """Give the bytes that keep a workspace's mode and, in the project layout, its name.

    `project` is the name that the project has now; empty for a namespace. Refuses as
    MEMORY_LAYOUT_INVALID or MEMORY_LAYOUT_CONFLICT. A file that has all of it, or that could only
    be written anew as a whole, is given back as it is.
    """
    if data is None:
        named = {"project": project} if mode == PROJECT_MODE else {}
        return canonical.encode({"mode": mode, "schemaVersion": SCHEMA, **named}) + b"\n"
    there = layout.parse(data)
    if there["mode"] != mode:
        raise conflict(str(there["mode"]))
    if mode != PROJECT_MODE or there.get("project"):
        return data
    document = Document.parse(data)
    added = document.with_value(project, "project") if document is not None else None
    if added is None:
        return data
    # Ours is canonical JSON; another's keys stay in their order.
    if _is_canonical(data, there):
        return canonical.encode({**there, "project": project}) + b"\n"
    return added


def conflict(mode: str) -> Exception:
    """Make the refusal of another mode than the one that is there."""
    return refuse(
        "MEMORY_LAYOUT_CONFLICT",
        "this workspace has another layout already",
        hint="leave --mode away, or choose another directory",
        mode=mode,
    )


def _is_canonical(data: bytes, value: object) -> bool:
    try:
        return canonical.encode(value) + b"\n" == data
    except ValueError:
        return False
