"""The permanent identity of a task, and the files that hold it (T19 to T21, T23).

Rule 1: it is written once and never changed; whoever rewrites a byte of it makes another task.
Rule 2: the taskId follows from the ingress, so that an admission repeated is the same task.
Rule 3: an identity of the first version is left as it is; one of the second lies beside it.
"""

import json
import re
from hashlib import sha256
from typing import ClassVar
from uuid import UUID

from amux.core import canonical
from amux.core.value import Value
from amux.journal.ledger import shape
from amux.journal.tasks.directory import KINDS

MAX_BYTES = 64 * 1024  # T39
TASK_FILE = ".memory/task.json"
V2_FILE = ".memory/task-identity-v2.json"
MIGRATION_FILE = ".memory/task-identity-migration-v1.json"
_TASK_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_UUID_VERSION, _UUID_VARIANT = 0x80, 0x80
MAX_ALIASES, MAX_ALIAS_CHARS, MAX_NAME_CHARS = 32, 300, 160
VARIANTS = ("new", "product-provided", "change", "continue", "reopen", "fix")


class Invalid(ValueError):
    """A file holds no identity; the text says what is wrong with it."""


class Identity(Value):
    """Who a task is."""

    SCHEMA: ClassVar[str] = "TaskIdentityV2"
    DIGEST: ClassVar[str] = "identity_digest"

    aliases: tuple[str, ...]
    created_at: str
    display_name: str
    entry_variant: str
    identity_version: int = 2
    project: str
    project_root_identity_digest: str
    task_id: str
    task_kind: str
    task_root_relative: str
    identity_digest: str = ""

    def render(self) -> bytes:
        """Spell it as its file."""
        return _pretty(shape.encode(self))


class FirstIdentity(Value):
    """An identity of the first version."""

    task_id: str
    display_name: str
    aliases: tuple[str, ...]
    created_at: str
    identity_revision: int


def task_id_of(ingress_key: str) -> str:
    """Derive the taskId of the task that an ingress asks for.

    >>> task_id_of("30ac9acccf98e918d439b03e30a9d82fe54190eb138b82aaf8c633f6dec27f2c")
    'c15d0adc-5c3f-83e7-b39a-e6fcd2fed2dc'
    """
    raw = bytearray(sha256(f"amux-task:{ingress_key}".encode()).digest()[:16])
    raw[6] = (raw[6] & 0x0F) | _UUID_VERSION
    raw[8] = (raw[8] & 0x3F) | _UUID_VARIANT
    return str(UUID(bytes=bytes(raw)))


def is_task_id(text: str) -> bool:
    """Tell whether a text is spelled as a taskId."""
    return _TASK_ID.fullmatch(text) is not None


def parse(data: bytes) -> Identity | FirstIdentity:
    """Read an identity of either version.

    Raises:
        Invalid: it is neither, or its digest is not its own.
    """
    try:
        value = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Invalid("not-json") from error
    if isinstance(value, dict) and value.get("schemaVersion") == Identity.SCHEMA:
        return _second(value)
    return _first(value)


def migration(first: bytes, second: bytes, task_id: str) -> bytes:
    """Spell the note that says from which file the second identity was made."""
    return _pretty(
        {
            "schemaVersion": "TaskIdentityMigrationV1",
            "sourceDigest": canonical.digest(first),
            "targetDigest": canonical.digest(second),
            "taskId": task_id,
        }
    )


def _second(value: object) -> Identity:
    try:
        found = shape.decode(Identity, value)
        is_sealed = shape.is_sealed(found)
    except ValueError as error:
        raise Invalid(str(error) if isinstance(error, shape.Misshapen) else "text") from error
    kind, slash, name = found.task_root_relative.partition("/")
    problems = {
        "identityDigest": not is_sealed,
        "identityVersion": found.identity_version != 2,
        "taskId": not is_task_id(found.task_id),
        "taskKind": found.task_kind not in KINDS or kind != found.task_kind,
        "entryVariant": found.entry_variant not in VARIANTS,
        "taskRootRelative": not slash or "/" in name or name in ("", ".", ".."),
        "displayName": not 1 <= len(found.display_name) <= MAX_NAME_CHARS,
        "aliases": len(found.aliases) > MAX_ALIASES
        or any(not 1 <= len(one) <= MAX_ALIAS_CHARS for one in found.aliases),
    }
    for field, is_wrong in problems.items():
        if is_wrong:
            raise Invalid(field)
    return found


def _first(value: object) -> FirstIdentity:
    if isinstance(value, dict):
        # Its writers added fields of their own over the years; what it is known by is these.
        value = {name: value[name] for name in _FIRST_FIELDS if name in value}
        value.setdefault("aliases", [])
    try:
        found = shape.decode(FirstIdentity, value)
    except shape.Misshapen as error:
        raise Invalid(str(error)) from error
    if not is_task_id(found.task_id) or not found.display_name.strip():
        raise Invalid("taskId")
    return found


_FIRST_FIELDS = ("taskId", "displayName", "aliases", "createdAt", "identityRevision")


def _pretty(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, indent=2)
    return (text + "\n").encode("utf-8")
