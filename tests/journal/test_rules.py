"""What agents are handed: one key or table put in, brought to this release, taken out."""

import json
import tomllib
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from amux.core import canonical
from amux.journal.setup import rules, skill
from amux.journal.setup.rules import Entry, Record, Rule
from amux.journal.text import jsonkey, tomltable
from amux.journal.text.jsonkey import Document

SKILL, ENTRY = rules.HANDED["claude"]
TABLE = rules.HANDED["codex"][1]
OLD_TABLE = '[mcp_servers.amux]\ncommand = "older"\n'


def handed(rule: Rule, data: bytes | None, known: Entry | None = None) -> tuple[bytes, Entry]:
    decision = rules.hand_out(rule, data, known)
    assert decision.data is not None, decision
    assert decision.entry is not None
    return decision.data, decision.entry


def taken(rule: Rule, data: bytes, entry: Entry) -> bytes | None:
    """Give what is left; None where the file goes."""
    decision = rules.take_back(rule, data, entry)
    assert decision.outcome == "removed"
    return decision.data


# --- the skill -----------------------------------------------------------------------------------


@pytest.mark.requirement("J21", "J42", "J53")
def test_the_skill_is_small_and_names_each_call_that_an_agent_makes() -> None:
    text = skill.TEXT
    assert len(text.encode()) < 3 * 1024
    assert text.startswith("---\nname: memory\ndescription: ")
    for word in (
        "memory_status", "memory_summary_query", "memory_session_query", "memory_session_write",
        "memory_task_resolve", "handoffOnly", "otherAgents", "nextCall", "next-action", "since",
        "14 days", "release", "agent.conflict", "shell", "section", "sessions.md", "Without asking",
    ):  # fmt: skip
        assert word in text


@pytest.mark.requirement("J21")
def test_a_skill_is_made_kept_brought_to_this_release_and_left_if_changed() -> None:
    data, entry = handed(SKILL, None)
    assert data == skill.TEXT.encode()
    assert rules.hand_out(SKILL, data, entry).outcome == "unchanged"
    old = b"an older release\n"
    known = Entry(path=SKILL.path, key="", digest=canonical.digest(old), is_file_created=True)
    assert rules.hand_out(SKILL, old, known).outcome == "changed"
    for there, record in ((b"mine\n", known), (b"mine\n", None), (data, None)):
        left = rules.hand_out(SKILL, there, record)
        assert (left.outcome, left.warning, left.data) == ("left", "rules-changed", None)
    assert taken(SKILL, data, entry) is None
    left = rules.take_back(SKILL, data + b"more", entry)
    assert (left.outcome, left.warning) == ("left", "rules-changed")


# --- JSON ----------------------------------------------------------------------------------------


INDENTS = st.sampled_from([None, 1, 2, 3, 4, 8, "\t"])
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)
SERVERS = st.dictionaries(st.text(max_size=8).filter(lambda name: name != "amux"), PLAIN)


def spelled(value: object, indent: int | str | None, is_ascii: bool, is_tight: bool) -> bytes:
    colon = ":" if is_tight else ": "
    comma = "," if indent is not None or is_tight else ", "
    text = json.dumps(value, indent=indent, ensure_ascii=is_ascii, separators=(comma, colon))
    return text.encode("utf-8", "surrogatepass")


@pytest.mark.requirement("J21", "JA38")
@given(
    st.dictionaries(st.text(max_size=8), PLAIN),
    st.none() | SERVERS,
    INDENTS,
    st.booleans(),
    st.booleans(),
    st.sampled_from(["", "\n", "\r\n", "\n\n"]),
    st.booleans(),
)
def test_a_key_comes_and_goes_and_no_other_byte_of_a_json_file_changes(
    value: dict[str, object],
    servers: dict[str, object] | None,
    indent: int | str | None,
    is_ascii: bool,
    is_tight: bool,
    end: str,
    has_crlf: bool,
) -> None:
    assume("mcpServers" not in value)
    if servers is not None:
        value = {**value, "mcpServers": servers}
    text = spelled(value, indent, is_ascii, is_tight)
    if has_crlf:
        text = text.replace(b"\n", b"\r\n")
    data = text + end.encode()
    merged, entry = handed(ENTRY, data)
    now = json.loads(merged)
    assert now["mcpServers"].pop("amux") == {"command": "amux", "args": ["mcp"]}
    if servers is None:
        assert now.pop("mcpServers") == {}
    assert now == value
    # What was there stands there still, in its order: the new text is one piece in between.
    begin = next((at for at, byte in enumerate(data) if merged[at] != byte), len(data))
    assert merged.endswith(data[begin:])
    assert rules.hand_out(ENTRY, merged, entry).outcome == "unchanged"
    assert taken(ENTRY, merged, entry) == data


