"""What each agent is handed so that it can use the journal, and what has become of it (J21).

Rule 1: decisions only: bytes in, bytes out; the ring in `handout.py` reads and writes.
Rule 2: what still has the digest with which it was written is ours: it is brought to this release
        and taken out again. All else is a person's, and stays.
Rule 3: a record is believed about the files of this table only, whatever paths it names.
"""

import json
from collections.abc import Iterable, Mapping

from amux.core import canonical
from amux.core.value import Value
from amux.journal.setup import skill
from amux.journal.text import jsonkey, tomltable
from amux.journal.text.jsonkey import Document

RECORD = ".devcodex/rules.json"
SCHEMA = "AmuxRulesV1"
RECORD_MAX_BYTES = 64 * 1024
FLAGS = ("claude", "codex", "cursor", "pi")
CHANGED, NOT_MERGED = "rules-changed", "rules-not-merged"
_NAME = "amux"
_ENTRY: dict[str, object] = {"command": "amux", "args": ["mcp"]}
_TABLE = """\
[mcp_servers.amux]
command = "amux"
args = ["mcp"]
env_vars = ["AMUX_AGENT", "AMUX_SESSION", "AMUX_WORKSPACE"]
"""


class Rule(Value):
    """One thing that is handed out: a whole file, or one key of a file."""

    path: str
    kind: str
    """`file`, `json` or `toml`."""
    keys: tuple[str, ...] = ()
    text: str
    """The file's content, or what to paste where it could not be put in."""


def _skill(folder: str) -> Rule:
    return Rule(path=f"{folder}/skills/memory/SKILL.md", kind="file", text=skill.TEXT)


def _json(path: str) -> Rule:
    text = json.dumps({"mcpServers": {_NAME: _ENTRY}}, indent=2) + "\n"
    return Rule(path=path, kind="json", keys=("mcpServers", _NAME), text=text)


_CLAUDE_SKILL, _SKILL = _skill(".claude"), _skill(".agents")
_CODEX = Rule(path=".codex/config.toml", kind="toml", keys=("mcp_servers", _NAME), text=_TABLE)
HANDED: Mapping[str, tuple[Rule, ...]] = {
    "claude": (_CLAUDE_SKILL, _json(".mcp.json")),
    "codex": (_SKILL, _CODEX),
    "cursor": (_SKILL, _json(".cursor/mcp.json")),
    "pi": (_SKILL,),
}


class Entry(Value):
    """What a record says of one thing that was handed out."""

    path: str
    key: str
    """The key that was put in, joined by dots; empty for a whole file."""
    digest: str
    is_file_created: bool

    def plain(self) -> dict[str, object]:
        """Give it as the record spells it."""
        return {
            "path": self.path,
            "key": self.key or None,
            "digest": self.digest,
            "createdFile": self.is_file_created,
        }


class Decision(Value):
    """What to do with one file, and what the record says afterwards."""

    path: str
    outcome: str
    """`created`, `changed`, `unchanged`, `left` or `removed`."""
    data: bytes | None = None
    """What to write; None is nothing, or with `removed` that the file goes."""
    entry: Entry | None = None
    warning: str = ""
    text: str = ""


class Record(Value, kw_only=False):
    """`.devcodex/rules.json`: what was handed out, and the directories made for it."""

    entries: Mapping[str, Entry]
    folders: tuple[str, ...] = ()

    @classmethod
    def parse(cls, data: bytes | None) -> "Record":
        """Read a record; one that cannot be read says nothing."""
        value = canonical.parsed(data) if data is not None else None
        if not isinstance(value, dict) or value.get("schemaVersion") != SCHEMA:
            return cls({})
        files, folders = value.get("files"), value.get("folders")
        found = [_entry(one) for one in files] if isinstance(files, list) else []
        paths = {rule.path for rule in every_rule()}
        known = {one.path: one for one in found if one is not None and one.path in paths}
        ours = _folders(paths)
        made = folders if isinstance(folders, list) else []
        return cls(known, tuple(one for one in made if isinstance(one, str) and one in ours))

    def render(self) -> bytes | None:
        """Spell it; None for one that has nothing to say."""
        if not self.entries:
            return None
        value: dict[str, object] = {
            "files": [self.entries[path].plain() for path in sorted(self.entries)],
            "folders": sorted(self.folders),
            "schemaVersion": SCHEMA,
        }
        return canonical.encode(value) + b"\n"


def every_rule() -> tuple[Rule, ...]:
    """Give each rule once."""
    return rules_of(FLAGS)


def rules_of(flags: Iterable[str]) -> tuple[Rule, ...]:
    """Give what these agents are handed, each thing once."""
    return tuple({rule.path: rule for flag in flags for rule in HANDED[flag]}.values())


def refused(rule: Rule) -> Decision:
    """Leave a file that is a link, or none that may be written; say what to paste."""
    return Decision(path=rule.path, outcome="left", warning=NOT_MERGED, text=rule.text)


def hand_out(rule: Rule, data: bytes | None, known: Entry | None) -> Decision:
    """Decide what becomes of one file of which `data` is there, None being nothing."""
    if rule.kind == "file":
        return _file(rule, data, known)
    return _in_json(rule, data, known) if rule.kind == "json" else _in_toml(rule, data, known)


