"""Any object of arguments, at both faces of the journal: an answer or a refusal, and the same one.

Each face has a workspace of its own; both get the same calls in the same order, so what they hold
stays equal, and a difference is one between the faces.
"""

import io
import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amux import config
from amux.app import Context
from amux.core.text import to_json
from amux.errors import Code
from amux.journal.call.tool import Field
from amux.journal.call.tools import DEFAULT, EVERY, TOOLS
from amux.journal.refusals import REASONS
from amux.surface.cli import main
from amux.surface.mcp.offer import Offer
from tests.support.journal_faces import VERBS
from tests.support.workspaces import AT, project

CODES = {str(code) for code in Code}
QUERIES = {"memory_summary_query", "memory_session_query"}
ENVIRONMENT = {"AMUX_SESSION": "s", "AMUX_AGENT": "codex", "AMUX_TZ": "UTC", "AMUX_HOME": "/none"}

# What a command line must quote and a server remembers (T56) makes others differ, and a person's
# revoke has no tool.
ALIKE = [
    name
    for name, tool in TOOLS.items()
    if tool.field("contextDigest") is None and name != "memory_task_revoke"
]

TEXTS = st.text(max_size=30) | st.sampled_from(
    [
        "01",
        "1",
        "a",
        "own-" + "07" * 10,
        "new",
        "continue",
        "fix",
        "20260314",
        "2026-03-14",
        "## 会话 9",
        "ab" * 32,
        "ab" * 8,
        "\n",
        "",
    ]
)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


def near(field: Field) -> st.SearchStrategy[object]:
    """Give values that an argument may have, or nearly."""
    fits: st.SearchStrategy[object]
    if field.choices:
        fits = st.sampled_from(field.choices)
    elif field.kind == "integer":
        fits = st.integers(field.least - 1, min(field.most, 60) + 1)
    elif field.kind == "boolean":
        fits = st.booleans()
    elif field.kind == "object":
        fits = objects(field.fields)
    elif field.kind == "array":
        item = field.item
        fits = st.lists(near(item) if item is not None else JUNK, max_size=3)
    elif field.kind == "agent":
        fits = st.sampled_from(["codex", "pi", "claude"])
    elif field.name in ("intent", "type"):
        fits = st.sampled_from(["fix", "dev+fix", "fix/dev", ""])
    elif field.kind in ("line", "text"):
        fits = st.text("aé会|-— ", min_size=1, max_size=20) | TEXTS
    else:
        fits = TEXTS
    return st.integers(0, 24).flatmap(lambda luck: JUNK if luck == 24 else fits)


def objects(fields: tuple[Field, ...]) -> st.SearchStrategy[dict[str, object]]:
    required = {one.name: near(one) for one in fields if one.is_required}
    others = {one.name: near(one) for one in fields if not one.is_required}
    # Few of many: with all of them, two would always contradict each other.
    some = st.lists(st.sampled_from(sorted(others)), max_size=3) if others else st.just([])
    return some.flatmap(
        lambda names: st.fixed_dictionaries({**required, **{one: others[one] for one in names}})
    )


def calls(names: list[str]) -> st.SearchStrategy[tuple[str, object]]:
    """Give calls: near the table mostly, at times with a key too many, or any value at all."""

    def of(name: str) -> st.SearchStrategy[tuple[str, object]]:
        close = objects(TOOLS[name].fields)
        broken = st.tuples(close, st.dictionaries(TEXTS, JUNK, min_size=1, max_size=2)).map(
            lambda both: {**both[0], **both[1]}
        )
        return st.tuples(st.just(name), st.one_of(close, close, close, broken, JUNK))

    return st.sampled_from(names).flatmap(of)


def context(base: Path) -> Context:
    """Give surroundings in this process whose clock stands and whose chance is none."""
    made = Context(config.load({**ENVIRONMENT, "AMUX_WORKSPACE": str(base)}))
    made.clock = lambda: 1.0
    made.wall = lambda: AT
    made.random_bytes = lambda count: b"\x07" * count
    return made


