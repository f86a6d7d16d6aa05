"""Every use case of the Hub: admit the caller, then hand over.

Rule 1: each method is two statements: who may, then what is done.
Rule 2: settings are saved at once and are in force from the next start (M6).
"""

from collections.abc import Callable
from dataclasses import dataclass

from amux.core.identity import PeerActor
from amux.core.path import DocPath, PathPrefix
from amux.hub import settings as switches
from amux.hub.access import Access
from amux.hub.settings import Settings, SettingsFile
from amux.memory.document import Range, Slice
from amux.memory.search import Found, Query
from amux.memory.service import Checked, Forgotten, Listing, Memory, Steps, Written


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a Hub is: constant while it runs."""

    version: str
    pid: int
    root: str
    socket: str
    platform: dict[str, object]


class Hub:
    """One memory root, as its callers may use it."""

    def __init__(
        self,
        *,
        about: About,
        access: Access,
        memory: Memory,
        settings_file: SettingsFile,
        effective: Settings,
        stop: Callable[[], None],
    ) -> None:
        self.about = about
        self._access = access
        self._memory = memory
        self._settings_file = settings_file
        self._effective = effective
        self._stop = stop

    def search(
        self, actor: PeerActor, query: Query, prefix: PathPrefix, limit: int
    ) -> Steps[Found]:
        """Find documents."""
        grant = self._access.data(actor)
        return self._memory.search(grant.scope, query, prefix, limit)

    def get(self, actor: PeerActor, path: DocPath, part: Range) -> Steps[Slice]:
        """Read a part of a document."""
        grant = self._access.data(actor)
        return self._memory.get(grant.scope, path, part)

    def upsert(
        self,
        actor: PeerActor,
        path: DocPath,
        data: bytes,
        expected: str,
        *,
        allow_secret_like: bool = False,
    ) -> Written:
        """Replace or create a document; only a person vouches for what is shaped like a secret."""
        grant = self._access.data(actor)
        return self._memory.upsert(
            grant.scope,
            path,
            data,
            expected,
            allow_secret_like=allow_secret_like and grant.may_vouch,
        )

    def forget(self, actor: PeerActor, path: DocPath, expected: str) -> Forgotten:
        """Remove a document."""
        grant = self._access.data(actor)
        return self._memory.forget(grant.scope, path, expected)

    def list(self, actor: PeerActor, prefix: PathPrefix, after: str) -> Steps[Listing]:
        """List documents."""
        grant = self._access.data(actor)
        return self._memory.list(grant.scope, grant.principal, prefix, after)

    def check(self, actor: PeerActor) -> Checked:
        """List the files that are no documents."""
        grant = self._access.data(actor)
        return self._memory.check(grant.scope)

    def discard(self, actor: PeerActor, path: str) -> None:
        """Remove one file that is no document."""
        grant = self._access.data(actor)
        self._memory.discard(grant.scope, path)

    def set(self, actor: PeerActor, name: str, text: str) -> dict[str, object]:
        """Save one switch."""
        self._access.administrator(actor)
        return self._save(name, text)

    def status(self, actor: PeerActor) -> dict[str, object]:
        """Tell what this Hub is, and its switches as saved and as in force."""
        self._access.administrator(actor)
        return self._describe()

    def stop(self, actor: PeerActor) -> dict[str, object]:
        """End this Hub once its answers are out."""
        self._access.administrator(actor)
        return self._end()

    def _save(self, name: str, text: str) -> dict[str, object]:
        saved = switches.changed(self._settings_file.load(), name, text)
        self._settings_file.save(saved)
        return {
            "name": name,
            "saved": saved.value(name),
            "effective": self._effective.value(name),
            "restart_due": saved != self._effective,
        }

    def _describe(self) -> dict[str, object]:
        saved = self._settings_file.load()
        return {
            "version": self.about.version,
            "pid": self.about.pid,
            "root": self.about.root,
            "socket": self.about.socket,
            "settings": {
                name: {"saved": saved.value(name), "effective": self._effective.value(name)}
                for name in switches.NAMES
            },
            "restart_due": saved != self._effective,
            "platform": self.about.platform,
        }

    def _end(self) -> dict[str, object]:
        self._stop()
        return {"stopping": True, "pid": self.about.pid}
