"""The ingress of a call: of its own words, named by it, or the only one that fits (T15 to T18).

Rule 1: nothing is written here; what a call's words make is written once the call is taken.
Rule 2: the same words go on with what they started while that stands, and else ask anew.
"""

from contextlib import suppress
from typing import TypeVar

from amux.errors import Corrupt
from amux.journal.admission import asking
from amux.journal.admission import request as requests
from amux.journal.admission.planning import There
from amux.journal.admission.request import Request
from amux.journal.ledger import shape
from amux.journal.machine import Refused
from amux.journal.tasks import ingress
from amux.journal.tasks.authority import Call
from amux.journal.tasks.ingress import Ingress, Registered, Use

T = TypeVar("T")
_REF_PREFIX = "ingress-"
_MIN_HEX = 16


def hear(call: Call, request: Request, place: There | None) -> tuple[Ingress, Registered | None]:
    """Give the ingress of a call, and what is to be written if its own words make it."""
    if request.ingress_ref is not None:
        return _named(call, request.ingress_ref), None
    if request.instruction is None:
        pairs = [
            (one, use(call, one))
            for one in _all(call)
            if one.session_digest == call.standing.session and one.project == call.standing.project
        ]
        chosen = ingress.choose(pairs, request.digest, call.errand.now)
        if isinstance(chosen, Refused):
            raise chosen.error()
        return chosen, None
    asked = _asked(call, request, request.instruction, place)
    key = ingress.key_of(asked, call.standing)
    known = read(call, ingress.ref_of(key))
    decision = ingress.register(asked, call.session, known, call.standing, call.errand.now)
    if isinstance(decision, Refused):
        raise decision.error()
    return decision.state.ingress, decision.state


def _asked(call: Call, request: Request, instruction: str, place: There | None) -> ingress.Asked:
    kind = (request.kind or "") if place is None else place.kind
    name = (request.display_name or "") if place is None else place.display_name
    variant = asking.variant(request.operation, kind, request.variant)
    if isinstance(variant, Refused):
        raise variant.error()
    digest = ingress.instruction_digest(instruction)

    def with_event(event: str) -> ingress.Asked:
        return requests.asked(
            request, instruction, kind=kind, variant=variant, name=name, event=event
        )

    if request.event is not None or place is None:
        return with_event(request.event or ingress.default_event(digest))

    def ref(event: str) -> str:
        return ingress.ref_of(ingress.key_of(with_event(event), call.standing))

    used = set(call.ledger.keys("use"))
    event = ingress.numbered_event(
        digest, lambda event: ref(event) in used, lambda event: _stands(call, ref(event))
    )
    return with_event(event)


def _stands(call: Call, ref: str) -> bool:
    """Tell whether the words of an ingress still stand for what they started (T15)."""
    found = call.ledger.read("use", ref)
    if found is None:
        return False
    state = call.load(_decoded(Use, found.body, "use").task_id).state
    if state is None or state.is_foreign(call.standing) or state.admission.ingress_ref != ref:
        return False
    owner = state.owner
    is_own = owner is not None and owner.is_active and owner.session_digest == call.standing.session
    return is_own or not state.admission.is_finalized


def read(call: Call, ref: str) -> Ingress | None:
    """Read an ingress by its full name."""
    found = call.ledger.read("ingress", ref)
    return None if found is None else _decoded(Ingress, found.body, "ingress")


def use(call: Call, found: Ingress) -> Use | None:
    """Read what an ingress has started."""
    known = call.ledger.read("use", found.ingress_ref)
    return None if known is None else _decoded(Use, known.body, "use")


def _named(call: Call, given: str) -> Ingress:
    """Give the ingress that a reference, or the start of its digits, names."""
    digits = given.removeprefix(_REF_PREFIX).lower()
    hits = []
    if len(digits) >= _MIN_HEX and not set(digits) - set("0123456789abcdef"):
        hits = [one for one in call.ledger.keys("ingress") if one.startswith(_REF_PREFIX + digits)]
    found = read(call, hits[0]) if len(hits) == 1 else None
    if found is None:
        raise Refused(
            reason="TASK_ADMISSION_INGRESS_STATE_UNAVAILABLE",
            message="no such request is noted",
            hint="give the sentence of the person who asks as instruction",
        ).error()
    return found


def _all(call: Call) -> list[Ingress]:
    found = []
    for key in call.ledger.keys("ingress"):
        with suppress(Corrupt):
            one = read(call, key)
            if one is not None:
                found.append(one)
    return found


def _decoded(kind: type[T], body: object, what: str) -> T:
    try:
        return shape.decode(kind, body)
    except shape.Misshapen as error:
        raise ingress.drift(what).error() from error