ODD = {
    "odd spacing": b'{ "mcpServers" : {} }',
    "a comment": b'{\n  // mine\n  "mcpServers": {}\n}\n',
    "a trailing comma": b'{"mcpServers": {},}',
    "a key twice": b'{"a": 1, "a": 2}',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "an exponent": b'{"a": 1e3}',
    "no object": b"[]",
    "nothing": b"",
    "mixed indents": b'{\n  "a": {\n     "b": 1\n  }\n}',
    "servers that are a list": b'{\n  "mcpServers": []\n}\n',
    "servers that are null": b'{"mcpServers": null}',
    "not UTF-8": b'{"a": "\xff"}',
    "too deep": b'{"a": ' + b"[" * 99 + b"]" * 99 + b"}",
}


@pytest.mark.requirement("J21", "JA38")
@pytest.mark.parametrize("name", ODD)
def test_an_odd_json_file_is_left_with_the_text_to_paste(name: str) -> None:
    decision = rules.hand_out(ENTRY, ODD[name], None)
    assert (decision.outcome, decision.warning) == ("left", "rules-not-merged")
    assert decision.data is None
    assert json.loads(decision.text)["mcpServers"]["amux"]["command"] == "amux"


@pytest.mark.requirement("J21")
@pytest.mark.parametrize("value", [None, {}, {"command": "mine"}, "amux", 1.5])
def test_a_persons_own_entry_of_the_name_stays(value: object) -> None:
    data = json.dumps({"mcpServers": {"amux": value}}).encode()
    decision = rules.hand_out(ENTRY, data, None)
    assert (decision.outcome, decision.warning) == ("left", "rules-changed")
    _, entry = handed(ENTRY, None)
    assert rules.hand_out(ENTRY, data, entry).warning == "rules-changed"
    assert rules.take_back(ENTRY, data, entry).outcome == "left"


@pytest.mark.requirement("J21")
def test_an_entry_of_an_older_release_is_brought_to_this_one_in_its_place() -> None:
    old = {"command": "older"}
    value = {"mcpServers": {"a": 1, "amux": old, "b": 2}, "z": 3}
    known = Entry(
        path=ENTRY.path, key="mcpServers.amux", digest=jsonkey.digest(old), is_file_created=False
    )
    data, entry = handed(ENTRY, json.dumps(value).encode(), known)
    assert list(json.loads(data)["mcpServers"]) == ["a", "amux", "b"]
    assert not entry.is_file_created
    assert taken(ENTRY, data, entry) == b'{"mcpServers": {"a": 1, "b": 2}, "z": 3}'


@pytest.mark.requirement("J21")
def test_a_created_json_file_goes_but_for_what_a_person_added() -> None:
    data, entry = handed(ENTRY, None)
    assert taken(ENTRY, data, entry) is None
    value = json.loads(data)
    value["mcpServers"]["other"] = {}
    mine = (json.dumps(value, indent=2) + "\n").encode()
    rest = taken(ENTRY, mine, entry)
    assert rest is not None
    assert json.loads(rest) == {"mcpServers": {"other": {}}}


# --- TOML ----------------------------------------------------------------------------------------


WORDS = st.text(alphabet="abcxyz_", min_size=1, max_size=6)
LINES = st.sampled_from(
    ["# a comment", "", 'model = "x"', "  # indented", 'note = """\n[mcp_servers.amux]\n"""']
)
TOML_FILES = st.builds(
    lambda lines, tables, newline, end: (
        "\n".join(dict.fromkeys([*lines, *(f"[{one}]\nk = 1" for one in dict.fromkeys(tables))]))
        + ("\n" if end else "")
    ).replace("\n", newline),
    st.lists(LINES, max_size=5),
    st.lists(st.sampled_from(["a", "mcp_servers", "mcp_servers.other", "profiles.x"]), max_size=3),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)


def parses(text: str) -> bool:
    try:
        tomllib.loads(text)
    except ValueError:
        return False
    return True


@pytest.mark.requirement("J21", "JA38")
@given(TOML_FILES, st.sampled_from(["", "# mine, after it\n", "\n[later]\nk = 2\n"]))
def test_a_table_comes_and_goes_and_no_other_byte_of_a_toml_file_changes(
    text: str, later: str
) -> None:
    assume(parses(text))
    data = text.encode()
    merged, entry = handed(TABLE, data)
    assert merged.startswith(data)
    now = tomllib.loads(merged.decode())
    assert now["mcp_servers"]["amux"] == {
        "command": "amux",
        "args": ["mcp"],
        "env_vars": ["AMUX_AGENT", "AMUX_SESSION", "AMUX_WORKSPACE"],
    }
    assert rules.hand_out(TABLE, merged, entry).outcome == "unchanged"
    assert taken(TABLE, merged + later.encode(), entry) == data + later.encode()