class Pair:
    """Two workspaces that are equal, each behind one face."""

    def __init__(self, base: Path) -> None:
        self.bases = [base / "mcp" / "project", base / "cli" / "project"]
        for one in self.bases:
            project(one, ".")
        self.offer = Offer(context(self.bases[0]), "all")
        self.command = context(self.bases[1])

    def mcp(self, name: str, arguments: object) -> dict[str, object]:
        text, is_refusal = self.offer.call(name, arguments, client="nobody knows")
        found = json.loads(text)
        assert ("error" in found) == is_refusal
        while found.keys() == {"page", "pages", "continuation", "text"}:
            whole = str(found["text"])
            while found["continuation"]:
                text, is_refusal = self.offer.call(
                    "result_continue", {"continuation": found["continuation"]}, client=""
                )
                assert not is_refusal
                found = json.loads(text)
                whole += str(found["text"])
            found = json.loads(whole)
        return found

    def cli(self, name: str, arguments: object) -> dict[str, object]:
        made = self.command
        made.stdin, made.stdout, made.stderr = (io.BytesIO(to_json(arguments)), *streams())
        status = main.run([*VERBS[name].split(), "--args", "-"], made)
        out, err = made.stdout.getvalue(), made.stderr.getvalue()
        assert (status == 0) == bool(out)
        found = json.loads(out or err.splitlines()[-1])
        assert ("error" in found) == (status != 0)
        return found


def streams() -> tuple[io.BytesIO, io.BytesIO]:
    return io.BytesIO(), io.BytesIO()


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    folder = Path(tempfile.mkdtemp(prefix="amux-journal-"))
    yield Pair(folder)
    shutil.rmtree(folder)


# Names of content and of a root: where a root lies is part of them.
_DIGEST = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{12,}")


def same(found: dict[str, object], base: Path) -> object:
    """Take out where a face is, and what a process remembers."""
    text = json.dumps(found).replace(str(base.parent), "BASE")
    return _without(json.loads(_DIGEST.sub("#", text)))


def _without(value: object) -> object:
    if isinstance(value, dict):
        # A process remembers a new context; a command line ends.
        left_out = {"contextEpoch", "modifiedAt", "planContentId", "nextCursor", "identity"}
        return {key: _without(one) for key, one in value.items() if key not in left_out}
    return [_without(one) for one in value] if isinstance(value, list) else value


def is_sendable(value: object) -> bool:
    """Tell whether a value is JSON at all: no face can be sent another."""
    try:
        json.loads(json.dumps(value, allow_nan=False).encode())
        to_json(value)
    except (ValueError, UnicodeError):
        return False
    return True


@pytest.mark.requirement("J1", "J7", "J8")
@settings(max_examples=600, suppress_health_check=list(HealthCheck))
@given(call=calls(ALIKE))
def test_both_faces_give_one_answer_to_any_arguments(pair: Pair, call: tuple[str, object]) -> None:
    name, arguments = call
    if not is_sendable(arguments) or not isinstance(arguments, dict):
        arguments = {}
    by_cli = pair.cli(name, arguments)
    check(by_cli)
    if name not in (*DEFAULT, *EVERY):
        return  # a read that MCP does not list
    by_mcp = pair.mcp(name, arguments)
    check(by_mcp)
    if name in QUERIES and reason(by_mcp).startswith("CONTEXT_BINDING"):
        return  # a command line plans on the spot (J50)
    assert same(by_mcp, pair.bases[0]) == same(by_cli, pair.bases[1])


@pytest.mark.requirement("J7", "J8")
@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(call=calls([name for name in EVERY if TOOLS[name].is_task]))
def test_tools_on_tasks_refuse_with_a_code_and_never_crash(
    pair: Pair, call: tuple[str, object]
) -> None:
    name, arguments = call
    if not is_sendable(arguments):
        arguments = {}
    check(pair.mcp(name, arguments))


@pytest.mark.requirement("J8")
@given(value=JUNK.filter(lambda one: is_sendable(one) and not isinstance(one, dict)))
@settings(max_examples=30, suppress_health_check=list(HealthCheck))
def test_what_is_no_object_is_refused_by_both(pair: Pair, value: object) -> None:
    for found in (pair.mcp("memory_status", value), pair.cli("memory_status", value)):
        assert reason(found) == "MEMORY_QUERY_INVALID"


def reason(found: dict[str, object]) -> str:
    error = found.get("error")
    return str(error["details"]["reason"]) if isinstance(error, dict) else ""


def check(found: dict[str, object]) -> None:
    """Require an answer, or a refusal as J8 has it."""
    error = found.get("error")
    if error is None:
        assert "agent" in found
        return
    assert isinstance(error, dict)
    assert error["code"] in CODES - {"internal"}
    assert error["message"]
    assert error["hint"]
    assert str(REASONS[reason(found)]) == error["code"]
