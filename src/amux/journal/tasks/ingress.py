"""What a person asked for, noted without the words: the ingress (T11, T14 to T18).

Rule 1: it never changes, and its key follows from what was asked, by whom, of which root; callers
        supply no key.
Rule 2: the instruction is hashed and never kept. This proves consistency, not that a person spoke.
Rule 3: an ingress starts one admission, once, within its day; what it has started may always be
        finished by the same request.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import ClassVar

from amux.core import canonical
from amux.core.value import Value
from amux.journal.ledger import shape
from amux.journal.machine import Accepted, Refused
from amux.journal.moment import Moment
from amux.journal.tasks import projectlease
from amux.journal.tasks.projectlease import ProjectLease, Standing

POLICY_REVISION = 1
LIFETIME = timedelta(hours=24)
KEPT_AFTER_EXPIRY = timedelta(days=7)  # T9
MAX_EVENTS = 256
ORIGINS = ("agent", "host-hook")
_EVENT_CHARS = 16
_REF_CHARS = 40


class Ingress(Value):
    """One sentence of a person, as what it asked for."""

    SCHEMA: ClassVar[str] = "AdmissionIngressSnapshotV1"
    DIGEST: ClassVar[str] = "snapshot_digest"

    ingress_ref: str
    ingress_key: str
    project: str
    agent: str
    session_digest: str
    origin: str
    source_event_id: str
    instruction_digest: str
    instruction_chars: int
    route_key: str
    task_kind: str
    entry_variant: str
    route_revision: int
    context_epoch: str
    locale: str | None
    policy_revision: int
    project_lease: ProjectLease
    issued_at: str
    expires_at: str
    snapshot_digest: str = ""

    @property
    def admission_id(self) -> str:
        """Name the admission that it starts (T30)."""
        return f"admission-{self.ingress_key[:_REF_CHARS]}"

    def is_expired(self, now: Moment) -> bool:
        """Tell whether it may start nothing any more."""
        return now.iso > self.expires_at


class Use(Value):
    """That an ingress has started an admission, and which."""

    SCHEMA: ClassVar[str] = "AdmissionIngressUseV1"

    ingress_ref: str
    task_id: str
    task_root_relative: str
    operation: str
    request_digest: str
    at: str


class Session(Value):
    """What the ledger knows of a session."""

    agent: str
    route_revision: int
    context_epoch: str
    locale: str | None
    events: Mapping[str, str]
    """Which instruction each message of a person held, by digest; the newest last."""
    order: tuple[str, ...]
    """The messages, oldest first: an object has no order of its own."""


class Asked(Value):
    """What an ingress is to say."""

    instruction_digest: str
    instruction_chars: int
    task_kind: str
    entry_variant: str
    route_key: str
    source_event_id: str
    origin: str = "agent"
    locale: str | None = None


class Registered(Value):
    """An ingress, and whether it was there before."""

    ingress: Ingress
    session: Session
    is_replayed: bool


def instruction_digest(text: str) -> str:
    """Name a sentence by its bytes, with plain newlines."""
    return canonical.digest(text.replace("\r\n", "\n").replace("\r", "\n"))


def default_event(digest: str, number: int = 0) -> str:
    """Name the message that held an instruction, where the host does not (T15)."""
    return digest[:_EVENT_CHARS] if not number else f"{digest[:_EVENT_CHARS]}.{number}"


def key_of(asked: Asked, standing: Standing) -> str:
    """Give the key of what is asked, by this session, of this root."""
    work_item = canonical.digest(
        {
            "entryVariant": asked.entry_variant,
            "routeKey": asked.route_key,
            "taskKind": asked.task_kind,
        }
    )
    return canonical.digest(
        {
            "agent": standing.agent,
            "instructionDigest": asked.instruction_digest,
            "policyRevision": POLICY_REVISION,
            "rootIdentityDigest": standing.root_identity,
            "sessionDigest": standing.session,
            "sourceEventId": asked.source_event_id,
            "workItemDigest": work_item,
        }
    )


def ref_of(key: str) -> str:
    """Name an ingress by its key."""
    return f"ingress-{key[:_REF_CHARS]}"


def register(
    asked: Asked, session: Session | None, known: Ingress | None, standing: Standing, now: Moment
) -> Accepted[Registered, None] | Refused:
    """Note what was asked; `known` is the ingress of this very key, if there is one (T16).

    `standing` has the route revision and context epoch that hold from this message on.
    """
    before = session or Session(
        agent=standing.agent,
        route_revision=1,
        context_epoch=standing.context_epoch,
        locale=None,
        events={},
        order=(),
    )
    if before.events.get(asked.source_event_id, asked.instruction_digest) != (
        asked.instruction_digest
    ):
        return Refused(
            reason="TASK_ADMISSION_INGRESS_STATE_MISMATCH",
            message="this message was registered with another instruction",
            hint="give each message of the person its own sourceEventId, or none",
            details={"sourceEventId": asked.source_event_id},
        )
    if known is not None:
        problem = altered(known, standing)
        if problem is not None:
            return problem
        return Accepted(
            state=Registered(ingress=known, session=before, is_replayed=True), result=None
        )
    key = key_of(asked, standing)
    made = shape.seal(
        Ingress(
            ingress_ref=ref_of(key),
            ingress_key=key,
            project=standing.project,
            agent=standing.agent,
            session_digest=standing.session,
            origin=asked.origin,
            source_event_id=asked.source_event_id,
            instruction_digest=asked.instruction_digest,
            instruction_chars=asked.instruction_chars,
            route_key=asked.route_key,
            task_kind=asked.task_kind,
            entry_variant=asked.entry_variant,
            route_revision=standing.route_revision,
            context_epoch=standing.context_epoch,
            locale=asked.locale,
            policy_revision=POLICY_REVISION,
            project_lease=projectlease.of_turn(standing, asked.source_event_id, now.iso),
            issued_at=now.iso,
            expires_at=now.later(LIFETIME).iso,
        )
    )
    return Accepted(
        state=Registered(ingress=made, session=_heard(before, asked, standing), is_replayed=False),
        result=None,
    )


def altered(known: Ingress, standing: Standing) -> Refused | None:
    """Refuse a snapshot that is not as it was made, or of another session (T17)."""
    asked = Asked(
        instruction_digest=known.instruction_digest,
        instruction_chars=known.instruction_chars,
        task_kind=known.task_kind,
        entry_variant=known.entry_variant,
        route_key=known.route_key,
        source_event_id=known.source_event_id,
    )
    lease = known.project_lease
    made_by = standing.replace(
        session=known.session_digest,
        agent=known.agent,
        root_identity=lease.root_identity_digest,
    )
    if (
        not shape.is_sealed(known)
        or key_of(asked, made_by) != known.ingress_key
        or ref_of(known.ingress_key) != known.ingress_ref
    ):
        return drift("ingress")
    if known.session_digest != standing.session:
        return Refused(
            reason="TASK_ADMISSION_HOST_SESSION_MISMATCH",
            message="another session was asked",
            hint="give the instruction of the person who asks you",
        )
    return None


def drift(what: str) -> Refused:
    """Refuse a snapshot or its use that somebody altered."""
    return Refused(
        reason="TASK_ADMISSION_INGRESS_STATE_DRIFT",
        message="what was noted of the request is not as it was made",
        hint="ask the person again, and give the words as instruction",
        details={"record": what},
    )


def startable(known: Ingress, use: Use | None, standing: Standing, now: Moment) -> Refused | None:
    """Say why an ingress may not start, or go on with, an admission (T17)."""
    problem = altered(known, standing)
    if problem is not None:
        return problem
    if use is not None and use.ingress_ref != known.ingress_ref:
        return drift("use")
    if use is None and known.is_expired(now):
        return Refused(
            reason="TASK_ADMISSION_INSTRUCTION_EXPIRED",
            message="the request is older than a day",
            hint="ask the person again, and give the words as instruction",
            details={"expiresAt": known.expires_at},
        )
    return None


def choose(
    of_session: Iterable[tuple[Ingress, Use | None]], request_digest: str, now: Moment
) -> Ingress | Refused:
    """Choose the ingress of a call that names none, of its session and project (T18)."""
    pairs = list(of_session)
    used = [one for one, use in pairs if use is not None and use.request_digest == request_digest]
    if len(used) == 1:
        return used[0]
    fresh = [one for one, use in pairs if use is None and not one.is_expired(now)]
    several = used or fresh
    if len(several) == 1:
        return several[0]
    if several:
        return Refused(
            reason="TASK_ADMISSION_INGRESS_INPUT_AMBIGUOUS",
            message="more than one request of this session could be meant",
            hint="give ingressRef, or the words as instruction",
            details={"candidates": sorted(one.ingress_ref for one in several)[:5]},
        )
    return Refused(
        reason="TASK_ADMISSION_INGRESS_STATE_UNAVAILABLE",
        message="no request of this session is noted",
        hint="give the sentence of the person who asks as instruction",
    )


def numbered_event(
    digest: str, is_used: Callable[[str], bool], stands: Callable[[str], bool]
) -> str:
    """Give the first `<digest>.n` that is unused, or the last that was, while it stands (T15).

    `stands` tells whether what an event has started is its task's present admission, with the
    owner that it made: only the last that was used can be that.
    """
    number = 1
    while is_used(default_event(digest, number)):
        number += 1
    last = default_event(digest, number - 1)
    return last if number > 1 and stands(last) else default_event(digest, number)


def renewed(before: Session | None, standing: Standing) -> Session:
    """Give the session as it is after a renewal."""
    if before is None:
        return Session(
            agent=standing.agent,
            route_revision=standing.route_revision,
            context_epoch=standing.context_epoch,
            locale=None,
            events={},
            order=(),
        )
    return before.replace(
        agent=standing.agent,
        route_revision=standing.route_revision,
        context_epoch=standing.context_epoch,
    )


def route_revision(given: int | None, session: Session | None) -> int | Refused:
    """Give the route revision that holds from now on; it only grows (T11)."""
    known = 1 if session is None else session.route_revision
    if given is None or given >= known:
        return given or known
    return Refused(
        reason="TASK_ROUTE_REVISION_STALE",
        message="the session is at a later route revision",
        hint="leave routeRevision out, or give the present one",
        details={"observed": known},
    )


def _heard(before: Session, asked: Asked, standing: Standing) -> Session:
    order = tuple(one for one in before.order if one != asked.source_event_id)
    order = (*order, asked.source_event_id)[-MAX_EVENTS:]
    events = {**before.events, asked.source_event_id: asked.instruction_digest}
    return (renewed(before, standing)).replace(
        locale=asked.locale or before.locale,
        events={one: events[one] for one in order},
        order=order,
    )