ODD_TOML = {
    "does not parse": b"a = \n",
    "has the table": b'[mcp_servers.amux]\ncommand = "mine"\n',
    "has it inline": b'mcp_servers = { amux = { command = "mine" } }\n',
    "closed by being inline": b'mcp_servers = { other = { command = "x" } }\n',
    "no table": b"mcp_servers = 3\n",
    "not UTF-8": b'a = "\xff"\n',
    "a lone carriage return": b"a = 1\rb = 2\n",
}


@pytest.mark.requirement("J21", "JA38")
@pytest.mark.parametrize("name", ODD_TOML)
def test_an_odd_toml_file_is_left_with_the_text_to_paste(name: str) -> None:
    decision = rules.hand_out(TABLE, ODD_TOML[name], None)
    assert (decision.outcome, decision.warning) == ("left", "rules-not-merged")
    assert decision.data is None
    assert "mcp_servers" in tomllib.loads(decision.text)


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "a value": lambda data: data.replace(b'"amux"', b'"mine"'),
    "a key below": lambda data: data + b"startup_timeout_sec = 9\n",
    "a key before": lambda data: data.replace(b"command", b"enabled = false\ncommand", 1),
    "a comment inside": lambda data: data.replace(b"args", b"# why\nargs", 1),
    "a table below": lambda data: data + b"[mcp_servers.amux.env]\nA = '1'\n",
}


@pytest.mark.requirement("J21")
@pytest.mark.parametrize("name", CHANGES)
def test_a_table_that_a_person_changed_is_theirs(name: str) -> None:
    data, entry = handed(TABLE, b"a = 1\n")
    mine = CHANGES[name](data)
    assert parses(mine.decode())
    assert rules.hand_out(TABLE, mine, entry).warning == "rules-changed"
    left = rules.take_back(TABLE, mine, entry)
    assert (left.outcome, left.data) == ("left", None)


@pytest.mark.requirement("J21")
def test_a_table_of_an_older_release_is_brought_to_this_one_in_its_place() -> None:
    old = tomltable.appended(b"a = 1", OLD_TABLE, TABLE.keys)
    assert old is not None
    known = Entry(path=TABLE.path, key="mcp_servers.amux", digest=old[1], is_file_created=False)
    data, entry = handed(TABLE, old[0] + b"[after]\n", known)
    assert data == b"a = 1\n" + TABLE.text.encode() + b"[after]\n"
    # The line break before it was ours, and is needed now by what a person put after it.
    assert taken(TABLE, data, entry) == b"a = 1\n[after]\n"


# --- the record ----------------------------------------------------------------------------------


@pytest.mark.requirement("J21")
def test_a_record_is_canonical_and_reads_back() -> None:
    entries = {rule.path: handed(rule, None)[1] for rule in rules.every_rule()}
    record = Record(entries, (".claude",))
    data = record.render()
    assert data is not None
    assert data == canonical.encode(json.loads(data)) + b"\n"
    assert json.loads(data)["schemaVersion"] == "AmuxRulesV1"
    for one in json.loads(data)["files"]:
        assert set(one) == {"path", "key", "digest", "createdFile"}
    assert Record.parse(data) == record
    assert Record({}).render() is None


@pytest.mark.requirement("J21")
@given(st.binary(max_size=60) | st.builds(lambda one: json.dumps(one).encode(), PLAIN))
def test_any_bytes_are_a_record_or_say_nothing(data: bytes) -> None:
    assert Record.parse(data) == Record({})


@pytest.mark.requirement("J21")
def test_a_record_is_believed_about_files_of_the_table_only() -> None:
    files = [
        {"path": path, "key": None, "digest": "0" * 64, "createdFile": True}
        for path in ("../../etc/passwd", "/etc/passwd", "AGENTS.md", SKILL.path)
    ]
    text = {"schemaVersion": "AmuxRulesV1", "files": files, "folders": ["..", ".git", ".claude"]}
    found = Record.parse(json.dumps(text).encode())
    assert set(found.entries) == {SKILL.path}
    assert found.folders == (".claude",)


@pytest.mark.requirement("J21")
def test_nothing_that_agents_share_with_people_is_on_the_table() -> None:
    paths = {rule.path for rule in rules.every_rule()}
    assert paths == {
        ".claude/skills/memory/SKILL.md", ".agents/skills/memory/SKILL.md", ".mcp.json",
        ".codex/config.toml", ".cursor/mcp.json",
    }  # fmt: skip


def test_a_document_knows_null_from_nothing() -> None:
    document = Document.parse(b'{"a": {"b": null}}')
    assert document is not None
    assert document.has("a", "b")
    assert not document.has("a", "c")
