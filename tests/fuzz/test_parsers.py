"""Anything in: a refusal of the table or a well-formed answer out, and the Hub goes on.

Small by default; the long form of each tries many times as much.
"""

import json
import os
import socket
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amux.core.path import DocPath, PathPrefix
from amux.core.strict import decode
from amux.errors import InvalidArgument, LimitExceeded
from amux.memory.search import Query
from tests.support.faces import ABSENT, EXIT, Faces

FEW, MANY = 40, 400
PURE_FEW, PURE_MANY = 50, 1500
SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


def tried(count: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return settings(max_examples=count, suppress_health_check=SHARED)


SLOW = [pytest.param(False, id="few"), pytest.param(True, id="many", marks=pytest.mark.slow)]

NASTY = st.sampled_from(
    [*"./\\:*?\"<>|-~%$ \t\n\r\0aAéß用ﬁ１🧀", "..", ".md", ".MD", "/", "//", "CON", "nul", "\u0301",
     "\u200b", "\u202e", "\ufeff", "\ud800", "\udfff", "\U000e0001", "\x85", "x" * 99]
)  # fmt: skip
TEXTS = st.one_of(st.text(), st.lists(NASTY, max_size=12).map("".join))
PATHS = TEXTS | st.builds("{}.md".format, TEXTS) | st.builds("{}/{}.md".format, TEXTS, TEXTS)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
ARGUMENTS = st.dictionaries(
    st.sampled_from(["path", "query", "content", "expected_revision", "limit", "offset",
                     "start_line", "end_line", "path_prefix", "cursor", "name", "value"]) | TEXTS,
    JSON | PATHS | st.just(ABSENT) | st.integers(-3, 30),
    max_size=5,
)  # fmt: skip
VERBS = st.sampled_from(["search", "get", "upsert", "forget", "list", "check", "discard"])


def spelled(value: object, *, ascii_only: bool = True) -> bytes:
    return json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")


@st.composite
def nearly_json(draw: st.DrawFn) -> bytes:
    """Draw JSON, or JSON with a wound."""
    data = spelled(draw(ARGUMENTS | JSON), ascii_only=draw(st.booleans()))
    match draw(st.integers(0, 4)):
        case 0 | 1:
            return data
        case 2:
            at = draw(st.integers(0, len(data)))
            return data[:at] + draw(st.binary(max_size=4)) + data[at:]
        case 3:
            at = draw(st.integers(0, len(data)))
            return data[:at] + data[at + draw(st.integers(0, 5)) :]
        case _:
            return draw(st.binary(max_size=200))


def outcome(call: Callable[[], object]) -> object:
    """Give what a parser gives, or None where it refuses, in words that can be sent."""
    try:
        return call()
    except (InvalidArgument, LimitExceeded) as refusal:
        json.dumps(refusal.body())
        return None


def check_path(text: str) -> None:
    found = outcome(lambda: DocPath.parse(text))
    if found is None:
        return
    assert found.text == text
    raw = text.encode("utf-8")
    assert len(raw) <= 512
    assert text.lower().endswith(".md")
    # The file system, an independent judge, takes it as a name beneath a folder.
    assert os.path.normpath(os.path.join("/top", text)) == f"/top/{text}"
    assert not os.path.isabs(text)
    for segment in text.split("/"):
        assert 0 < len(segment.encode()) <= 100
        assert not set(segment) & set('\\:*?"<>|\0')
        assert segment.isprintable()
        assert segment[0] not in ".-"
    assert PathPrefix.parse(text).covers(text)
    for cut in range(len(text)):
        outcome(lambda cut=cut: PathPrefix.parse(text[:cut]))


@pytest.mark.requirement("M11", "M40")
@given(PATHS)
@tried(PURE_FEW)
def test_a_path_is_refused_or_names_one_place_beneath(text: str) -> None:
    check_path(text)


@pytest.mark.slow
@pytest.mark.requirement("M11", "M40")
@given(PATHS)
@tried(PURE_MANY)
def test_a_path_is_refused_or_names_one_place_beneath_tried_long(text: str) -> None:
    check_path(text)


def check_query(text: str) -> None:
    found = outcome(lambda: Query.parse(text))
    if found is None:
        return
    assert 1 <= len(found.terms) <= 16
    assert all(term.text in text.split() and term.needle for term in found.terms)
    relaxed = found.relax()
    assert relaxed is None or 1 <= len(relaxed.terms) <= 16


@pytest.mark.requirement("M35", "M41")
@given(TEXTS | st.lists(TEXTS, max_size=20).map(" ".join))
@tried(PURE_FEW)
def test_a_query_is_refused_or_is_1_to_16_words_of_its_own(text: str) -> None:
    check_query(text)


@pytest.mark.slow
@pytest.mark.requirement("M35", "M41")
@given(TEXTS | st.lists(TEXTS, max_size=20).map(" ".join))
@tried(PURE_MANY)
def test_a_query_is_refused_or_is_1_to_16_words_of_its_own_tried_long(text: str) -> None:
    check_query(text)


def check_decoder(data: bytes) -> None:
    try:
        value = decode(data)
    except InvalidArgument:
        return
    # What it takes, the lenient decoder takes too, and means the same.
    assert json.dumps(value) == json.dumps(json.loads(data))
    json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")


@pytest.mark.requirement("M45", "M48")
@given(nearly_json())
@tried(PURE_FEW)
def test_the_decoder_gives_a_value_or_refuses(data: bytes) -> None:
    check_decoder(data)


@pytest.mark.slow
@pytest.mark.requirement("M45", "M48")
@given(nearly_json())
@tried(PURE_MANY)
def test_the_decoder_gives_a_value_or_refuses_tried_long(data: bytes) -> None:
    check_decoder(data)


def check_body(faces: Faces, verb: str, data: bytes) -> None:
    said = faces.rpc.post(f"/v1/memory/{verb}", data)  # it checks status and budget
    assert not said.is_refusal or said.code in EXIT.keys() - {"internal", "outcome_unknown"}
    assert faces.rpc.get("a.md").answer["path"] == "a.md"


@pytest.mark.slow
@pytest.mark.requirement("M45", "M48", "M17")
@pytest.mark.parametrize("is_long", SLOW)
def test_a_body_gets_a_refusal_of_the_table_or_an_answer(faces: Faces, is_long: bool) -> None:
    @given(VERBS, nearly_json())
    @tried(MANY if is_long else FEW)
    def fuzz(verb: str, data: bytes) -> None:
        check_body(faces, verb, data)

    fuzz()


@pytest.mark.slow
@pytest.mark.requirement("M45")
@pytest.mark.parametrize("is_long", SLOW)
def test_bytes_that_may_be_http_end_no_hub(faces: Faces, is_long: bool) -> None:
    pieces = st.sampled_from(
        [b"POST ", b"GET ", b"/v1/memory/get", b" HTTP/1.1\r\n", b"\r\n", b"Host: x\r\n",
         b"Content-Type: application/json\r\n", b"Content-Length: 15\r\n", b"\r\n\r\n",
         b"Transfer-Encoding: chunked\r\n", b'{"path":"a.md"}', b"5\r\nabcde\r\n", b"0\r\n\r\n",
         b"Expect: 100-continue\r\n", b"Upgrade: websocket\r\n", b"Connection: upgrade\r\n"]
    )  # fmt: skip

    @given(st.lists(pieces | st.binary(max_size=8), max_size=14).map(b"".join))
    @tried(MANY if is_long else FEW)
    def fuzz(data: bytes) -> None:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(5)
            connection.connect(faces.hub.config.socket_path)
            try:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass
            except ConnectionError:
                pass
        assert faces.rpc.get("a.md").answer["path"] == "a.md"

    fuzz()


@pytest.mark.slow
@pytest.mark.requirement("M48", "M58")
@pytest.mark.parametrize("is_long", SLOW)
def test_a_line_gets_at_most_one_answer_and_the_conversation_goes_on(
    faces: Faces, is_long: bool
) -> None:
    process = faces.mcp.process
    tools = st.sampled_from(
        ["memory_search", "memory_get", "memory_upsert", "memory_forget", "result_continue", "x"]
    )
    calls = st.builds(
        lambda name, arguments: spelled(
            {"jsonrpc": "2.0", "id": "fuzz", "method": "tools/call",
             "params": {"name": name, "arguments": arguments}}
        ),
        tools, ARGUMENTS | JSON,
    )  # fmt: skip
    messages = st.builds(
        lambda message: spelled(message),
        st.fixed_dictionaries(
            {},
            optional={"jsonrpc": st.just("2.0") | JSON, "id": st.just("fuzz") | JSON,
                      "method": st.sampled_from(["ping", "tools/list", "initialize", "x"]) | JSON,
                      "params": JSON},
        ),
    )  # fmt: skip

    @given(calls | messages | nearly_json())
    @tried(MANY if is_long else FEW)
    def fuzz(line: bytes) -> None:
        process.send(line.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n")
        number = process.ask("ping")
        said = process.answer(number)
        assert said == {"jsonrpc": "2.0", "id": number, "result": {}}
        for message in drained(faces):
            assert message.keys() in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"})
            check_result(message)

    fuzz()


def drained(faces: Faces) -> list[dict[str, object]]:
    kept = list(faces.mcp.process._kept)
    faces.mcp.process._kept.clear()
    return kept


def check_result(message: dict[str, object]) -> None:
    if "error" in message:
        assert message["error"]["code"] in {-32700, -32600, -32601, -32602, -32603}
        assert message["error"]["code"] != -32603
        return
    result = message["result"]
    if "content" in result:
        (block,) = result["content"]
        assert len(block["text"].encode()) <= 6 * 1024
        body = json.loads(block["text"])
        assert ("error" in body) == result.get("isError", False)
        if "error" in body:
            assert body["error"]["code"] in EXIT.keys() - {"internal", "outcome_unknown"}
