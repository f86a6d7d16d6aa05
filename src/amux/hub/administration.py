"""What the administrator does, and who binds sessions: the use cases beside the documents.

Rule 1: settings are saved at once and are in force from the next start (M6).
Rule 2: one way in for the Hub's socket and for a command without a running Hub (M47).
Rule 3: every call leaves a line; a token's text is in an answer once, and in no line ever, not
        even where somebody gives one for a name.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from amux.core.identity import Actor
from amux.errors import NotFound
from amux.hub import history
from amux.hub import settings as switches
from amux.hub.access import Access
from amux.hub.audit import Audit
from amux.hub.gate import Gate
from amux.hub.history import Wanted
from amux.hub.people import People
from amux.hub.saved import Saved
from amux.hub.sessions import Sessions
from amux.hub.settings import Settings

Given: TypeAlias = Mapping[str, object]
Plain: TypeAlias = dict[str, object]
LISTED_MAX = 500  # rows of one answer; the newest first


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a Hub is: constant while it runs."""

    version: str
    hub_id: str
    pid: int
    root: str
    socket: str
    platform: dict[str, object]


class Administration:
    """The calls that are not about documents."""

    def __init__(
        self,
        *,
        about: About,
        gate: Gate,
        access: Access,
        audit: Audit,
        settings: Saved[Settings],
        effective: Settings,
        people: People,
        sessions: Sessions,
        now: Callable[[], datetime],
        stop: Callable[[], None],
    ) -> None:
        self.about = about
        self._now = now
        self._gate = gate
        self._access = access
        self._audit = audit
        self._settings = settings
        self._effective = effective
        self._people = people
        self._sessions = sessions
        self._stop = stop
        # Where others reach the Hub: told by whoever opens the sockets.
        self.reach: Plain = {"listen": [], "shared_socket": None}
        # Who runs the Hub, who administers it, and whoever has a memory: three ways in.
        self._operator: dict[str, Callable[[Given], Plain]] = {
            "settings": self._set,
            "status": self._status,
            "stop": self._end,
        }
        self._administrator: dict[str, Callable[[Given], Plain]] = {
            "principal_add": lambda given: people.add(_text(given, "principal")),
            "principal_disable": lambda given: people.disable(_text(given, "principal")),
            "principal_alias": self._alias,
            "principal_list": lambda _: _listed("principals", people.principals()),
            "token_create": self._create_token,
            "token_list": lambda _: _listed("tokens", people.tokens()),
            "token_revoke": lambda given: people.revoke_token(_text(given, "id")),
            "session_list": lambda _: _listed("sessions", sessions.known()),
            "audit": self._read_audit,
        }
        self._binder: dict[str, Callable[[Actor, Given], Plain]] = {
            "bind": self._bind,
            "renew": lambda actor, given: sessions.renew(
                actor, _text(given, "session"), is_resumed=bool(given.get("resume"))
            ),
            "end": lambda actor, given: sessions.end(actor, _text(given, "session")),
        }

    @property
    def is_per_principal(self) -> bool:
        """Tell whether each principal works in a scope of its own now."""
        return self._effective.isolation_policy == "per_principal"

    def call(self, actor: Actor, name: str, given: Given) -> Plain:
        """Make one call for an actor that may."""
        about = {"subject": _subject(given)}
        # A reader of the trail is told of once; its pages would otherwise never end.
        is_quiet = name == "audit" and bool(given.get("after"))
        with self._gate.administering(actor, name, about, only_refusals=is_quiet):
            made = self._make(actor, name, given)
            if name == "token_create":
                about["made"] = f"token:{made['id']}"
            return made

    def _make(self, actor: Actor, name: str, given: Given) -> Plain:
        if name in self._operator:
            self._access.operator(actor)
            return self._operator[name](given)
        if name in self._administrator:
            self._access.administrator(actor)
            return self._administrator[name](given)
        if name in self._binder:
            return self._binder[name](actor, given)
        raise NotFound("there is no such call")

    def _set(self, given: Given) -> Plain:
        name, text = _text(given, "name"), _text(given, "value")
        saved = self._settings.change(lambda known: switches.changed(known, name, text))
        return {
            "name": name,
            "saved": saved.value(name),
            "effective": self._effective.value(name),
            "restart_due": saved != self._effective,
        }

    def _status(self, _given: Given) -> Plain:
        saved = self._settings.value
        return {
            "version": self.about.version,
            "hub_id": self.about.hub_id,
            "pid": self.about.pid,
            "root": self.about.root,
            "socket": self.about.socket,
            **self.reach,
            "settings": {
                name: {"saved": saved.value(name), "effective": self._effective.value(name)}
                for name in switches.NAMES
            },
            "restart_due": saved != self._effective,
            "platform": self.about.platform,
        }

    def _end(self, _given: Given) -> Plain:
        self._stop()
        return {"stopping": True, "pid": self.about.pid}

    def _alias(self, given: Given) -> Plain:
        if given.get("remove"):
            return self._people.unalias(_text(given, "alias"), _text(given, "principal"))
        return self._people.alias(_text(given, "principal"), _text(given, "alias"))

    def _create_token(self, given: Given) -> Plain:
        return self._people.create_token(
            kind=_text(given, "kind"),
            principal=_text(given, "principal"),
            acts_for=_text(given, "acts_for"),
            label=_text(given, "label"),
            days=_number(given, "days") or 0,
        )

    def _read_audit(self, given: Given) -> Plain:
        wanted = Wanted(
            principal=_text(given, "principal"),
            path=_text(given, "path"),
            session=_text(given, "session"),
            since=history.since(_text(given, "since"), self._now()),
        )
        page = self._audit.read(wanted, _number(given, "after") or 0)
        return {"lines": page.lines, "after": page.after, "more": page.is_full}

    def _bind(self, actor: Actor, given: Given) -> Plain:
        return self._sessions.bind(
            actor,
            session=_text(given, "session"),
            agent=_text(given, "agent"),
            isolation=_text(given, "isolation"),
            protocol_version=_number(given, "protocol_version") or 0,
            is_delegated=bool(given.get("delegate")),
            verbs=_text(given, "verbs"),
            uid=_number(given, "uid"),
        )


# What of a call is told in its line, where it is a name and not, by mistake, a secret.
_SUBJECTS = (
    "principal", "alias", "kind", "acts_for", "id", "session", "agent", "isolation", "verbs",
    "name", "value",
)  # fmt: skip
_PLAIN = re.compile(r"(?!.*amux_)[A-Za-z0-9][A-Za-z0-9 ,.:_-]{0,127}")


def _listed(name: str, rows: list[dict[str, object]]) -> Plain:
    return {name: rows[:LISTED_MAX], "truncated": len(rows) > LISTED_MAX}


def _subject(given: Given) -> str:
    told = ((key, _text(given, key)) for key in _SUBJECTS if given.get(key))
    return " ".join(f"{key}={text if _PLAIN.fullmatch(text) else '?'}" for key, text in told)


def _text(given: Given, name: str) -> str:
    return str(given.get(name, ""))


def _number(given: Given, name: str) -> int | None:
    found = given.get(name)
    return found if isinstance(found, int) else None
