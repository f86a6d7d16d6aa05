"""Two worlds that differ in one thing: in one of them alice exists.

Whatever bob can do, he must see the same bytes in both: then he has learnt no byte, no count and no
existence of anything that is hers, whatever he tried and whatever he already knew.
"""

import hashlib
import json
import re
import shutil
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from amux.core.identity import Scope, binding_of, hub_id_of
from amux.hub import bindings, credentials, tokens
from amux.hub.bindings import Bindings, BindRecord
from amux.hub.credentials import Identity
from amux.hub.tokens import Token
from tests.support.hub import RunningHub
from tests.support.mcp_lines import McpProcess
from tests.support.network import configure, token_file

ALICE_UID, BOB_UID = 23451, 23452  # nobody's on this machine; the kernel does not mind
SECRET = b"s" * 32  # of both Hubs, so that what one handed out is not strange to the other
BORN = datetime(2026, 1, 1, tzinfo=UTC)
MARKER = "zanzibarmarker"  # stands in every document of hers, and in no request of his
KNOWN = "quokkaword"  # stands there too, and he knows it
NOISE = (
    (re.compile(rb"amux_[0-9a-f]{12}_[A-Za-z0-9_-]{43}_[0-9a-f]{8}"), b"TOKEN"),
    (re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*(\+00:00)?"), b"TIME"),
    (re.compile(rb'(continuation\\*":\\*")[^"\\]+'), rb"\1CONTINUATION"),
    (re.compile(rb"[0-9]+ ms\b"), b"MS"),
)


def minted(number: int) -> tuple[str, str]:
    """Make a token that is the same in both worlds."""
    made = hashlib.sha512(b"%d" % number).digest()
    return tokens.mint(lambda count: made[:count] if count == 6 else made[6 : 6 + count])


def kept(number: int, principal: str, **more: object) -> Token:
    name, text = minted(number)
    token = Token(
        id=name, kind="person", principal=principal, digest=tokens.digest_of(text), created=BORN
    )
    return replace(token, **more)


@dataclass(slots=True)
class Loot:
    """What of hers bob has got hold of, by whatever way."""

    paths: list[str]
    revision: str
    prefix: str
    session: str
    principal: str
    alias: str
    binding: str
    tokens: dict[str, str]
    token_id: str
    cursor: str = ""
    continuations: list[str] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """List everything that could stand for her where a text is asked for."""
        sha = hashlib.sha256(self.principal.encode()).hexdigest()
        return [
            *self.paths[:2], self.prefix, self.session, self.principal, self.alias, self.binding,
            self.token_id, f"token:{self.token_id}", self.revision, self.cursor, sha,
            f"principal:{self.principal}", f"users/{sha}", "global", "local", KNOWN, "",
            *self.continuations,
        ]  # fmt: skip


class World:
    """One Hub with bob, the administrator, and perhaps alice."""

    def __init__(self, folder: Path, *, has_alice: bool) -> None:
        self.folder = folder
        self.home = folder / "hub-home"
        self.bob_home = folder / "bob"
        self.shared_socket = str(folder / "door" / "hub.sock")
        folder.mkdir(mode=0o755)
        self.bob_home.mkdir(mode=0o700)
        (folder / "door").mkdir(mode=0o755)
        configure(self.home, shared_socket=self.shared_socket, listen="127.0.0.1:0")
        (self.home / "hub").mkdir(mode=0o700)
        self._file("secret", SECRET)
        settings = {"memory_enabled": True, "isolation_policy": "per_principal"}
        self._file("settings.json", json.dumps(settings).encode())
        self._write("local", {"MEMORY.md": "the owner's", "notes/own.md": f"{KNOWN} of the owner"})
        self._write("bob", {"MEMORY.md": "bob's own", "notes/mine.md": "mine " * 2000})
        identity, records = self._bob(Identity(), Bindings())
        if has_alice:
            identity, records = self._alice(identity, records)
        self._file("identity.json", json.dumps(credentials.plain(identity)).encode())
        self._file("bindings.json", json.dumps(bindings.plain(records)).encode())
        self.bob = minted(1)[1]
        self.bob_agent = minted(2)[1]
        self.bob_binding = self.binding("bob")
        self.token_file = token_file(self.bob_home, self.bob)
        self.hub = RunningHub(self.home).start()
        assert self.hub.ask("status")["shared_socket"] == {"path": self.shared_socket, "open": True}

    @staticmethod
    def binding(principal: str) -> str:
        return binding_of(hub_id_of(SECRET), Scope(f"principal:{principal}"))

    def _file(self, name: str, data: bytes) -> None:
        file = self.home / "hub" / name
        file.write_bytes(data)
        file.chmod(0o600)

    def _write(self, principal: str, documents: dict[str, str]) -> None:
        place = self.home / "memory/users" / hashlib.sha256(principal.encode()).hexdigest()
        for name, text in documents.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text)

    def _bob(self, identity: Identity, records: Bindings) -> tuple[Identity, Bindings]:
        identity = identity.with_principal("bob").with_alias(f"unix:{BOB_UID}", "bob")
        identity = identity.with_token(kept(1, "bob"))
        return self._session(identity, records, 2, "bob", "s-bob", parent=kept(1, "bob").alias)

    def _alice(self, identity: Identity, records: Bindings) -> tuple[Identity, Bindings]:
        many = {f"plans/{n:03}-{'x' * 80}.md": f"{MARKER} {KNOWN} {n}" for n in range(80)}
        deep = {"notes/alice.md": f"# {MARKER}\n{KNOWN}\n", "plans/big.md": f"{MARKER} \n" * 3000}
        self._write("alice", {"MEMORY.md": f"{MARKER} {KNOWN}\n"} | many | deep)
        identity = identity.with_principal("alice").with_alias(f"unix:{ALICE_UID}", "alice")
        identity = identity.with_token(kept(11, "alice"))
        identity = identity.with_token(kept(12, "alice", revoked=BORN))
        identity = identity.with_token(kept(13, "alice", expires=BORN + timedelta(days=1)))
        parent = kept(11, "alice").alias
        return self._session(identity, records, 14, "alice", "s-alice", parent=parent)

    def _session(
        self, identity: Identity, records: Bindings, number: int, principal: str, name: str,
        *, parent: str,
    ) -> tuple[Identity, Bindings]:  # fmt: skip
        binding = self.binding(principal)
        token = kept(
            number, principal, kind="agent", session=name, binding=binding, parent=parent,
            expires=datetime.max.replace(tzinfo=UTC, microsecond=0),
        )  # fmt: skip
        record = BindRecord(
            session=name, agent="codex", principal=principal, binding=binding, isolation="none",
            protocol_version=1, bound_by=principal, verbs=token.verbs, token_id=token.id,
            bound=BORN,
        )  # fmt: skip
        return identity.with_token(token), records.with_new(record)

    def loot(self) -> Loot:
        """Gather, as alice, what bob will have got hold of."""
        text = f"{MARKER} {KNOWN}\n".encode()
        hers, bobs = minted(11)[1], minted(1)[1]
        loot = Loot(
            paths=["notes/alice.md", "plans/big.md", "MEMORY.md"],
            revision=hashlib.sha256(text).hexdigest(),
            prefix="plans/",
            session="s-alice",
            principal="alice",
            alias=f"unix:{ALICE_UID}",
            binding=self.binding("alice"),
            token_id=hers[5:17],
            tokens={
                "her revoked one": minted(12)[1],
                "her expired one": minted(13)[1],
                "hers, cut": hers[:-1],
                "hers, in capitals": hers.upper(),
                "her id with his secret": hers[:17] + bobs[17:],
                "his id with her secret": bobs[:17] + hers[17:61] + bobs[61:],
                "her id alone": hers[5:17],
                "what is kept of hers": tokens.digest_of(hers),
                "hers and his": f"{hers[:60]} {bobs}",
                "none": "",
            },
        )
        listed = self.answer("list", {}, hers)
        loot.cursor = str(listed["next_cursor"])
        assert loot.cursor != "None"
        return loot

    def answer(self, call: str, given: dict[str, object], token: str) -> dict[str, object]:
        body = json.dumps(given).encode()
        head = (
            f"POST /v1/memory/{call} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            f"Authorization: Bearer {token}\r\n\r\n"
        )
        return json.loads(self.hub.raw(head.encode() + body).partition(b"\r\n\r\n")[2])

    def his_environment(self, **more: str) -> dict[str, str]:
        """Give what bob's processes are started with."""
        return {
            "AMUX_HOME": str(self.bob_home),
            "AMUX_HUB": self.hub.config.socket_path,
            "AMUX_CREDENTIAL_FILE": str(self.token_file),
            "AMUX_NO_AUTOSTART": "1",
            "EDITOR": "true",
        } | more

    def mcp(self, **more: str) -> McpProcess:
        environment = self.his_environment(**more)
        return McpProcess(Path(environment.pop("AMUX_HOME")), **environment)

    def plainly(self, seen: bytes) -> bytes:
        """Take out of an answer what differs between any two answers."""
        seen = seen.replace(str(self.folder).encode(), b"WORLD")
        for pattern, word in NOISE:
            seen = pattern.sub(word, seen)
        return seen

    def close(self) -> None:
        self.hub.kill()
        shutil.rmtree(self.folder)
