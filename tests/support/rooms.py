"""The Hub's own rooms on a real folder, with a clock that a test moves."""

import itertools
from datetime import UTC, datetime, timedelta
from pathlib import Path

from amux.core.identity import Actor, Caller, Grant
from amux.disk.trail import Trail
from amux.disk.tree import Root
from amux.hub import bindings, credentials, settings
from amux.hub.access import Access
from amux.hub.audit import Audit
from amux.hub.gate import Gate
from amux.hub.people import People
from amux.hub.rates import Rates
from amux.hub.sessions import Sessions
from amux.threads import Threads

OWNER, BOB, EVE = 1000, 1001, 1002
START = datetime(2026, 1, 31, 12, tzinfo=UTC)


class Rooms:
    """Everything but documents and sockets; `again` is a restart on the same root."""

    def __init__(
        self, home: Path, *, policy: str = "shared", is_on: bool = True, hub_id: str = "a" * 16
    ) -> None:
        (home / "hub").mkdir(parents=True, exist_ok=True)
        self.home = home
        self.root = Root.open(str(home))
        self.now = START
        self.clock = 0.0
        self._chance = itertools.count(1)
        self.settings = settings.opened(self.root)
        for name, value in ((settings.ENABLED, str(is_on).lower()), (settings.POLICY, policy)):
            self.settings.change(lambda known, n=name, v=value: settings.changed(known, n, v))
        self.identity = credentials.opened(self.root)
        self.bindings = bindings.opened(self.root)
        self.access = Access(
            owner_uid=OWNER,
            hub_id=hub_id,
            effective=self.settings.value,
            identity=self.identity,
            now=lambda: self.now,
        )
        self.people = People(
            identity=self.identity,
            owner_uid=OWNER,
            now=lambda: self.now,
            random_bytes=self.random_bytes,
        )
        self.sessions = Sessions(
            access=self.access,
            identity=self.identity,
            bindings=self.bindings,
            now=lambda: self.now,
            random_bytes=self.random_bytes,
        )
        self._opened: list[Trail] = []
        self._threads: list[Threads] = []

    def again(self, *, policy: str = "shared", is_on: bool = True) -> "Rooms":
        """Open the same root as the next process of the Hub does."""
        found = Rooms(self.home, policy=policy, is_on=is_on)
        found.now, found._chance = self.now, self._chance
        return found

    def random_bytes(self, count: int) -> bytes:
        return next(self._chance).to_bytes(4, "big").rjust(count, b"\7")

    def later(self, **delta: float) -> None:
        self.now += timedelta(**delta)

    def audit(self, *, max_bytes: int = 1 << 20, reserve_bytes: int = 64 * 1024) -> Audit:
        trail = Trail(
            self.root, "hub/audit.jsonl", max_bytes=max_bytes, parts_kept=5,
            reserve_bytes=reserve_bytes,
        )  # fmt: skip
        threads = Threads(1, name="audit")
        self._opened.append(trail)
        self._threads.append(threads)
        return Audit(trail, now=lambda: self.now, run=threads.run)

    def gate(self, audit: Audit) -> Gate:
        return Gate(access=self.access, rates=Rates(), audit=audit, clock=lambda: self.clock)

    def close(self) -> None:
        for threads in self._threads:
            threads.__exit__()
        for trail in self._opened:
            trail.close()
        self.root.close()

    # --- who calls ---

    def actor(self, uid: int | None = OWNER, token: str | None = None, **more: str) -> Actor:
        return self.access.authenticate(Caller(uid=uid, token=token, **more))

    def grant(self, actor: Actor) -> Grant:
        return self.access.data(actor, "read")

    def known(self, name: str, uid: int) -> None:
        """Make a principal known by its uid."""
        self.people.add(name)
        self.people.alias(name, f"unix:{uid}")

    def token(self, kind: str = "person", principal: str = "", **more: object) -> str:
        given = {"acts_for": "", "label": "", "days": 0} | more
        made = self.people.create_token(kind=kind, principal=principal, **given)
        return str(made["token"])

    def bind(self, actor: Actor, session: str = "s1", **more: object) -> dict[str, object]:
        """Bind a session with a credential."""
        given: dict[str, object] = {
            "agent": "codex", "isolation": "none", "protocol_version": 1, "is_delegated": True,
            "verbs": "", "uid": None,
        } | more  # fmt: skip
        return self.sessions.bind(actor, session=session, **given)
