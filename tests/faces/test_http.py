"""HTTP as strangers speak it: refused before anything happens, and the Hub goes on."""

import json
import socket

import pytest

from tests.support.faces import Faces, Said, said_in_http

UPSERT = "/v1/memory/upsert"
KIB = 1024


def body(folder: str, **more: object) -> bytes:
    arguments = {"path": f"{folder}/a.md", "content": "x", "expected_revision": "absent"}
    return json.dumps(arguments | more).encode()


def sent(faces: Faces, head: str, data: bytes) -> Said:
    return said_in_http(faces.hub.raw(head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + data))


def head(method: str, target: str, length: int, *lines: str) -> str:
    found = [f"{method} {target} HTTP/1.1", "Host: localhost", "Connection: close", *lines]
    return "\n".join([*found, f"Content-Length: {length}"])


def is_untouched(faces: Faces, folder: str) -> bool:
    return not (faces.hub.memory_dir / folder).exists()


@pytest.mark.requirement("M45", "M48")
@pytest.mark.parametrize(
    "kind",
    [
        "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
        "application/jsonx", "application/json+x", "text/json", "json", "", ";",
        "text/plain, application/json", "text/plain; application/json",
    ],
)  # fmt: skip
def test_another_content_type_is_refused(faces: Faces, folder: str, kind: str) -> None:
    assert faces.rpc.post(UPSERT, body(folder), kind).code == "invalid_argument"
    assert is_untouched(faces, folder)


@pytest.mark.requirement("M45")
def test_no_content_type_is_refused_and_its_forms_are_not(faces: Faces, folder: str) -> None:
    data = body(folder)
    assert sent(faces, head("POST", UPSERT, len(data)), data).code == "invalid_argument"
    assert is_untouched(faces, folder)
    for kind in ("Application/JSON", "application/json; charset=utf-8", " application/json ;x=y"):
        assert faces.rpc.post("/v1/memory/get", b'{"path":"a.md"}', kind).revision == "absent"


@pytest.mark.requirement("M45", "M48")
@pytest.mark.parametrize(
    "target",
    [
        "/", "/v1", "/v1/memory", "/v1/memory/", "/v1/memory/upsert/", "/v1/memory/Upsert",
        "/v2/memory/upsert", "//v1/memory/upsert", "/v1/admin/upsert", "/v1/memory/../memory/get",
        "/v1/memory/result_continue", "/metrics", "/%00", "/v1/memory/upsert%00",
    ],
)  # fmt: skip
def test_another_route_is_not_found(faces: Faces, folder: str, target: str) -> None:
    assert faces.rpc.post(target, body(folder)).code == "not_found"
    assert is_untouched(faces, folder)


@pytest.mark.requirement("M45", "M48")
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_only_a_post_is_a_call(faces: Faces, folder: str, method: str) -> None:
    data = body(folder)
    said = sent(faces, head(method, UPSERT, len(data), "Content-Type: application/json"), data)
    assert said.code == "invalid_argument"
    assert said.details == {"argument": "method"}
    assert is_untouched(faces, folder)


@pytest.mark.requirement("M45", "M18")
def test_a_body_said_to_be_too_large_is_refused_before_it_is_sent(faces: Faces) -> None:
    for length in (512 * KIB + 1, 10**12):
        said = sent(faces, head("POST", UPSERT, length, "Content-Type: application/json"), b"{")
        assert said.code == "limit_exceeded"
        assert said.details == {"max_bytes": 512 * KIB}


def chunked(data: bytes, size: int) -> bytes:
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in pieces) + b"0\r\n\r\n"


CHUNKED = (
    f"POST {UPSERT} HTTP/1.1\nHost: localhost\nConnection: close\n"
    "Content-Type: application/json\nTransfer-Encoding: chunked"
)


@pytest.mark.requirement("M45", "M18")
def test_a_chunked_body_is_read_and_measured_as_it_comes(faces: Faces, folder: str) -> None:
    data = body(folder)
    assert sent(faces, CHUNKED, chunked(data, 7)).answer["changed"] is True
    large = body(f"{folder}-large") + b" " * (512 * KIB)
    assert sent(faces, CHUNKED, chunked(large, 4 * KIB)).code == "limit_exceeded"
    assert is_untouched(faces, f"{folder}-large")


