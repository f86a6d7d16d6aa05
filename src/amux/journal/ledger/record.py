"""One record of the ledger as bytes (T5), and what makes bytes no record (T6).

Rule 1: a record says its kind and key, so that a file which was moved or copied is found out.
Rule 2: it names the digest of the record that it replaces, and its own; both are checked.
Rule 3: what does not parse is refused by the file's name; nothing is repaired.
"""

import json
import re
from collections.abc import Mapping

from amux.core import canonical
from amux.core.value import Value
from amux.errors import AmuxError
from amux.journal.refusals import refuse

FORMAT = 5
_AFTER_BODY = f',"format":{FORMAT},'.encode()
_FIELDS = {"body", "digest", "format", "key", "kind", "previous", "seq"}
_DIGEST = re.compile(r"[0-9a-f]{64}")
_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")  # a key becomes the name of a file


MAX_KNOWN = 64
# Records that were made or read, by the digest of their files: a process reads the same few anew
# for each call, and the same bytes say the same.
_KNOWN: "dict[str, Record]" = {}


class Record(Value):
    """One record: what it says, and its place in the chain of its predecessors."""

    kind: str
    key: str
    seq: int
    previous: str | None
    body: Mapping[str, object]
    digest: str
    """Names it, by all that it says but this."""
    data: bytes
    """It, as a file."""

    @property
    def name(self) -> str:
        """Name its file below the ledger."""
        return file_name(self.kind, self.key)

    def render(self) -> bytes:
        """Spell it as a file."""
        return self.data

    def successor(self, body: Mapping[str, object]) -> "Record":
        """Make the record that replaces this one."""
        made = _made(self.kind, self.key, self.seq + 1, self.digest, body)
        _remember(made)
        return made

    def corrupt(self, problem: str) -> AmuxError:
        """Make the refusal of what it says."""
        return corrupt(self.kind, self.key, problem)


def first(kind: str, key: str, body: Mapping[str, object]) -> Record:
    """Make the first record of a key."""
    return _made(kind, key, 1, None, body)


def _made(
    kind: str, key: str, seq: int, previous: str | None, body: Mapping[str, object]
) -> Record:
    plain = canonical.encode(
        {
            "body": body, "format": FORMAT, "key": key, "kind": kind, "previous": previous,
            "seq": seq,
        }
    )  # fmt: skip
    digest = canonical.digest(plain)
    # Sorted keys put the digest right behind the body: no second encoding is needed for it.
    at = plain.rindex(_AFTER_BODY)
    return Record(
        kind=kind, key=key, seq=seq, previous=previous, body=body, digest=digest,
        data=plain[:at] + _spelled(digest) + plain[at:] + b"\n",
    )  # fmt: skip


def _spelled(digest: str) -> bytes:
    return b',"digest":"' + digest.encode() + b'"'


def is_key(text: str) -> bool:
    """Tell whether a text may be the key of a record."""
    return _KEY.fullmatch(text) is not None


def file_name(kind: str, key: str) -> str:
    """Name the file of a key below the ledger."""
    if not is_key(key):
        raise ValueError("no key of a record")
    return "meta.json" if kind == "meta" else f"{kind}/{key}.json"


def parse(data: bytes, kind: str, key: str) -> Record:
    """Read a record back, or refuse it as corrupt by the name of its file."""
    known = _KNOWN.get(canonical.digest(data))
    if known is not None and (known.kind, known.key) == (kind, key):
        return known
    found = _parsed(data, kind, key)
    _remember(found)
    return found


def _remember(found: Record) -> None:
    if len(_KNOWN) >= MAX_KNOWN:
        _KNOWN.clear()
    _KNOWN[canonical.digest(found.data)] = found


def _parsed(data: bytes, kind: str, key: str) -> Record:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise corrupt(kind, key, "not-json") from error
    if not isinstance(value, dict) or set(value) != _FIELDS:
        raise corrupt(kind, key, "fields")
    match value:
        case {"format": int(number)} if number > FORMAT and not isinstance(number, bool):
            raise corrupt(kind, key, "newer-format")
        case {
            "format": 5, "kind": str(), "key": str(), "seq": int(seq), "body": dict(body),
            "previous": None | str() as previous, "digest": str(digest),
        } if seq >= 1 and not isinstance(seq, bool):  # fmt: skip
            pass
        case _:
            raise corrupt(kind, key, "fields")
    if (value["kind"], value["key"]) != (kind, key):
        raise corrupt(kind, key, "key")
    if previous is not None and not _DIGEST.fullmatch(previous):
        raise corrupt(kind, key, "fields")
    try:
        found = _made(kind, key, seq, previous, body)
    except ValueError as error:  # a float, or half a character: nothing that we would write
        raise corrupt(kind, key, "not-canonical") from error
    if found.digest != digest or found.data != data:
        raise corrupt(kind, key, "digest")
    return found


def corrupt(kind: str, key: str, problem: str) -> AmuxError:
    """Make the refusal of a record that is none."""
    return refuse(
        "MEMORY_LEDGER_CORRUPT",
        "a record of the ledger is damaged",
        hint="nothing repairs it: a person removes the file, then bind re-admits the task",
        record=file_name(kind, key),
        problem=problem,
    )