def take_back(rule: Rule, data: bytes | None, known: Entry) -> Decision:
    """Decide how to take out what was handed out."""
    if data is None:
        return Decision(path=rule.path, outcome="unchanged")
    if rule.kind == "file":
        if canonical.digest(data) != known.digest:
            return _changed(rule, None)
        return Decision(path=rule.path, outcome="removed")
    rest = (
        _out_of_json(rule, data, known) if rule.kind == "json" else _out_of_toml(rule, data, known)
    )
    if rest is None:
        return _changed(rule, None)
    if rest == data:
        return Decision(path=rule.path, outcome="unchanged")
    is_empty = rest.strip() in (b"", b"{}")
    if known.is_file_created and is_empty:
        return Decision(path=rule.path, outcome="removed")
    return Decision(path=rule.path, outcome="removed", data=rest)


def state(rule: Rule, data: bytes | None, known: Entry | None) -> str:
    """Name what has become of one thing, for the doctor."""
    if known is None:
        return "not handed out" if data is None or not _has(rule, data) else "a person's own"
    if data is None or not _has(rule, data):
        return "gone"
    decision = hand_out(rule, data, known)
    return {"unchanged": "current", "changed": "of another release"}.get(
        decision.outcome, "changed by a person"
    )


def _file(rule: Rule, data: bytes | None, known: Entry | None) -> Decision:
    new = rule.text.encode("utf-8")
    entry = Entry(path=rule.path, key="", digest=canonical.digest(new), is_file_created=True)
    if data is None:
        return Decision(path=rule.path, outcome="created", data=new, entry=entry)
    if known is None or canonical.digest(data) != known.digest:
        return _changed(rule, known)
    if data == new:
        return Decision(path=rule.path, outcome="unchanged", entry=known)
    return Decision(path=rule.path, outcome="changed", data=new, entry=entry)


def _in_json(rule: Rule, data: bytes | None, known: Entry | None) -> Decision:
    document = Document.new() if data is None else Document.parse(data)
    if document is None:
        return _not_merged(rule, known)
    table, _ = rule.keys
    present = document.get(*rule.keys)
    is_known = known is not None and jsonkey.digest(present) == known.digest
    if document.has(*rule.keys) and not is_known:
        return _changed(rule, known)
    # The record names what was put in: the whole table, where there was none.
    key = ".".join(rule.keys) if table in document.value or data is None else table
    if is_known and known is not None:
        key = known.key
    return _decided(
        rule, data, document.with_value(_ENTRY, *rule.keys), jsonkey.digest(_ENTRY), key, known
    )


def _in_toml(rule: Rule, data: bytes | None, known: Entry | None) -> Decision:
    key = ".".join(rule.keys)
    old = data or b""
    if known is not None and tomltable.get(old, *rule.keys) is not None:
        try:
            new, digest = tomltable.replaced(old, rule.text, rule.keys, known.digest)
        except LookupError:
            return _changed(rule, known)
        return _decided(rule, data, new, digest, key, known)
    appended = tomltable.appended(old, rule.text, rule.keys)
    if appended is None:
        return _not_merged(rule, known)
    return _decided(rule, data, *appended, key, known)


def _decided(
    rule: Rule, data: bytes | None, new: bytes | None, digest: str, key: str, known: Entry | None
) -> Decision:
    if new is None:
        return _not_merged(rule, known)
    is_created = data is None or (known is not None and known.is_file_created)
    entry = Entry(path=rule.path, key=key, digest=digest, is_file_created=is_created)
    if new == data:
        return Decision(path=rule.path, outcome="unchanged", entry=entry)
    outcome = "created" if data is None else "changed"
    return Decision(path=rule.path, outcome=outcome, data=new, entry=entry)


def _out_of_json(rule: Rule, data: bytes, known: Entry) -> bytes | None:
    document = Document.parse(data)
    if document is None:
        return None
    present = document.get(*rule.keys)
    if not document.has(*rule.keys):
        return data
    if jsonkey.digest(present) != known.digest:
        return None
    table, _ = rule.keys
    is_ours = known.is_file_created or known.key == table
    if is_ours and document.get(table) == {rule.keys[-1]: present}:
        return document.without(table)
    return document.without(*rule.keys)


def _out_of_toml(rule: Rule, data: bytes, known: Entry) -> bytes | None:
    if tomltable.parse(data) is not None and tomltable.get(data, *rule.keys) is None:
        return data
    try:
        return tomltable.removed(data, rule.keys, known.digest)
    except LookupError:
        return None


def _has(rule: Rule, data: bytes) -> bool:
    if rule.kind == "file":
        return True
    if rule.kind == "toml":
        return tomltable.get(data, *rule.keys) is not None
    document = Document.parse(data)
    return document is None or document.has(*rule.keys)


def _changed(rule: Rule, known: Entry | None) -> Decision:
    return Decision(path=rule.path, outcome="left", entry=known, warning=CHANGED)


def _not_merged(rule: Rule, known: Entry | None) -> Decision:
    return Decision(path=rule.path, outcome="left", entry=known, warning=NOT_MERGED, text=rule.text)


def _entry(value: object) -> Entry | None:
    match value:
        case {
            "path": str(path), "key": str() | None as key, "digest": str(digest),
            "createdFile": bool(is_created),
        }:  # fmt: skip
            return Entry(path=path, key=key or "", digest=digest, is_file_created=is_created)
        case _:
            return None


def folders_of(path: str) -> tuple[str, ...]:
    """Name the directories on the way to a file, the outermost first."""
    steps = path.split("/")[:-1]
    return tuple("/".join(steps[:count]) for count in range(1, len(steps) + 1))


def _folders(paths: Iterable[str]) -> set[str]:
    return {folder for path in paths for folder in folders_of(path)}