@pytest.mark.requirement("M45", "M23")
@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_body_that_is_cut_changes_nothing(faces: Faces, folder: str, is_chunked: bool) -> None:
    data = body(folder)
    start = head("POST", UPSERT, len(data), "Content-Type: application/json")
    if is_chunked:
        start, data = CHUNKED, chunked(data, 7)
    request = start.replace("\n", "\r\n").encode() + b"\r\n\r\n" + data
    whole = len(request)
    for cut in range(whole - len(data), whole, 9):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(faces.hub.config.socket_path)
            connection.sendall(request[:cut])
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(5)
            assert b" 200 " not in connection.recv(1000)
    assert is_untouched(faces, folder)
    assert faces.hub.raw(request).startswith(b"HTTP/1.1 200 ")


@pytest.mark.requirement("M45", "M48")
@pytest.mark.parametrize(
    "text",
    [
        b"", b" ", b"null", b"[]", b"1", b'"x"', b"{", b"{}x", b"{} {}", b"{'a':1}", b"{a:1}",
        b'{"path":"a.md",}', b"\xef\xbb\xbf{}", b"\xff\xfe{\0}\0", b'{"path":"\xff.md"}',
        b'{"path":"\xed\xa0\x80.md"}', b'{"path":"\\ud800.md"}', b'{"path":NaN}',
        b'{"path":1e999}', b'{"path":Infinity}', b'{"path":"a.md","path":"a.md"}',
        b'{"path":"\t.md"}', b'{"path":"a.md","offset":01}', b"[" * 5000 + b"]" * 5000,
        b'{"path":' * 500 + b"1" + b"}" * 500, b'{"\\u0070ath":"a.md","path":"b.md"}',
        b'{"path":"a\\u0000.md"}', b'{"path":"a.md"}\0', b"{" + b'"x":1,' * 20000 + b'"y":1}',
        b"9" * 5000,
    ],
)  # fmt: skip
def test_a_body_that_is_no_object_of_arguments_is_refused(faces: Faces, text: bytes) -> None:
    said = faces.rpc.post("/v1/memory/get", text)
    assert said.code == "invalid_argument"
    assert said.error["message"]


@pytest.mark.requirement("M45")
@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\0\0\0\0", b"GET\r\n\r\n", b"\x16\x03\x01\x02\0", b"POST / HTTP/9.9\r\n\r\n",
        b"POST " + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1e3\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 200_000 + b"\r\n\r\n",
        CHUNKED.replace("\n", "\r\n").encode() + b"\r\n\r\nffffffffffffffff\r\nx",
        CHUNKED.replace("\n", "\r\n").encode() + b"\r\n\r\nzz\r\nx",
    ],
    ids=range(12),
)  # fmt: skip
def test_bytes_that_are_no_http_get_no_success_and_end_nothing(
    faces: Faces, request_bytes: bytes
) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(5)
        connection.connect(faces.hub.config.socket_path)
        try:
            connection.sendall(request_bytes)
            connection.shutdown(socket.SHUT_WR)
            assert b" 200 " not in connection.recv(1000)
        except ConnectionError:
            pass  # it hung up on us, which is an answer
    assert faces.rpc.get("a.md").revision == "absent"


@pytest.mark.requirement("M45")
def test_one_connection_takes_many_calls_one_after_another(faces: Faces) -> None:
    data = b'{"path":"a.md"}'
    one = (
        b"POST /v1/memory/get HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % len(data)
    ) + data
    last = one.replace(b"Host:", b"Connection: close\r\nHost:")
    assert faces.hub.raw(one * 20 + last).count(b"HTTP/1.1 200 OK") == 21


@pytest.mark.requirement("M45", "M4")
def test_no_header_and_no_query_string_has_a_say(faces: Faces, folder: str) -> None:
    data = body(folder)
    said = sent(
        faces,
        head(
            "POST", f"{UPSERT}?scope=other&path=b.md", len(data),
            "Content-Type: application/json", "X-Scope: other", "Amux-Principal: other",
            "X-HTTP-Method-Override: GET", "X-Original-URL: /v1/admin/stop",
        ),
        data,
    )  # fmt: skip
    assert said.answer["changed"] is True
    assert (faces.hub.memory_dir / folder / "a.md").read_bytes() == b"x"
