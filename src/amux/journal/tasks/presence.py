"""Where the session of a call stands now: project, roots, layout, context, route (T11, T12).

Rule 1: all of it is looked at anew by each authority call; nothing is remembered but the epoch
        that this process renewed.
"""

from amux.core import canonical
from amux.disk import glance, regular
from amux.disk.ground import Ground
from amux.journal.call import readplan
from amux.journal.call.errand import Errand
from amux.journal.ground import layouttext
from amux.journal.ground.layout import PROJECT, PROJECT_MODE
from amux.journal.ledger import shape
from amux.journal.ledger.meta import Meta
from amux.journal.ledger.record import Record
from amux.journal.ledger.shape import Misshapen
from amux.journal.store import root
from amux.journal.tasks.ingress import Session
from amux.journal.tasks.projectlease import NO_LAYOUT, Standing

LAYOUT = "layout.json"
_LAYOUT_MAX_BYTES = 64 * 1024


def standing(errand: Errand, known: Meta, record: Record | None) -> Standing:
    """Say where a session stands; `record` is what the ledger has of it."""
    session = None if record is None else session_of(record)
    layout, earlier = layouts(errand)
    target = errand.target
    return Standing(
        project=target.project,
        active_root=target.active_root,
        physical_root=glance.real(target.active_root),
        root_identity=known.root_identity,
        layout_identity=layout,
        earlier_layouts=earlier,
        session=errand.session_digest,
        agent=errand.agent,
        context_epoch=_epoch(errand, session),
        route_revision=1 if session is None else session.route_revision,
        generation=known.generation,
    )


def session_of(record: Record) -> Session:
    """Read what the ledger knows of a session, or refuse the record as damaged."""
    try:
        return shape.decode(Session, record.body)
    except Misshapen as error:
        raise record.corrupt("body") from error


def _epoch(errand: Errand, session: Session | None) -> str:
    """Give the context epoch of the session (J51)."""
    known = errand.book.epoch(errand.session_digest)
    if known is not None:
        return known
    return readplan.first_epoch(errand.session_digest) if session is None else session.context_epoch


def layouts(errand: Errand) -> tuple[str, frozenset[str]]:
    """Name `layout.json` as it is, and as it was before our own hand completed it (J15)."""
    base = Ground.open(errand.target.base, (root.FOLDER,), uid=errand.around.uid)
    if base is None:
        return NO_LAYOUT, frozenset()
    with base:
        found = regular.read(base.folder, LAYOUT, max_bytes=_LAYOUT_MAX_BYTES)
    if found is None:
        return NO_LAYOUT, frozenset()
    present = canonical.digest(found.data)
    if errand.target.layout.kind != PROJECT:
        return present, frozenset()
    project = errand.target.project
    earlier = set()
    if found.data == layouttext.kept(None, PROJECT_MODE, project):
        earlier.add(NO_LAYOUT)
    value = canonical.parsed(found.data)
    if isinstance(value, dict) and value.get("project") == project:
        del value["project"]
        earlier.add(canonical.digest(canonical.encode(value) + b"\n"))
    return present, frozenset(earlier)
